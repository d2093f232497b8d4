#include "actors/graph/launch/local_cluster.hpp"

#include "actors/graph/options/compression_flags.hpp"
#include "actors/graph/options/recording.hpp"
#include "actors/graph/options/straggler_flags.hpp"
#include "actors/roles/worker/codec_actor.hpp"
#include "actors/roles/worker/reducer_actor.hpp"
#include "actors/roles/worker/worker_actor.hpp"
#include "base/system/draw_random.hpp"
#include "base/system/machine_name.hpp"
#include "storage/coordinator_store.hpp"

#include "caf/actor.hpp"
#include "caf/scoped_actor.hpp"
#include "caf/send.hpp"

#include <mutex>

namespace troupe {

namespace {

using namespace std::chrono_literals;

template <class Handle>
caf::actor untyped(const Handle& handle) {
  return caf::actor_cast<caf::actor>(handle);
}

} // namespace

/// Lets servers find each other while others are still being made.
class local_cluster::server_list {
public:
  /// Spawns a server under the lock, so that a server that learns of it finds it in the list.
  template <class Spawn>
  server_handle add(Spawn spawn) {
    const std::lock_guard lock{mutex_};
    return servers_.emplace_back(spawn());
  }
  server_handle at(std::uint32_t index) const {
    const std::lock_guard lock{mutex_};
    return servers_.at(index);
  }

private:
  mutable std::mutex mutex_;
  std::vector<server_handle> servers_;
};

result<local_cluster> local_cluster::start(caf::actor_system& system, const job_spec& job,
                                           const graph& described, const run_options& options,
                                           std::optional<std::filesystem::path> checkpoints,
                                           log_sink log, simulation* simulated) {
  local_cluster made;
  made.simulation_ = simulated;
  made.job_ = job;
  made.routing_ = routing_of(options);
  coordinator_setup setup;
  setup.job = job;
  setup.options.checkpoints = checkpoints.has_value();
  setup.options.checkpointing = options.checkpointing;
  setup.options.stragglers = straggler_rules(options);
  setup.options.resume = options.resume || options.import_file;
  setup.scrub_interval = options.scrub_interval;
  setup.log = log;
  checkpointer coordinator_files;
  if (checkpoints) {
    auto store = storage::coordinator_store::open(*checkpoints);
    if (!store)
      return store.error();
    setup.store = *std::move(store);
    setup.last_checkpoint = storage::last_number(*checkpoints);
    coordinator_files = spawn_checkpointer(system, {*checkpoints, {}, options.checkpointing.keep});
  }
  auto coordinator = spawn_coordinator(system, std::move(setup), coordinator_files);
  if (!coordinator)
    return coordinator.error();
  made.coordinator_ = *coordinator;
  const auto connect = made.coordinator();
  const auto compression = compression_of(options, job);
  if (!compression)
    return compression.error();
  const auto& compressed = *compression;
  const auto tell = log ? std::move(log) : [](log_level, const std::string&) {};
  const auto identity = [](role what, std::uint32_t index) {
    return member_id{what, index, {draw_random()}};
  };
  if (options.sync.mode == consistency_mode::hogwild) {
    made.shared_ = std::make_shared<shared_tables>(job);
    made.actors_.push_back(
      untyped(spawn_hogwild_server(system, identity(role::server, 0), made.shared_, connect)));
  } else {
    made.servers_ = std::make_shared<server_list>();
    for (std::uint32_t i = 0; i < job.servers; ++i) {
      checkpointer files;
      if (checkpoints)
        files = spawn_checkpointer(system, {*checkpoints, {i}, options.checkpointing.keep});
      server_options how{identity(role::server, i),
                         fingerprint(job),
                         {},
                         [servers = made.servers_](const server_address& peer) -> replica_sink {
                           return servers->at(peer.server.index);
                         }};
      how.apply_batch = options.apply_batch;
      how.record = recording_of(options);
      if (simulated) {
        how.own_thread = false;
        how.boot_clock = simulated->clock();
      }
      made.actors_.push_back(untyped(
        made.servers_->add([&] { return spawn_server(system, std::move(how), connect, files); })));
    }
  }
  const auto tally = std::make_shared<reducer_tally>(job.workers + job.backup_workers);
  router_handle values;
  for (std::uint32_t i = 0; i < job.workers + job.backup_workers; ++i) {
    worker_options how;
    how.self = identity(role::worker, i);
    how.job = job;
    how.host = machine_name();
    how.step_planner.ahead_max = options.pull_ahead;
    how.delta_pulls = options.delta_pulls;
    // In bsp the server adds up each slot by itself.
    how.keep_on_device = options.workers_per_process > 1 && !any_bsp(job);
    const auto slow = options.slow_workers.find(i);
    const auto longer = slow == options.slow_workers.end() ? 0ms : slow->second;
    if (longer > 0ms)
      how.slowness = [longer] { return longer; };
    if (simulated) {
      how.own_thread = false;
      how.slowness = simulated->step_times(longer);
    }
    const bool is_first = i % options.workers_per_process == 0;
    if (is_first) {
      values = made.client(system, compressed.has_value());
      made.actors_.push_back(untyped(values));
      if (compressed)
        values = spawn_codec(system, job, *compressed, values, tell);
    }
    if (is_first && options.workers_per_process > 1) {
      values = spawn_reducer(system, job, {options.reduce_wait}, values, tally,
                             how.keep_on_device && !simulated);
      made.actors_.push_back(untyped(values));
    }
    if (options.workers_per_process > 1) // Worker 0 counts the sums of all reducers.
      how.reduced = [tally, i](worker_counters& counters) { count(*tally, i, i == 0, counters); };
    made.actors_.push_back(
      untyped(spawn_worker(system, std::move(how), described.make_trainer(i), values, connect)));
  }
  made.actors_.push_back(untyped(made.coordinator_));
  return made;
}

local_cluster::~local_cluster() {
  if (actors_.empty())
    return;
  for (const auto& x : actors_)
    caf::anon_send_exit(x, caf::exit_reason::user_shutdown);
  if (simulation_)
    simulation_->pass({});
  // The scheduler must live until each trainer's thread has handed its worker over to it.
  caf::scoped_actor self{actors_.front()->home_system()};
  for (const auto& x : actors_)
    self->wait_for(x);
}

coordinator_connector local_cluster::coordinator() const {
  return [service = coordinator_](const member_handle&) -> coordinator_handle { return service; };
}

router_handle local_cluster::client(caf::actor_system& system, bool compresses) const {
  if (shared_)
    return spawn_hogwild(system, shared_);
  return spawn_router(
    system, job_,
    [servers = servers_, simulated = simulation_, compresses, &system,
     job = job_](const chain_entry& entry) -> kv {
      const kv_service server = servers->at(entry.head.index);
      const kv there = compresses ? spawn_expander(system, job, server) : server;
      return simulated ? simulated->line_to(there) : there;
    },
    routing_);
}

} // namespace troupe
