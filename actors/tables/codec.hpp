// Packs and unpacks the dense values of requests and replies, at both ends of a compressed
// connection. A plain class; compress_stage and expander_actor use it.
#pragma once

#include "base/buffer.hpp"
#include "serialization/encoding.hpp"
#include "serialization/job.hpp"
#include "serialization/push_pull.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe {

struct codec_options {
  /// Encodings of gradients, one for each table of the job; f32 for a sparse one. Empty: f32 for
  /// all.
  std::vector<compression> pushes;
  encoding pulls = encoding::f32; ///< Encoding of values of dense tables: f32, fp16, bf16 or int8.

  /// Returns the encodings that a server must be able to read.
  encoding_set sends() const;
  bool keeps_residual() const;
};

/// A packed piece is one block, as the router sends each to one shard. With error feedback, the
/// part of a block that was not sent is added to its next gradient.
///
/// Invariants:
/// (1) For a table with error feedback, the residuals are the gradients packed since the last
///     forget(), less the values that their packed pieces unpack to, up to rounding.
/// (2) For other tables the packed bytes are a function of the gradient, its batch and the job.
/// (3) A codec packs a push once: a repeated push has the same bytes.
class codec {
public:
  explicit codec(job_spec job, codec_options options = {});

  // -- the end that pushes --

  /// Requires: the ranges are those of the job.
  void pack(push_request& push);
  /// Errors: malformed (bytes that no codec packs, a range that is no block).
  result<void> unpack(pull_reply& answer);
  /// Drops the residuals of error feedback; returns whether there were any.
  bool forget();

  // -- the end that has the values --

  result<void> unpack(push_request& push);
  /// Packs values, rounded to the nearest, as no residual can be kept for them.
  void pack(pull_reply& answer, encoding how);

private:
  result<void> unpack(std::vector<packed_piece>& packed, std::vector<piece>& to);
  result<void> check(const std::vector<packed_piece>& packed) const;

  job_spec job_;
  codec_options options_;
  std::vector<std::uint64_t> block_elements_; ///< One for each table.
  std::uint64_t elements_ = 0;                ///< Elements of all dense tables.
  /// Residuals of error feedback, one for each table; empty before its first push.
  std::vector<std::vector<float>> residuals_;
  buffer_pool pool_;
};

} // namespace troupe
