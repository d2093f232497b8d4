#include "actors/roles/server/server_actor.hpp"

#include "actors/member_port.hpp"
#include "actors/roles/server/replica_runner.hpp"
#include "base/clock.hpp"

#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"
#include "caf/typed_response_promise.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

namespace troupe {

namespace {

struct server_shell {
  using handle = server_context::handle;
  using pointer = handle::stateful_pointer<server_shell>;
  using promise = caf::typed_response_promise<reply>;

  server_shell() = default;

  void init(pointer owner, server_options how, const coordinator_connector& connect,
            checkpointer files) {
    self = owner;
    shared.self = owner;
    shared.options = std::move(how);
    shared.storage = std::move(files);
    shared.send = [this](const member_id& to, replica_message what) { send(to, std::move(what)); };
    shared.report = [this] { send_report(); };
    port.open(self, shared.options.self, shared.options.job, connect, shared.options.address);
    self->delayed_send(self, tick_interval, tick_atom_v);
    send_report();
  }

  // -- data path --

  promise ask(request what) {
    auto open = self->make_response_promise<reply>();
    accept(open, std::move(what));
    shared.answers.send(self);
    return open;
  }

  void ask(request_list& what, const answer_sink& to) {
    for (auto& each : what.items) {
      accept(numbered_responder{to, each.number}, std::move(each.what));
      shared.answers.send_if_much(self);
    }
    shared.answers.send(self);
  }

  void accept(responder by, request what) {
    const auto found = replicas.find(what.shard);
    if (found == replicas.end())
      return shared.answers.add(
        by, failure{errc::not_ready, "the server has no part in this shard (yet)"});
    found->second->ask(std::move(by), std::move(what));
  }

  void end_gathering() {
    for (auto& [unused, replica] : replicas)
      replica->end_gathering();
    shared.answers.send(self);
  }

  // -- other servers --

  void receive(const replica_message& what) {
    if (const auto found = replicas.find(what.shard); found != replicas.end())
      found->second->receive(what);
    shared.answers.send(self);
  }

  /// Sends a message to a replica. A message to an unknown address is lost, as any message between
  /// replicas may be.
  void send(const member_id& to, replica_message what) {
    const auto where = std::ranges::find(listeners, to, &member_address::member);
    if (where == listeners.end() || !shared.options.to_peer)
      return;
    auto& known = peers[to];
    if (!known)
      known = shared.options.to_peer(*where);
    self->send(known, std::move(what));
  }

  // -- control path --

  void reconcile(const desired_state& what) {
    const auto* mine = port.take<desired_server>(what);
    if (mine == nullptr)
      return;
    if (what.stop)
      return end(what);
    listeners = what.listeners;
    std::erase_if(peers, [this](const auto& known) {
      return std::ranges::find(listeners, known.first, &member_address::member) == listeners.end();
    });
    const auto shared_desired = std::make_shared<const desired_server>(*mine);
    for (const auto& [shard, record] : shared_desired->chains)
      replica_of(shard).reconcile(record, shared_desired);
    shared.answers.send(self);
    const bool admitting = std::any_of(mine->workers.begin(), mine->workers.end(),
                                       [](const clock_entry& x) { return !x.known; });
    if (admitting || statuses() != told)
      send_report();
  }

  void end(const desired_state& what) {
    for (auto& [unused, replica] : replicas) {
      replica->fail_open({errc::peer_lost, "the server ends"});
      replica->flush_record();
    }
    shared.answers.send(self);
    self->quit(reason_to_end(what));
  }

  replica_runner& replica_of(shard_id shard) {
    auto& mine = replicas[shard];
    if (!mine)
      mine = std::make_unique<replica_runner>(shared, shard);
    return *mine;
  }

  void tick() {
    for (auto& [unused, replica] : replicas)
      replica->tick();
    shared.answers.send(self);
    if (port.due() || statuses() != told)
      send_report();
    self->delayed_send(self, tick_interval, tick_atom_v);
  }

  std::vector<chain_status> statuses() const {
    std::vector<chain_status> all;
    for (const auto& [unused, replica] : replicas)
      all.push_back(replica->status());
    return all;
  }

  server_counters counters() const {
    server_counters all;
    for (const auto& [unused, replica] : replicas)
      add(all, replica->counters());
    return all;
  }

  void send_report() {
    server_status body;
    body.clock_ns = static_cast<std::uint64_t>(shared.options.boot_clock().count());
    for (const auto& [unused, replica] : replicas)
      body.chains.push_back(replica->report());
    body.counters = counters();
    told = statuses();
    port.send(std::move(body));
  }

  // Also the resolution at which waiting pulls time out.
  static constexpr std::chrono::milliseconds tick_interval{50};

  pointer self = nullptr;
  member_port port;
  server_context shared;
  std::map<shard_id, std::unique_ptr<replica_runner>> replicas;
  std::vector<member_address> listeners;
  std::map<member_id, replica_sink> peers;
  std::vector<chain_status> told; ///< As last reported.

  static inline const char* name = "server";
};

static_assert(!std::is_constructible_v<server_shell, caf::event_based_actor*>);

server_shell::handle::behavior_type run_server(server_shell::pointer self, server_options options,
                                               coordinator_connector connect,
                                               checkpointer storage) {
  self->state.init(self, std::move(options), std::move(connect), std::move(storage));
  auto& state = self->state;
  return {
    [&state](request& what) { return state.ask(std::move(what)); },
    [&state](request_list& what, const answer_sink& to) { state.ask(what, to); },
    [&state](const replica_message& what) { state.receive(what); },
    [&state](const desired_state& what) { state.reconcile(what); },
    [&state](step_atom) { state.end_gathering(); },
    [&state](tick_atom) { state.tick(); },
  };
}

} // namespace

server_handle spawn_server(caf::actor_system& system, server_options options,
                           coordinator_connector connect, checkpointer storage) {
  return system.spawn(run_server, std::move(options), std::move(connect), std::move(storage));
}

} // namespace troupe
