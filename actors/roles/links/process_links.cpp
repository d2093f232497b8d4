#include "actors/roles/links/process_links.hpp"

#include "actors/protocol/process_name.hpp"
#include "actors/roles/links/link_dispatcher.hpp"

#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"

#include <mutex>
#include <utility>

namespace troupe {

namespace {

using detail::link_owner;

// Stands for a member in another process; it is the coordinator's end of that member's uplink.
struct downlink_shell {
  using handle = member_handle::extend_with<link_owner>;
  using pointer = handle::stateful_pointer<downlink_shell>;

  downlink_shell() = default;

  detail::link_dispatcher_ptr dispatcher;
  link_id link;
  member_id peer;
  coordinator_service target;

  static inline const char* name = "downlink";
};

static_assert(!std::is_constructible_v<downlink_shell, caf::event_based_actor*>);

downlink_shell::handle::behavior_type run_downlink(downlink_shell::pointer self,
                                                   detail::link_dispatcher_ptr dispatcher,
                                                   link_id link, member_id peer,
                                                   coordinator_service target) {
  auto& state = self->state;
  state.dispatcher = std::move(dispatcher);
  state.link = link;
  state.peer = peer;
  state.target = std::move(target);
  return {
    [&state](desired_state& what) {
      if (auto alive = state.dispatcher.lock())
        alive->send(state.link, std::move(what));
    },
    [](opened_atom, link_id, const hello&) {},
    [self, &state](lost_atom, link_id, const failure&) {
      self->send(state.target, lost_atom_v, state.peer);
      self->quit();
    },
    [self, &state](link_id, message& what) {
      auto* mine = std::get_if<status_message>(&what);
      if (mine != nullptr && mine->from == state.peer)
        self->send(state.target, std::move(*mine), caf::actor_cast<member_handle>(self));
      else if (auto alive = state.dispatcher.lock())
        alive->close(state.link); // A correct peer sends no other message.
    },
  };
}

} // namespace

struct process_links::services {
  services(caf::actor_system& sys, const send_limits& how)
      : system(sys), limits(how), memory(std::make_shared<push_quota>(how.memory_bytes)) {}

  std::optional<link_owner> accept(link_id link, const hello& peer) {
    const std::lock_guard lock{mutex};
    if (!links)
      return std::nullopt; // The links are ending.
    const bool may_have_lanes = peer.from.role == role::worker || peer.from.role == role::actor;
    if (lanes && (may_have_lanes || !data)) // A collector has lanes to workers, and gives values.
      return lanes;
    if (data)
      return detail::spawn_gateway(system, links, link, peer.from,
                                   peer.sends != 0 && expander ? expander : data, replicas);
    if (control)
      return link_owner{system.spawn(run_downlink, links, link, peer.from, control)};
    return std::nullopt;
  }

  caf::actor_system& system;
  const send_limits limits;
  const std::shared_ptr<push_quota> memory;
  std::mutex mutex;
  kv_service data, expander;
  replica_sink replicas;
  link_owner lanes;
  coordinator_service control;
  std::shared_ptr<detail::link_dispatcher> links;
};

process_links::process_links(caf::actor_system& system, hello self, log_sink log,
                             transport_options options, const send_limits& limits,
                             notice_sink waits)
    : services_(std::make_shared<services>(system, limits)) {
  self.reads = all_encodings;
  services_->links = std::make_shared<detail::link_dispatcher>(
    system, std::move(self),
    [weak = std::weak_ptr(services_)](link_id link, const hello& peer) {
      const auto alive = weak.lock();
      return alive ? alive->accept(link, peer) : std::nullopt;
    },
    std::move(log), std::move(waits), std::move(options));
}

process_links::~process_links() {
  // A callback may hold services_ at this moment, but the links and their thread end here.
  std::shared_ptr<detail::link_dispatcher> links;
  {
    const std::lock_guard lock{services_->mutex};
    links.swap(services_->links);
  }
  // Ends the thread here, as an actor on it may hold the last reference to the link dispatcher.
  links->stop();
}

result<endpoint> process_links::listen(const endpoint& where, std::optional<port_range> ports) {
  return services_->links->transport().listen(where, ports);
}

result<endpoint> process_links::listen_on(int descriptor) {
  return services_->links->transport().listen_on(descriptor);
}

void process_links::serve_values(kv_service target, replica_sink replicas, kv_service expander) {
  const std::lock_guard lock{services_->mutex};
  services_->expander = std::move(expander);
  services_->data = std::move(target);
  services_->replicas = std::move(replicas);
}

void process_links::serve_lanes(detail::link_owner owner) {
  const std::lock_guard lock{services_->mutex};
  services_->lanes = std::move(owner);
}

lane_network process_links::lanes() const {
  const auto with = [links = detail::link_dispatcher_ptr{services_->links}](const auto& call) {
    if (const auto alive = links.lock())
      call(*alive);
  };
  return {
    [with](const member_address& to, const detail::link_owner& owner) {
      link_id link;
      with([&](detail::link_dispatcher& alive) {
        const auto where = parse_endpoint(to.address);
        link = alive.connect(where ? *where : endpoint{}, to_string(process_of(to.member)), owner);
      });
      return link;
    },
    [with](link_id link, const message& what) {
      with([&](detail::link_dispatcher& alive) { alive.send(link, what); });
    },
    [with](link_id link) { with([&](detail::link_dispatcher& alive) { alive.close(link); }); }};
}

void process_links::serve_coordinator(coordinator_service target) {
  const std::lock_guard lock{services_->mutex};
  services_->control = std::move(target);
}

std::function<kv_service(const member_address&)> process_links::to_servers() const {
  return [&system = services_->system, links = detail::link_dispatcher_ptr{services_->links},
          limits = services_->limits, memory = services_->memory](const member_address& there) {
    const auto where = parse_endpoint(there.address);
    return detail::spawn_remote(system, links, where ? *where : endpoint{}, there.member, limits,
                                memory);
  };
}

std::function<replica_sink(const member_address&)> process_links::to_replicas() const {
  return [&system = services_->system,
          links = detail::link_dispatcher_ptr{services_->links}](const member_address& peer) {
    const auto where = parse_endpoint(peer.address);
    return detail::spawn_replica_link(system, links, where ? *where : endpoint{}, peer.member);
  };
}

std::chrono::nanoseconds process_links::window_wait() const { return services_->memory->waited(); }

request_traffic process_links::traffic() const { return services_->memory->traffic(); }

coordinator_connector process_links::to_coordinator(const endpoint& where,
                                                    std::function<void(failure)> refused) const {
  return [&system = services_->system, links = detail::link_dispatcher_ptr{services_->links}, where,
          refused = std::move(refused)](member_handle self) {
    return detail::spawn_uplink(system, links, where, std::move(self), refused);
  };
}

} // namespace troupe
