// Holds all values of a server's partitions, of dense and sparse tables together.
#pragma once

#include "actors/tables/block_store.hpp"
#include "actors/tables/sparse_store.hpp"
#include "actors/tables/value_store.hpp"

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace troupe {

/// A block_store and a sparse_store that step together: all tables of an effect or, if a value is
/// not finite, none. The functions promise the same as those of the two stores.
class table_store final : public value_store {
public:
  /// Makes fresh partitions. `functions`: those that the job's tables name. `given`: takes the
  /// place of initialisers.
  table_store(const job_spec& job, const std::vector<partition_id>& partitions,
              const std::shared_ptr<buffer_pool>& pool, const server_functions& functions = {},
              const given_values& given = {});
  /// Restores a checkpoint. Errors: damaged.
  static result<std::shared_ptr<table_store>>
  restored(const job_spec& job, const std::vector<partition_image>& partitions,
           const std::shared_ptr<buffer_pool>& pool, const server_functions& functions = {});

  result<void> check(const push_request& push) const override;
  result<void> check(const pull_request& pull) const override;
  result<void> check_finite(const push_request& push) const override;

  result<void> apply(const apply_effect& effect,
                     std::span<const push_request* const> pushes) override;
  /// Checks that apply() of an effect with this one push would succeed. Errors: non_finite.
  result<void> admit(const apply_effect& effect, const push_request& push) override;
  void apply_admitted(std::span<const block_store::admitted_push> pushes) override;

  /// Reads values; does not set their version.
  pull_reply read(const pull_request& pull, const std::vector<table_id>& previous) const;
  /// Never fails.
  result<pull_reply> answer(const pull_request& pull,
                            const std::vector<table_id>& previous) const override {
    return read(pull, previous);
  }

  /// As block_store::rewrite(), for the dense tables.
  void rewrite(const std::function<void(const range& where, std::span<const float> old,
                                        std::span<float> next)>& next) {
    blocks_.rewrite(next);
  }

  /// Returns the checksum of all values and their state.
  std::uint32_t checksum() const override { return rows_.checksum(blocks_.checksum(0)); }
  std::vector<partition_image> pin(const std::vector<shard_partition>& partitions) override;

private:
  table_store(block_store blocks, sparse_store rows)
      : blocks_(std::move(blocks)), rows_(std::move(rows)) {}

  block_store blocks_;
  sparse_store rows_;
};

} // namespace troupe
