// Repeats a recorded run in one thread, from its trace, with the same resulting bytes. Each
// gradient is computed from the values that its worker read, and each shard takes its steps in the
// order in which the servers took them.
#pragma once

#include "actors/protocol/worker/router.hpp"
#include "actors/tables/table_store.hpp"
#include "actors/training/cached_values.hpp"
#include "actors/training/gradient_computer.hpp"
#include "actors/training/pure_path.hpp"
#include "storage/push_history.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace troupe {

/// A gradient reads each shard when the shard has the version that the trace names, and is computed
/// once it has read all shards. A shard takes its next step when that step's gradients are
/// computed. In a run, each gradient was computed from earlier values, so a replay of its trace
/// always goes on.
///
/// Capacity: the values, and the gradients and pinned blocks that were open at a time in the run.
class replay {
public:
  /// `given`: the first values of tables that begin with a file's. `stages`: those of the program.
  /// Errors: invalid_argument (a shard went back to a checkpoint, or a stage was not made), damaged
  /// (a shard is missing, or a batch is not in the job).
  static result<std::unique_ptr<replay>> begin(storage::push_history recorded,
                                               const trainer_factory& make,
                                               const server_functions& functions = {},
                                               given_values given = {},
                                               const std::vector<pure_stage>& stages = {});

  /// Takes all steps; calls `stepped` after each. Errors: damaged (values were read that no shard
  /// ever has; the text names the step), invalid_argument (the trainer threw this text),
  /// non_finite, contract_broken (a stage is not pure).
  result<void> run(const std::function<void()>& stepped);

  std::uint64_t steps() const { return steps_; } ///< Taken by all shards together.
  std::uint64_t steps_in_all() const;
  std::uint64_t gradients() const { return computed_; }
  /// Returns the mean loss of the newest epoch; 0 if it has no losses.
  double loss() const;

  /// Returns present values. Requires: `what` fits the job.
  result<pull_reply> read(const pull_request& what) const;
  /// Returns all partitions, without applied batches.
  std::vector<partition_image> images();

private:
  using gradient_key = std::tuple<worker_id, incarnation_id, batch_id>;

  struct open_gradient {
    step_header step;
    std::vector<std::optional<std::uint64_t>> bases; ///< One for each shard.
    bool opened = false;
    std::optional<router> way; ///< Set from its first read until it is computed.
    request_token pull{0};     ///< In path_.
    std::vector<row_keys> rows;
    std::vector<std::optional<send_part_effect>> asked; ///< One for each shard, until it answers.
    std::vector<std::shared_ptr<const push_request>>
      parts; ///< One for each shard, until it takes it.
    bool computed = false;
  };
  struct chain_state {
    std::shared_ptr<table_store> values;
    std::vector<partition_id> partitions;
    std::vector<storage::trace_entry> records;
    std::size_t next = 0; ///< Position in `records`.
    std::uint64_t version = 0;
    std::multimap<std::uint64_t, open_gradient*> reads; ///< By version.
  };

  replay(job_spec job, const trainer_factory& make, const server_functions& functions,
         given_values given);
  result<void> add(storage::chain_history& history);
  open_gradient& gradient_of(const storage::trace_entry& record);
  router make_router() const;

  result<void> open(open_gradient& what);
  result<void> answer_reads(std::size_t at);
  result<void> follow(open_gradient& what, const router_effects& effects);
  result<void> compute(open_gradient& what, const pull_reply& given);
  result<pull_request> pass_on(request_token token, pull_request pull);
  result<pull_reply> pass_back(request_token token, pull_reply answer);
  result<push_request> pass_on(push_request push);
  result<bool> step(std::size_t at);
  failure stalled() const;

  job_spec job_;
  server_functions functions_;
  given_values given_;
  bool by_clocks_;
  std::shared_ptr<buffer_pool> pool_ = std::make_shared<buffer_pool>();
  gradient_computer computer_;
  pure_path path_;
  std::uint64_t next_token_ = 1; ///< Of path_.
  cached_ptr known_;             ///< The frozen tables, which no gradient needs to read.
  std::vector<table_id> all_tables_;
  troupe::view view_;
  std::vector<chain_state> chains_;
  std::map<gradient_key, open_gradient> gradients_;
  std::uint64_t steps_ = 0;
  std::uint64_t computed_ = 0;
  std::map<std::uint64_t, std::pair<double, std::uint64_t>> losses_; ///< Sum and number, by epoch.
};

} // namespace troupe
