#include "actors/graph/launch/local_cluster.hpp"

#include "actors/graph/launch/build_workers.hpp"
#include "actors/graph/launch/take_fields.hpp"
#include "actors/graph/options/fields.hpp"
#include "actors/graph/options/recording.hpp"
#include "actors/roles/server/expander_actor.hpp"
#include "base/system/draw_random.hpp"
#include "storage/coordinator_store.hpp"

#include "caf/actor.hpp"
#include "caf/scoped_actor.hpp"
#include "caf/send.hpp"

#include <algorithm>
#include <mutex>

namespace troupe {

namespace {

using namespace std::chrono_literals;

/// Returns a log whose lines are notices. `member`: empty where the lines name it. `tell` may be
/// null.
log_sink log_of(const std::string& member, const notice_sink& tell) {
  return [tell, member](log_level level, const std::string& text) {
    if (tell)
      tell({level, {}, member, text});
  };
}

/// Returns a sink for notices of the member. `tell` may be null.
notice_sink notices_of(const std::string& member, const notice_sink& tell) {
  return [tell, member](notice what) {
    what.member = member;
    if (tell)
      tell(what);
  };
}

/// Fills in the options of servers that the plan has.
void take_plan(const plan& what, const notice_sink& tell, server_options& how) {
  take_fields(carried_to(role::server, what.options), how);
  const auto member = to_string(process_of(how.self));
  how.log = log_of(member, tell);
  how.waits = notices_of(member, tell);
  how.functions = what.functions;
  how.given = what.given;
  how.record = recording_of(what.options, how.log);
  if (what.make_keeper)
    how.keeper = keeper_of(what, how.log);
}

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

result<local_cluster> local_cluster::start(caf::actor_system& system, const plan& what,
                                           std::optional<std::filesystem::path> checkpoints,
                                           notice_sink tell, simulation* simulated) {
  const auto& options = what.options;
  const auto& job = what.job;
  local_cluster made;
  made.simulation_ = simulated;
  made.job_ = job;
  made.routing_ = routing_of(options);
  coordinator_setup setup;
  setup.job = job;
  setup.options.checkpoints = checkpoints.has_value();
  take_fields(carried_to(role::coordinator, options), setup);
  setup.options.resume = options.resume || options.import_file;
  setup.log = log_of("", tell);
  checkpointer coordinator_files;
  if (checkpoints) {
    auto store = storage::coordinator_store::open(*checkpoints);
    if (!store)
      return store.error();
    setup.store = *std::move(store);
    setup.last_checkpoint = storage::last_number(*checkpoints);
    coordinator_files =
      spawn_checkpointer(system, {*checkpoints, {}, options.servers.checkpoints.keep});
  }
  auto coordinator = spawn_coordinator(system, std::move(setup), coordinator_files);
  if (!coordinator)
    return coordinator.error();
  made.coordinator_ = *coordinator;
  const auto connect = made.coordinator();
  const auto identity = [](role as, std::uint32_t index) {
    return member_id{as, index, {draw_random()}};
  };
  if (what.rules().is_one_memory) {
    made.shared_ = std::make_shared<shared_tables>(job, what.given);
    made.actors_.push_back(
      untyped(spawn_hogwild_server(system, identity(role::server, 0), made.shared_, connect)));
  } else {
    made.servers_ = std::make_shared<server_list>();
    for (std::uint32_t i = 0; i < job.servers; ++i) {
      checkpointer files;
      if (checkpoints)
        files = spawn_checkpointer(system, {*checkpoints, {i}, options.servers.checkpoints.keep});
      server_options how{identity(role::server, i), fingerprint(job)};
      how.to_peer = [servers = made.servers_](const member_address& peer) -> replica_sink {
        return servers->at(peer.member.index);
      };
      take_plan(what, tell, how);
      if (simulated) {
        how.own_thread = false;
        how.boot_clock = simulated->clock();
      }
      made.actors_.push_back(untyped(
        made.servers_->add([&] { return spawn_server(system, std::move(how), connect, files); })));
    }
  }
  worker_setup setup_of_workers{.system = system,
                                .what = what,
                                .job = job,
                                .log = log_of("", tell),
                                .connector_of = [connect](const member_id&) { return connect; }};
  if (simulated)
    setup_of_workers.step_times = [simulated](std::chrono::milliseconds longer) {
      return simulated->step_times(longer);
    };
  const auto workers = job.workers + job.backup_workers;
  for (std::uint32_t i = 0; i < workers; i += options.workers.per_process) {
    std::vector<member_id> group;
    for (auto j = i; j < std::min(i + options.workers.per_process, workers); ++j)
      group.push_back(identity(role::worker, j));
    const auto store = made.client(system, what.compression.has_value());
    made.actors_.push_back(untyped(store.values));
    const auto built = build_workers(setup_of_workers, group, store);
    made.actors_.insert(made.actors_.end(), built.stages.begin(), built.stages.end());
    made.actors_.insert(made.actors_.end(), built.workers.begin(), built.workers.end());
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

store_client local_cluster::client(caf::actor_system& system, bool compresses) const {
  if (shared_)
    return {spawn_hogwild(system, shared_)};
  const auto router = spawn_router(
    system, job_,
    [servers = servers_, simulated = simulation_, compresses, &system,
     job = job_](const member_address& to) -> kv {
      const kv_service server = servers->at(to.member.index);
      const kv there = compresses ? spawn_expander(system, job, server) : server;
      return simulated ? simulated->line_to(there) : there;
    },
    routing_);
  return {router, router};
}

} // namespace troupe
