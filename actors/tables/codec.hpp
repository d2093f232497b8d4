// Packs and unpacks what requests and answers bring of dense tables: what the two ends of a
// compressed way to the servers decide. A plain class; codec_actor.hpp puts it in front of kvs.
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
  /// Of gradients, one for each table of the job; of a sparse one f32. Empty: f32 for all.
  std::vector<compression> pushes;
  encoding pulls = encoding::f32; ///< Of values of dense tables: f32, fp16, bf16 or int8.

  /// What a server has to read for it.
  encoding_set sends() const;
  bool keeps_residual() const;
};

/// A packed piece is one block, as the router sends each to one chain. What was not sent of a block
/// with error feedback is added to its next gradient.
///
/// Invariants:
/// (1) Of a table with error feedback: gradients packed since the last forget(), less what their
///     packed pieces unpack to, are what is kept, but for roundings.
/// (2) What is packed of a table without is a function of the gradient, its batch and the job.
/// (3) A codec packs a push once: who sends it again sends the same bytes.
class codec {
public:
  explicit codec(job_spec job, codec_options options = {});

  // -- the end of those who push --

  /// Requires: the ranges are those of the job.
  void pack(push_request& push);
  /// Errors: malformed (bytes that nobody packs, a range that is no block).
  result<void> unpack(pull_reply& answer);
  /// Lets go of what error feedback keeps; returns whether there was any.
  bool forget();

  // -- the end of those who have the values --

  result<void> unpack(push_request& push);
  /// To the nearest, as nothing of it can be kept.
  void pack(pull_reply& answer, encoding how);

private:
  result<void> unpack(std::vector<packed_piece>& packed, std::vector<piece>& to);
  result<void> check(const std::vector<packed_piece>& packed) const;

  job_spec job_;
  codec_options options_;
  std::vector<std::uint64_t> block_elements_; ///< One for each table.
  std::uint64_t elements_ = 0;                ///< Of all dense tables.
  /// What error feedback keeps, one for each table; empty before its first push.
  std::vector<std::vector<float>> residuals_;
  buffer_pool pool_;
};

} // namespace troupe
