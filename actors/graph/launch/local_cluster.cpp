#include "actors/graph/launch/local_cluster.hpp"

#include "actors/graph/launch/local_lanes.hpp"
#include "actors/graph/launch/play.hpp"
#include "actors/roles/server/expander_actor.hpp"
#include "base/system/draw_random.hpp"

#include "caf/actor.hpp"
#include "caf/scoped_actor.hpp"
#include "caf/send.hpp"

#include <chrono>
#include <cstddef>
#include <mutex>

namespace troupe {

using namespace std::chrono_literals;

namespace {

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

member_id identity(role as, std::uint32_t index) { return {as, index, {draw_random()}}; }

/// Lets servers find each other while others are still being made.
class server_list {
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

/// Waits until all but `remaining` of the threads that belong to actors have ended. It waits for at
/// most 2 s, as others may have handles of them. A delayed message keeps its receiver, and the
/// receiver its thread. The actor system would stop its clock, which delivers such messages, and
/// then wait for these threads for ever.
void end_threads(caf::scoped_actor& self, std::size_t remaining) {
  auto& system = self->system();
  const auto deadline = std::chrono::steady_clock::now() + 2s;
  while (system.detached_actors() > remaining && std::chrono::steady_clock::now() < deadline) {
    system.clock().cancel_all();
    self->receive(caf::after(1ms) >> [] {});
  }
}

} // namespace

// start() plays the members of each role that launchers start.
static_assert(role_max == role::actor);

result<local_cluster> local_cluster::start(caf::actor_system& system, const plan& what,
                                           const notice_sink& tell, simulation* simulated) {
  const auto plans = member_plans_of(what);
  const auto& job = plans.job;
  const auto servers = std::make_shared<server_list>();
  local_cluster made;
  made.simulation_ = simulated;
  made.threads_before_ = system.detached_actors();
  surroundings around{.system = system,
                      .graph = &what,
                      .functions = what.functions,
                      .given = what.given,
                      .log = log_of("", tell),
                      .simulated = simulated};
  auto leader = play(plans.of(identity(role::coordinator, 0)), around);
  if (!leader)
    return leader.error();
  made.coordinator_ = leader->coordinator;
  if (what.rules().is_one_memory)
    around.shared = std::make_shared<shared_tables>(job, what.given);
  around.connector_of = [connect = made.coordinator()](const member_id&) { return connect; };
  around.to_replicas = [servers](const member_address& peer) -> replica_sink {
    return servers->at(peer.member.index);
  };
  around.to_servers = [servers, simulated](const member_address& to) -> kv {
    const kv there = servers->at(to.member.index);
    return simulated ? simulated->line_to(there) : there;
  };
  // Without actors and channels there are no lanes: a simulation then draws the same times as ever.
  const bool has_lanes = !what.actor_nodes.empty() || !what.channels.empty() || what.job.gossip;
  const auto lanes = has_lanes ? std::make_shared<local_lanes>(system, simulated) : nullptr;
  around.lanes_of = [&system, tell, lanes](const member_id& who, bool is_reached) -> lane_options {
    return {.carry =
              [&system, lanes, who](const auto& room, port_surroundings ports) {
                auto owner = spawn_channels(system, room, lanes->network_of(who), std::move(ports));
                lanes->serve(who, caf::actor_cast<detail::link_owner>(owner));
                return caf::actor_cast<listener_sink>(owner);
              },
            .address = is_reached ? std::string{own_process_address} : "",
            .waits = notices_of(to_string(process_of(who)), tell)};
  };
  for (std::uint32_t i = 0; i < job.servers; ++i)
    servers->add([&] {
      const auto mine = plans.of(identity(role::server, i));
      auto here = around;
      here.log = log_of(to_string(process_of(mine.self())), tell);
      here.waits = notices_of(to_string(process_of(mine.self())), tell);
      return made.take(*play(mine, here)).server;
    });
  auto of_client = around;
  of_client.graph = nullptr;
  made.client_ = [as = plans.of(identity(role::worker, 0)), of_client] {
    return spawn_client(as, of_client);
  };
  if (what.compression) // As a server's process unpacks what links bring.
    around.to_servers = [servers, simulated, job, &system](const member_address& to) -> kv {
      const kv there = spawn_expander(system, job, servers->at(to.member.index));
      return simulated ? simulated->line_to(there) : there;
    };
  const auto per_process = plans.fields.at(role::worker).workers.per_process;
  for (std::uint32_t i = 0; i < job.workers + job.backup_workers; i += per_process)
    made.take(*play(plans.of(identity(role::worker, i)), around));
  for (std::uint32_t i = 0; i < job.actors; ++i)
    made.take(*play(plans.of(identity(role::actor, i)), around));
  made.take(*std::move(leader));
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
  actors_.clear(); // A handle keeps the thread of its actor, too.
  coordinator_ = nullptr;
  client_ = nullptr;
  if (!simulation_)
    end_threads(self, threads_before_);
}

coordinator_connector local_cluster::coordinator() const {
  return [service = coordinator_](const member_handle&) -> coordinator_handle { return service; };
}

store_client local_cluster::client() const { return client_(); }

played local_cluster::take(played member) {
  for (const auto* const some : {&member.path, &member.members})
    actors_.insert(actors_.end(), some->begin(), some->end());
  return member;
}

} // namespace troupe
