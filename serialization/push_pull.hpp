// The data path: requests to a kv and their replies, as plain values.
#pragma once

#include "base/buffer.hpp"
#include "serialization/encoding.hpp"
#include "serialization/ids.hpp"
#include "serialization/rows.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace troupe {

/// Elements [first, first + count) of a table.
struct range {
  table_id table;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  /// Names the values that a block had at some time. No other values have this stamp; 0: no stamp.
  std::uint64_t stamp = 0;

  /// The stamp names values, not elements, so it is not compared.
  bool operator==(const range& other) const {
    return table == other.table && first == other.first && count == other.count;
  }
};

/// A range and its values, f32[count]. `values` keeps borrowed memory alive. The memory's maker
/// must not write to it any more.
struct piece {
  range where;
  float_ptr values;
};

/// Read-only bytes that stay alive as long as this handle. It may point into a larger buffer.
using byte_ptr = std::shared_ptr<const std::byte>;

/// A range of one block, and its values in fewer bytes. Borrowed like the values of a piece. A peer
/// that sent them over a link may still change them.
struct packed_piece {
  range where;
  encoding how = encoding::f32; ///< Not f32; see encoding.hpp for the bytes.
  std::uint32_t size_bytes = 0; ///< A multiple of 8.
  byte_ptr bytes;               ///< Aligned to 8.

  std::span<const std::byte> span() const { return {bytes.get(), size_bytes}; }
};

/// The step of a push or a pull, and its worker.
struct step_header {
  worker_id worker;
  incarnation_id incarnation;
  generation_id generation;
  batch_id batch; ///< Identity of a push. A bsp pull names its clock by it: bsp_clock(batch).
  std::uint64_t clock = 0; ///< The worker's step count, which ssp compares.
  /// Of a push: it has the tables of a later part of the worker's line, and ends no clock. The push
  /// of the line's first part is not partial. It comes when the partial ones are acknowledged, and
  /// ends the clock.
  bool is_partial = false;

  bool operator==(const step_header&) const = default;
};

/// Values on devices, see kernels/devices/device_group.hpp.
struct device_values;

/// Gradients of one batch, d(loss)/d(weight) averaged over the batch; or the sum of the gradients
/// of several batches, which are applied together or not at all.
struct push_request {
  step_header step;
  /// Tables whose step this push completes on every partition of the receiver, even without a piece
  /// or a row. A table with a piece or a row must be listed.
  std::vector<table_id> tables;
  /// pull_reply::version of the pull that the gradient was computed from.
  std::uint64_t base_version = 0;
  /// L2 norm over all pieces and rows of all receivers; for clipping by norm.
  float gradient_norm = 0.0f;
  std::vector<piece> pieces; ///< May be empty: the batch counts as applied and changes no values.
  std::vector<row_piece> rows = {};      ///< Rows of sparse tables, at most one list for each.
  std::vector<packed_piece> packed = {}; ///< Encoded pieces; only codecs make and read them.
  /// The other batches of this sum, in the order of their addition.
  std::vector<step_header> others = {};
  /// If set, the values of all pieces are still on a device, one after the other, and each
  /// piece's `values` are null. Only between a worker and the reducer of its process.
  std::shared_ptr<const device_values> on_device = {};

  /// Returns all batches of this push in the order of their addition.
  std::vector<step_header> steps() const {
    auto all = others;
    all.insert(all.begin(), step);
    return all;
  }
};

/// The reply to a push, sent after it was applied.
struct push_reply {
  std::uint64_t version = 0; ///< Updates applied by the receiver so far.
  bool duplicate = false;    ///< The batch had been applied before; no pull_reply changed.

  bool operator==(const push_reply&) const = default;
};

/// Counts the updates of a chain within a generation.
struct chain_version {
  generation_id generation; ///< The chain's generation; versions count within it.
  std::uint64_t version = 0;

  auto operator<=>(const chain_version&) const = default;
};

struct pull_request {
  step_header step;
  bool latest = false;       ///< Answer at once with the current values, whatever the consistency.
  std::vector<range> ranges; ///< With `delta`: their stamps name the values that the sender has.
  std::vector<row_keys> rows = {};
  bool delta = false;      ///< Ranges whose values still have the given stamp may be omitted.
  chain_version seen = {}; ///< The newest version known to the sender: no older values, unless
                           ///< `latest`.
  bool anywhere = false;   ///< A replica other than the head may answer, too.
  encoding packed_as = encoding::f32; ///< At most int8: dense values come in this encoding, as
                                      ///< `packed`.
  /// Other steps that read these values. The clock of `step` is the largest.
  std::vector<step_header> others = {};
};

/// The reply to a pull. The pieces, `packed` and `unchanged` cover the requested ranges, in any
/// order and cut anywhere. `rows` has the requested lists in the same order; keys are not repeated
/// but null.
struct pull_reply {
  std::uint64_t version = 0; ///< Updates applied by the sender before these values were read.
  std::vector<piece> pieces; ///< With stamps if the query was a delta.
  std::vector<row_piece> rows = {};
  std::vector<range> unchanged = {};     ///< Only of a delta: ranges whose values the receiver
                                         ///< already has.
  std::vector<packed_piece> packed = {}; ///< Encoded pieces; only codecs make and read them.
};

/// A request to a kv: apply `push`, then read `pull`. One of them may be missing. A worker's step
/// has both: the gradient of the finished batch and the values for the next one.
struct request {
  std::optional<push_request> push;
  std::optional<pull_request> pull;
  shard_id shard = {}; ///< Holder of the named values; a kv that splits requests finds it itself.
};

/// Returns whether the request may be sent before earlier ones.
inline bool overtakes(const request& what) { return !what.push && what.pull && what.pull->latest; }

struct reply {
  std::optional<push_reply> pushed; ///< Present if the request had a push.
  /// Present if the request had a pull. Missing if the push was applied but the values are not
  /// ready yet: then pull them again, without the push.
  std::optional<pull_reply> pulled;
  generation_id generation = {}; ///< Generation of the answering chain, in which its versions
                                 ///< count.
};

} // namespace troupe
