// Has the values of an own store: a keeper of the program.
#pragma once

#include "actors/training/keeper.hpp"
#include "actors/tables/value_store.hpp"
#include "base/buffer.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The keeper of a server, and its node's name and notes.
struct keeper_options {
  keeper_factory make;
  std::string node;                       ///< For messages and notes.
  std::shared_ptr<program_notes> notes{}; ///< May be null.
};

/// Invariant: after an exception of the keeper, every request fails with its text, and the keeper
/// is not called any more.
class keeper_store final : public value_store {
public:
  /// Makes a keeper; with an image, it loads that. Errors: contract_broken (the keeper threw).
  static result<std::shared_ptr<value_store>> made(const job_spec& job,
                                                   const std::vector<partition_image>& images,
                                                   const keeper_options& how,
                                                   std::shared_ptr<buffer_pool> pool);

  result<void> check(const push_request& push) const override;
  result<void> check(const pull_request& pull) const override;
  result<void> check_finite(const push_request& push) const override;

  result<void> apply(const apply_effect& effect,
                     std::span<const push_request* const> pushes) override;
  /// Applies the push at once, as a keeper may refuse it.
  result<void> admit(const apply_effect& effect, const push_request& push) override;
  void apply_admitted(std::span<const block_store::admitted_push>) override {}

  result<pull_reply> answer(const pull_request& pull,
                            const std::vector<table_id>& previous) const override;
  /// Never compared, as an own store has no replicas.
  std::uint32_t checksum() const override { return 0; }
  std::vector<partition_image> pin(const std::vector<shard_partition>& partitions) override;
  const failure* defect() const override { return broken_ ? &*broken_ : nullptr; }

private:
  keeper_store(const job_spec& job, const keeper_options& how, std::shared_ptr<buffer_pool> pool)
      : job_(job), how_(how), pool_(std::move(pool)) {}

  /// Calls a function of the keeper. If it throws, the failure names `function`, and `push` unless
  /// it is null.
  template <class Call>
  result<void> guarded(const char* function, Call call, const push_request* push = nullptr) const;
  result<void> check(const range& where) const;
  result<void> apply(const push_request& push);

  job_spec job_;
  keeper_options how_;
  std::shared_ptr<buffer_pool> pool_;
  std::unique_ptr<keeper> keeper_;
  mutable std::optional<failure> broken_; ///< Set once the keeper has thrown.
};

} // namespace troupe
