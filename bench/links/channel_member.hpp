// A member of a job without the job: ports over links of this process, as an actor of a program has
// them. Benchmarks of channels use it.
#pragma once

#include "actors/graph/launch/actor_config.hpp"
#include "actors/kv.hpp"
#include "actors/roles/links/process_links.hpp"
#include "actors/training/port_room.hpp"
#include "base/buffer.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::bench {

/// Counts, and where to reach a sender that expects answers.
struct bench_head {
  std::uint64_t number = 0;
  std::uint64_t sum = 0;
  std::uint32_t port = 0;
};

class channel_member {
public:
  using body_handle = caf::typed_actor<caf::reacts_to<step_atom>, caf::reacts_to<deliver_atom>>;

  /// `bind`: binds the ports to the room, on the thread that step() and the callbacks have.
  channel_member(std::uint32_t index, std::vector<channel_end> ends, const transport_options& how,
                 std::function<void(port_room&)> bind, std::function<void()> step);
  ~channel_member();
  channel_member(const channel_member&) = delete;
  channel_member& operator=(const channel_member&) = delete;

  std::string address() const { return to_string(where_); }
  /// Connects to a member, as the coordinator's list would make it do.
  void listed(std::uint32_t index, const std::string& address);
  /// Has `step` called.
  void step();
  port_room& room() { return *room_; }

private:
  own_actor_system system_;
  std::unique_ptr<process_links> links_;
  std::shared_ptr<port_room> room_;
  channel_handle channels_;
  body_handle body_;
  endpoint where_;
};

/// Returns one end of a channel.
channel_end bench_end(const std::string& channel, bool sends, std::vector<std::uint32_t> peers,
                      std::size_t window);

} // namespace troupe::bench
