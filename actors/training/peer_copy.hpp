// Holds a gossip peer's copy of all values: takes steps, and mixes with the copies of others.
#pragma once

#include "actors/tables/table_store.hpp"
#include "actors/training/flat_copy.hpp"

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace troupe {

/// Another peer's values, f32[flat_values()], and their weight in a mean.
struct weighted_values {
  float weight = 0;
  parcel_tensor values;
};

/// Optimiser state is not mixed. Frozen tables neither. Thread safety: none; one thread at a time.
class peer_copy {
public:
  /// Errors: damaged (the copy does not fit the job).
  static result<peer_copy> made(const job_spec& job, const flat_copy& first,
                                std::shared_ptr<buffer_pool> pool,
                                const server_functions& functions, encoding how = encoding::f32);

  /// Takes the optimiser's step with one gradient. Errors: shape_mismatch, non_finite,
  /// contract_broken (a server function threw); nothing has changed.
  result<void> step(push_request push);
  /// Reads values; no copy. Errors: shape_mismatch.
  result<pull_reply> read(const pull_request& pull) const;

  /// Returns the values for a neighbour, encoded. The array is kept until they change.
  parcel_tensor sent();
  /// Returns a neighbour's values, decoded; nullopt: no peer of this job sends them.
  std::optional<parcel_tensor> received(const parcel_tensor& what);
  /// Returns whether an array can be a neighbour's change, which is not encoded.
  bool fits(const parcel_tensor& what) const { return what.count == count_; }
  /// Adds weight * (theirs - mine) for each of the others, where `mine` are the own values as a
  /// neighbour has them. So the sum over all peers stays also if values are encoded (CHOCO-Gossip,
  /// Koloskova et al. 2019, section 3). Requires: fits(), and weights >= 0 with a sum of at most 1.
  void mix(std::span<const weighted_values> others);
  /// Moves half the way to another peer's values, and returns the change that is to move that peer
  /// by as much the other way. Requires: fits(theirs).
  parcel_tensor halve(const parcel_tensor& theirs);
  /// Adds a change of another peer. Requires: fits(change).
  void add(const parcel_tensor& change);
  /// Returns all of it.
  flat_copy whole();

private:
  peer_copy(job_spec job, std::shared_ptr<table_store> store, std::shared_ptr<buffer_pool> pool,
            encoding how);

  /// Returns the values in one array. The array is kept until they change.
  parcel_tensor values();
  void mix_encoded(std::span<const weighted_values> others, float weight);
  /// Forgets the arrays that were made of the values.
  void changed();

  job_spec job_;
  encoding how_;            ///< Of values for neighbours.
  std::uint64_t count_ = 0; ///< Floats of all tables.
  std::shared_ptr<table_store> store_;
  std::shared_ptr<buffer_pool> pool_;
  std::vector<std::uint64_t> first_;    ///< Where each table begins in an array of all values.
  std::vector<table_id> tables_;        ///< All of them.
  std::vector<shard_partition> pinned_; ///< All partitions, to be pinned.
  parcel_tensor values_;                ///< The values in one array; null: it is to be made ...
  parcel_tensor sent_;                  ///< ... and so is this one: values_, encoded.
};

} // namespace troupe
