#include "actors/graph/local_cluster.hpp"

#include "actors/draw_random.hpp"
#include "actors/training/worker_actor.hpp"

#include "caf/actor.hpp"
#include "caf/send.hpp"

namespace troupe {

namespace {

template <class Handle>
caf::actor untyped(const Handle& handle) {
  return caf::actor_cast<caf::actor>(handle);
}

} // namespace

result<local_cluster> local_cluster::start(caf::actor_system& system, const job_spec& job,
                                           const graph& described, const run_options& options,
                                           std::optional<std::filesystem::path> checkpoints,
                                           std::function<void(std::string)> log) {
  local_cluster made;
  made.job_ = job;
  coordinator_setup setup;
  setup.job = job;
  setup.options.checkpoints = checkpoints.has_value();
  setup.options.checkpoint_interval = options.checkpoint_interval;
  setup.options.checkpoint_clocks = options.checkpoint_clocks;
  setup.options.resume = options.resume || options.import_file;
  setup.log = std::move(log);
  checkpointer coordinator_files;
  if (checkpoints) {
    auto store = storage::coordinator_store::open(*checkpoints);
    if (!store)
      return store.error();
    setup.store = *std::move(store);
    setup.last_checkpoint = storage::last_number(*checkpoints);
    coordinator_files = spawn_checkpointer(system, {*checkpoints, options.checkpoint_keep});
  }
  auto coordinator = spawn_coordinator(system, std::move(setup), coordinator_files);
  if (!coordinator)
    return coordinator.error();
  made.coordinator_ = *coordinator;
  const auto connect = made.coordinator();
  const auto identity = [](role what, std::uint32_t index) {
    return member_id{what, index, {draw_random()}};
  };
  if (options.sync.mode == consistency_mode::hogwild) {
    made.shared_ = std::make_shared<shared_tables>(job);
    made.actors_.push_back(
      untyped(spawn_hogwild_server(system, identity(role::server, 0), made.shared_, connect)));
  } else {
    for (std::uint32_t i = 0; i < job.servers; ++i) {
      checkpointer files;
      if (checkpoints)
        files = spawn_checkpointer(system, {*checkpoints, options.checkpoint_keep});
      made.servers_.push_back(spawn_server(
        system, {identity(role::server, i), fingerprint(job), {}, {}, options.apply_batch}, connect,
        files));
      made.actors_.push_back(untyped(made.servers_.back()));
    }
  }
  for (std::uint32_t i = 0; i < job.workers; ++i) {
    worker_options how;
    how.self = identity(role::worker, i);
    how.job = job;
    how.pipeline.ahead_max = options.pipeline;
    how.delta_pulls = options.delta_pulls;
    if (auto slow = options.slow_workers.find(i); slow != options.slow_workers.end())
      how.slowness = slow->second;
    const auto values = made.client(system);
    made.actors_.push_back(
      untyped(spawn_worker(system, std::move(how), described.make_trainer(), values, connect)));
    made.actors_.push_back(untyped(values));
  }
  made.actors_.push_back(untyped(made.coordinator_));
  return made;
}

local_cluster::~local_cluster() {
  for (const auto& x : actors_)
    caf::anon_send_exit(x, caf::exit_reason::user_shutdown);
}

coordinator_connector local_cluster::coordinator() const {
  return [service = coordinator_](const member&) -> coordinator_handle { return service; };
}

router_handle local_cluster::client(caf::actor_system& system) const {
  if (shared_)
    return spawn_hogwild(system, shared_);
  return spawn_router(system, job_, [servers = servers_](const chain_entry& entry) -> kv {
    return servers[entry.server.value];
  });
}

} // namespace troupe
