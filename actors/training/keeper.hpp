// Declares the class that a program writes to keep the values of an own store by itself.
#pragma once

#include "actors/training/trainer.hpp"
#include "base/notes.hpp"
#include "serialization/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace troupe {

/// One push, for a keeper.
struct update {
  batch_id batch;
  worker_id worker;
  /// Batches whose gradients were added up to this one; 1 unless a reducer stands in the path.
  std::size_t batches = 1;
  /// One f32 array for each table: whole for a dense table, or f32[keys, width] for a sparse one.
  /// Empty if the push has no values for the table. Each number is finite.
  const_tensors gradients = {};
  /// One list for each table: the keys of a sparse table, in ascending order.
  std::span<const std::span<const std::uint64_t>> keys = {};
};

/// One pull, for a keeper.
struct query {
  /// One list for each table: the keys whose rows are asked for, in ascending order.
  std::span<const std::span<const std::uint64_t>> keys = {};
};

/// The values of an own store. Troupe calls it on one thread at a time, not always the same one. It
/// remembers which batches the keeper has applied, and applies each once. After a death a new
/// keeper loads the newest checkpoint, and the batches that it lacks are computed again.
///
/// The server sends no status during apply(), read() and save(), and 5 s of silence count as its
/// death. So each of these calls must be shorter.
///
/// Each function may throw: the job then stops with the text and the function's name.
class keeper {
public:
  virtual ~keeper() = default;
  /// Applies one push to the values. Called once for each batch, or for each sum of batches.
  virtual void apply(const update& what, const node_notes& notes) = 0;
  /// Fills f32 arrays, one for each table: whole for a dense table, or f32[keys, width]. An array
  /// is empty if its table was not asked for. Each number must be finite: else the job stops.
  virtual void read(const query& what, mutable_tensors values) = 0;
  /// Returns the whole state, at most 1 GiB. It is one part of a checkpoint with the batches that
  /// it has.
  virtual std::vector<std::byte> save() const = 0;
  /// Takes a state that save() returned. A keeper that cannot read it throws.
  virtual void load(std::span<const std::byte> saved) = 0;
};

/// Makes a keeper, in the process that has it. It is called at each start and at each load of a
/// checkpoint, on a thread of its own, and may take minutes. May throw: the job then stops with the
/// text.
using keeper_factory = std::function<std::unique_ptr<keeper>()>;

} // namespace troupe
