// Declares the place where a replica has its values: tables (table_store), or a keeper of the
// program (keeper_store).
#pragma once

#include "actors/tables/block_store.hpp"
#include "base/error.hpp"
#include "serialization/messages.hpp"
#include "serialization/snapshot.hpp"

#include <span>
#include <vector>

namespace troupe {

/// All values of a replica. Thread safety: none; one thread at a time.
class value_store {
public:
  virtual ~value_store() = default;

  virtual result<void> check(const push_request& push) const = 0;
  virtual result<void> check(const pull_request& pull) const = 0;
  virtual result<void> check_finite(const push_request& push) const = 0;

  /// Carries out a step of some pushes, or none of it.
  virtual result<void> apply(const apply_effect& effect,
                             std::span<const push_request* const> pushes) = 0;
  /// Takes one push, which apply_admitted() may carry out later, before any read.
  virtual result<void> admit(const apply_effect& effect, const push_request& push) = 0;
  virtual void apply_admitted(std::span<const block_store::admitted_push> pushes) = 0;

  /// Reads values; does not set their version. `previous`: tables to be read as before their last
  /// step. Requires: check().
  virtual result<pull_reply> answer(const pull_request& pull,
                                    const std::vector<table_id>& previous) const = 0;

  /// Returns the checksum of all values and their state.
  virtual std::uint32_t checksum() const = 0;
  /// Pins all values for a checkpoint. If defect() is not null then, they must not be kept.
  virtual std::vector<partition_image> pin(const std::vector<shard_partition>& partitions) = 0;
  /// Returns why the values are of no use any more, or null.
  virtual const failure* defect() const { return nullptr; }
};

} // namespace troupe
