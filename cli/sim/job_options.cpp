#include "cli/sim/job_options.hpp"

#include "actors/protocol/worker/flow_control.hpp"

namespace troupe::sim {

namespace {

/// Draws from a copy, so that a job without reducers does not depend on these draws.
void draw_processes(std::mt19937_64 random, job_options& what) {
  const auto pick = [&](std::uint32_t low, std::uint32_t high) {
    return std::uniform_int_distribution<std::uint32_t>(low, high)(random);
  };
  random.discard(100'000); // The history draws the next numbers of the copy as well.
  const bool has_small_window = pick(1, 3) == 1;
  const auto more_pulls = pick(0, 3);
  if (what.job.workers + what.job.backup_workers >= 2 && pick(1, 3) == 1) {
    what.workers_per_process = pick(2, 4);
    what.reduce_wait = std::chrono::milliseconds{pick(5, 100)};
  }
  send_limits limits;
  if (has_small_window)
    limits.window_bytes = (1 + more_pulls) * what.job.tables.front().size() * sizeof(float);
  what.window_bytes = limits_of(what.job, limits).window_bytes;
  what.has_stage = pick(1, 3) == 1;
  if (what.has_stage && pick(1, 2) == 1)
    what.stage_faults =
      fault_rates{.lost = 0.05, .repeated = 0.05, .delay = std::chrono::milliseconds{pick(0, 10)}};
}

} // namespace

job_options draw_job(std::mt19937_64& random, bool no_faults) {
  using namespace std::chrono_literals;
  const auto pick = [&](std::uint32_t low, std::uint32_t high) {
    return std::uniform_int_distribution<std::uint32_t>(low, high)(random);
  };
  const auto one_of = [&](std::uint32_t count) { return pick(1, count) == 1; };
  job_options what;
  auto& job = what.job;
  job.name = "simulated";
  job.partitions = 8;
  job.servers = pick(1, 3);
  job.replicas = pick(1, job.servers);
  job.shards = one_of(3) ? pick(1, 3) : 0;
  job.durability = one_of(4) ? durability_mode::log : durability_mode::memory;
  table_spec table;
  table.name = "w";
  table.shape = {std::uint64_t{job.partitions} * 4096};
  const auto& mode =
    simulated_modes[pick(0, static_cast<std::uint32_t>(simulated_modes.size() - 1))];
  table.sync.mode = mode.mode;
  table.sync.staleness_clocks = mode.has_slack ? pick(0, 3) : 0;
  job.tables = {table};
  const bool has_slow = one_of(3);
  job.workers = has_slow ? pick(5, 7) : pick(1, 4);
  what.slow_workers = has_slow ? 1 : 0;
  const bool has_spares = mode.clock_updates && one_of(has_slow ? 2 : 4);
  job.backup_workers = has_spares ? pick(1, 2) : 0;
  job.batch_samples = 1;
  job.epochs = pick(1, 3);
  const std::uint32_t batches = has_slow ? pick(250, 500) : pick(20, 80) * job.workers;
  job.samples = std::max(1U, batches / static_cast<std::uint32_t>(job.epochs));
  what.spare_servers = one_of(2) ? pick(1, 2) : 0;
  what.lease_batches = pick(1, 20);
  what.checkpoint_clocks = one_of(3) ? pick(1, 20) : 0;
  what.pulls_ahead = mode.pulls_wait() ? 0 : pick(0, 2);
  what.reads = one_of(2) ? read_target::any : read_target::head;
  what.resume = !no_faults && one_of(6);
  draw_processes(random, what);
  what.leases_ahead = pick(1, 2);
  return what;
}

void make_lines(job_options& what, std::uint32_t parts) {
  auto& tables = what.job.tables;
  if (tables.front().sync.traits().clock_updates)
    return;
  what.line_parts = parts;
  for (std::uint32_t i = 1; i < parts; ++i) {
    tables.push_back(tables.front());
    tables.back().name += std::to_string(i);
  }
}

/// Returns the options of real jobs with shorter times, so that more happens in a history.
coordinator_options coordinator_options_of(const job_options& what, bool resume) {
  using namespace std::chrono_literals;
  coordinator_options how;
  how.ledger.lease_batches = what.lease_batches;
  how.ledger.leases_ahead = what.leases_ahead;
  how.liveness_timeout = 1500ms;
  how.gather_timeout = 1000ms;
  how.recovery_timeout = 800ms;
  how.return_timeout = 1500ms;
  how.audit_grace = 400ms;
  how.checkpointing.interval = 400ms;
  how.checkpointing.clocks = what.checkpoint_clocks;
  how.resume = resume;
  if (what.slow_workers > 0) {
    how.stragglers = hurried({}, 20);
    how.stragglers->reporting_min = 3;
  }
  return how;
}

} // namespace troupe::sim
