// The open requests of one actor: each ends with its reply, with an error, or at its deadline. One
// scan watches all deadlines, because a timeout of CAF wakes the thread of its clock twice for each
// request, which is a large part of what a short step costs.
#pragma once

#include "actors/clock.hpp"

#include "caf/duration.hpp"
#include "caf/error.hpp"
#include "caf/sec.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

namespace troupe {

/// How often an actor with open requests calls expire(): deadlines are noticed so much late.
constexpr std::chrono::milliseconds deadline_scan_interval{500};

/// What becomes of a reply that comes after the deadline.
enum class late_replies {
  ignored,
  /// On a slow network every reply may be late: a request that is made again would never end.
  delivered
};

/// Requests with one timeout for all. A member of the state of the actor that sends them.
///
/// Invariants:
/// (1) of each request one of its two functions is called, once; what comes later is ignored, but
///     for a reply after the deadline where late replies are delivered.
/// (2) open_ is ordered by deadline: numbers grow, and the timeout is the same for all.
class open_requests {
public:
  explicit open_requests(std::chrono::nanoseconds timeout,
                         late_replies late = late_replies::ignored)
      : timeout_(timeout), late_(late) {}

  /// As self->request(to, timeout, what...).then(on_reply, on_error).
  template <class Reply, class Self, class Receiver, class OnReply, class... Ts>
  void send(Self self, const Receiver& to, OnReply on_reply,
            std::function<void(const caf::error&)> on_error, Ts&&... what) {
    const auto number = next_++;
    open_.emplace_hint(open_.end(), number, entry{now_of(*self) + timeout_, std::move(on_error)});
    const caf::duration no_timer_of_caf;
    self->request(to, no_timer_of_caf, std::forward<Ts>(what)...)
      .then(
        [this, number, on_reply = std::move(on_reply)](Reply& reply) mutable {
          if (open_.erase(number) != 0 || late_ == late_replies::delivered)
            on_reply(reply);
        },
        [this, number](const caf::error& why) {
          if (auto failed = open_.extract(number))
            failed.mapped().on_error(why);
        });
  }

  bool empty() const { return open_.empty(); }

  /// Ends those whose deadline has passed with caf::sec::request_timeout.
  void expire(std::chrono::nanoseconds now) {
    while (!open_.empty() && open_.begin()->second.deadline <= now)
      open_.extract(open_.begin()).mapped().on_error(make_error(caf::sec::request_timeout));
  }

private:
  struct entry {
    std::chrono::nanoseconds deadline;
    std::function<void(const caf::error&)> on_error;
  };

  std::chrono::nanoseconds timeout_;
  late_replies late_;
  std::map<std::uint64_t, entry> open_;
  std::uint64_t next_ = 1;
};

} // namespace troupe
