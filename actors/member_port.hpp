// A member's end of the control path: numbers and sends its reports, and takes orders in order.
#pragma once

#include "actors/kv.hpp"
#include "base/clock.hpp"

#include "caf/local_actor.hpp"

#include <cstdint>
#include <utility>
#include <variant>

namespace troupe {

/// A part of the state of the actor that is the member.
///
/// Invariants:
/// (1) sequences of reports grow by one.
/// (2) orders are taken by growing (term, sequence): of those that are repeated or were overtaken
///     nothing is seen.
class member_port {
public:
  /// `self` is the actor whose state this is; `job`: fingerprint of its job. Call it once, first.
  void open(caf::local_actor* self, const member_id& id, std::uint64_t job,
            const coordinator_connector& connect);

  /// What `what` says to this kind of member; null where that is old, or for another kind.
  template <class Body>
  const Body* take(const desired_state& what) {
    const auto* body = std::get_if<Body>(&what.body);
    const std::pair number{what.term, what.sequence};
    if (body == nullptr || number <= newest_)
      return nullptr;
    newest_ = number;
    return body;
  }

  void send(decltype(status_message::body) what);

  /// Sets the time between reports, else report_interval.
  void report_every(std::chrono::milliseconds interval) { interval_ = interval; }
  /// Returns whether the last report was sent so long ago.
  bool due() const;

private:
  caf::local_actor* self_ = nullptr;
  member_id id_;
  std::uint64_t job_ = 0;
  coordinator_handle coordinator_;
  std::pair<std::uint64_t, std::uint64_t> newest_{0, 0}; ///< Term and sequence of the last orders.
  std::uint64_t sequence_ = 0;
  time_point sent_at_{0};
  std::chrono::milliseconds interval_ = report_interval;
};

} // namespace troupe
