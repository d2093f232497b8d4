// The data path: what a kv understands, as plain values.
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
  /// Names the values that a block had at some time, as no other number does; 0: nobody knows.
  std::uint64_t stamp = 0;

  /// The stamp says what was there, not which elements are meant.
  bool operator==(const range& other) const {
    return table == other.table && first == other.first && count == other.count;
  }
};

/// A range and its values, f32[count]. Borrowed memory is kept alive by `values`; whoever made it
/// must not write to it any more.
struct piece {
  range where;
  float_ptr values;
};

/// Read-only bytes that stay alive while this handle does; may point into a larger buffer.
using byte_ptr = std::shared_ptr<const std::byte>;

/// A range of one block, and its values in fewer bytes. Borrowed like those of a piece; whoever
/// brought them over a link may still change them.
struct packed_piece {
  range where;
  encoding how = encoding::f32; ///< Never so; see encoding.hpp for the others' bytes.
  std::uint32_t size_bytes = 0; ///< A multiple of 8.
  byte_ptr bytes;               ///< Aligned to 8.

  std::span<const std::byte> span() const { return {bytes.get(), size_bytes}; }
};

/// The step a push or a pull belongs to, and who takes it.
struct step_header {
  worker_id worker;
  incarnation_id incarnation;
  generation_id generation;
  batch_id batch; ///< Identity of a push. For a bsp pull it names the clock: bsp_clock(batch).
  std::uint64_t clock = 0; ///< The worker's step count; what ssp compares.

  bool operator==(const step_header&) const = default;
};

/// Where devices are known: kernels/devices/device_group.hpp.
struct device_values;

/// Gradients of one batch, d(loss)/d(weight) averaged over the batch; or what those of several
/// batches add up to, which are applied and marked together or not at all.
struct push_request {
  step_header step;
  /// Tables that this push marks as done on every partition of the receiver, also those for which
  /// `pieces` and `rows` bring nothing. A table with a piece or a row must be listed.
  std::vector<table_id> tables;
  /// pull_reply::version of the pull that the gradient was computed from.
  std::uint64_t base_version = 0;
  /// L2 norm over all pieces and rows of all receivers; for clipping by norm.
  float gradient_norm = 0.0f;
  std::vector<piece> pieces; ///< May be empty: the batch is marked as done and changes nothing.
  std::vector<row_piece> rows = {};      ///< Of sparse tables, one for each at most.
  std::vector<packed_piece> packed = {}; ///< More pieces; codecs alone make and read them.
  /// The batches beside that of `step` whose gradients are in this sum, as they were added up.
  std::vector<step_header> others = {};
  /// Where this is set, the values of all pieces, one after the other, are still on a device, and
  /// those of each piece are null. Between a worker and the reducer of its process alone.
  std::shared_ptr<const device_values> on_device = {};

  /// All batches of this push, in the order in which they were added up.
  std::vector<step_header> steps() const {
    auto all = others;
    all.insert(all.begin(), step);
    return all;
  }
};

/// Answer to a push, given after it was applied.
struct push_reply {
  std::uint64_t version = 0; ///< Updates applied by the receiver so far.
  bool duplicate = false;    ///< The batch had been applied before, nothing changed.

  bool operator==(const push_reply&) const = default;
};

/// How far the updates of a chain had gone.
struct chain_version {
  generation_id generation; ///< Of the chain; versions count within one.
  std::uint64_t version = 0;

  auto operator<=>(const chain_version&) const = default;
};

struct pull_request {
  step_header step;
  bool latest = false;       ///< Answer at once with the current values, whatever the consistency.
  std::vector<range> ranges; ///< With `delta`: their stamps name the values that the asker has.
  std::vector<row_keys> rows = {};
  bool delta = false; ///< Ranges that still have the values of their stamp need not be brought.
  chain_version seen = {}; ///< What the asker knows of: no older values, unless `latest`.
  bool anywhere = false;   ///< A replica that does not lead may answer, too.
  encoding packed_as = encoding::f32; ///< At most int8: dense values come so, as `packed`.
  /// Steps that read these values beside `step`, whose clock is the largest.
  std::vector<step_header> others = {};
};

/// Answer to a pull. The pieces, `packed` and `unchanged` cover the ranges asked for, in any order
/// and cut anywhere. `rows` are those asked for, list by list in the same order; keys are not
/// repeated, theirs are null.
struct pull_reply {
  std::uint64_t version = 0; ///< Updates applied by the sender before these values were read.
  std::vector<piece> pieces; ///< Stamped where the query was a delta.
  std::vector<row_piece> rows = {};
  std::vector<range> unchanged = {};     ///< Only of a delta: the asker has these values.
  std::vector<packed_piece> packed = {}; ///< More pieces; codecs alone make and read them.
};

/// What a kv is asked for: to apply `push`, and then to read `pull`. One of them may be missing. A
/// worker's step has both: the gradient of the batch that is done, the values for the next one.
struct request {
  std::optional<push_request> push;
  std::optional<pull_request> pull;
  chain_id chain = {}; ///< Who holds what is named; a kv that splits requests looks for itself.
};

struct reply {
  std::optional<push_reply> pushed; ///< Where the request had a push.
  /// Where the request had a pull. Missing all the same where the push was applied and the values
  /// have to be waited for: they are to be asked for again, alone.
  std::optional<pull_reply> pulled;
  generation_id generation = {}; ///< Of the chain that answers: what its versions count in.
};

} // namespace troupe
