// Decides when the requests to one peer leave: which wait for room, which share a frame, and which
// have missed their deadline. A plain state machine; the caller owns the link and the replies.
#pragma once

#include "actors/protocol/worker/flow_control.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/growing_map.hpp"
#include "serialization/messages.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <variant>
#include <vector>

namespace troupe {

struct request_window_options {
  /// Bytes that requests on the way carry or ask for. One request alone may be larger.
  std::uint64_t window_bytes = send_limits{}.window_bytes;
  /// Longest wait for one reply, beside the time for the payloads of all open requests.
  std::chrono::nanoseconds timeout{0};
};

// -- effects --

/// Open a link to the peer. Then call opened() or lost().
struct connect_effect {};
/// Send these requests in one frame over the open link.
struct send_requests_effect {
  request_list requests;
};
/// Call flush() after the events that wait already.
struct flush_soon_effect {};
/// Answer the request with this failure.
struct end_request_effect {
  std::uint64_t number = 0;
  failure why;
};

using window_effect =
  std::variant<connect_effect, send_requests_effect, flush_soon_effect, end_request_effect>;
using window_effects = std::vector<window_effect>;

/// Invariants:
/// (1) each request ends once: by answered() that returns true, or by an end_request_effect. Held
///     by: assert in release().
/// (2) requests leave in the order in which they were added, but for those that may overtake. Held
///     by: assert in add().
/// (3) requests on the way carry or ask for window_bytes at most, or are one request, or overtake.
///     Held by: assert in gather().
/// (4) the process's push memory is taken for each push that waits, and twice for one on the way.
///     Held by: assert in release().
class request_window {
public:
  request_window(request_window_options options, std::shared_ptr<push_quota> memory);

  /// Adds a request. Numbers must grow. Ends it with `overloaded` if the push memory is used up.
  void add(std::uint64_t number, request what, time_point now, window_effects& effects);
  /// Sends the gathered requests.
  void flush(window_effects& effects);
  /// Takes the reply to a request; the caller passes it on. Returns false for a request that has
  /// ended or never left; its reply is to be dropped.
  bool answered(std::uint64_t number, time_point now, window_effects& effects);
  /// Ends requests whose deadline has passed. Call it about every 500 ms while is_empty() is false.
  void expire(time_point now, window_effects& effects);

  void opened(time_point now, window_effects& effects);
  /// Ends all requests with peer_lost. The next request connects again.
  void lost(const failure& why, window_effects& effects);

  bool is_empty() const { return open_.empty(); }

private:
  enum class link_state : std::uint8_t { closed, connecting, open };
  struct open_request {
    time_point deadline{0};
    std::uint64_t pushed_bytes = 0;
    std::uint64_t bytes = 0; ///< Pushed and pulled values.
    bool is_on_the_way = false;
  };
  struct waiting_request {
    request_message what;
    time_point since{0};
  };
  /// Short requests of one class that leave in one frame.
  struct frame {
    request_list requests;
    std::uint64_t bytes = 0;
  };

  bool take_room(const open_request& open);
  void gather(request_message what, open_request& open, time_point now, window_effects& effects);
  void send_waiting(time_point now, window_effects& effects);
  static void send(frame& which, window_effects& effects);
  time_point deadline(time_point now) const;
  template <class Predicate>
  void expire_if(Predicate which, time_point now, window_effects& effects);
  void release(const open_request& what);

  request_window_options options_;
  std::shared_ptr<push_quota> memory_;
  link_state link_ = link_state::closed;
  growing_map<open_request> open_;
  std::deque<waiting_request> waiting_; ///< For an open link with room in its window.
  frame urgent_, bulk_;
  bool flush_is_due_ = false;
  std::uint64_t open_bytes_ = 0; ///< Sum over open_.
  std::uint64_t on_the_way_bytes_ = 0;
};

} // namespace troupe
