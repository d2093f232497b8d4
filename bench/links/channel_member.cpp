#include "bench/links/channel_member.hpp"

#include "actors/detached.hpp"
#include "actors/training/head_type.hpp"
#include "serialization/wire.hpp"

#include "caf/send.hpp"
#include "caf/typed_event_based_actor.hpp"

#include <unistd.h>

#include <cstdio>
#include <stdexcept>
#include <utility>

namespace troupe::bench {

namespace {

member_id member_at(std::uint32_t index) { return {role::actor, index, incarnation_id{1}}; }

channel_member::body_handle::behavior_type run_body(channel_member::body_handle::pointer,
                                                    const std::shared_ptr<port_room>& room,
                                                    const std::function<void(port_room&)>& bind,
                                                    std::function<void()> step) {
  bind(*room);
  return {
    [step = std::move(step)](step_atom) { step(); },
    [room](deliver_atom) { room->deliver(); },
  };
}

[[noreturn]] void give_up(const failure& why) {
  std::fprintf(stderr, "a channel failed: %s\n", why.text.c_str());
  _exit(1);
}

} // namespace

channel_member::channel_member(std::uint32_t index, std::vector<channel_end> ends,
                               const transport_options& how, std::function<void(port_room&)> bind,
                               std::function<void()> step)
    : system_(make_actor_system()) {
  auto& system = *system_.system;
  hello self{.version = wire::protocol_version, .job = 1, .secret = 0, .from = member_at(index)};
  links_ = std::make_unique<process_links>(system, self, log_sink{}, how);
  room_ = std::make_shared<port_room>(member_at(index), std::move(ends));
  body_ = spawn_detached(system, run_body, room_, std::move(bind), std::move(step));
  port_surroundings around;
  around.wake = [to = body_] { caf::anon_send(to, deliver_atom_v); };
  around.fail = [](const failure& why) { give_up(why); };
  channels_ = spawn_channels(system, room_, links_->lanes(), std::move(around));
  links_->serve_lanes(caf::actor_cast<detail::link_owner>(channels_));
  const auto listening = links_->listen({"127.0.0.1", 0});
  if (!listening)
    throw std::runtime_error{listening.error().text};
  where_ = *listening;
  caf::anon_send(body_, deliver_atom_v); // Events may have come before the ports were bound.
}

channel_member::~channel_member() {
  caf::anon_send_exit(channels_, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(body_, caf::exit_reason::user_shutdown);
}

void channel_member::listed(std::uint32_t index, const std::string& address) {
  caf::anon_send(channels_, std::vector<member_address>{{member_at(index), address}});
}

void channel_member::step() { caf::anon_send(body_, step_atom_v); }

channel_end bench_end(const std::string& channel, bool sends, std::vector<std::uint32_t> peers,
                      std::size_t window) {
  channel_end made{.channel = channel,
                   .port = channel,
                   .sends = sends,
                   .head = head_type_of<bench_head>(),
                   .peers = {},
                   .window = static_cast<std::uint32_t>(window)};
  for (const auto index : peers)
    made.peers.push_back({role::actor, index, {}});
  return made;
}

} // namespace troupe::bench
