// Connects a member to the coordinator: numbers and sends its statuses, and takes desired states in
// order.
#pragma once

#include "actors/kv.hpp"
#include "base/clock.hpp"

#include "caf/local_actor.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace troupe {

/// A part of the state of the actor that is the member.
///
/// Invariants:
/// (1) sequences of statuses grow by one.
/// (2) desired states are taken by growing (term, sequence): repeated and overtaken ones are
///     ignored.
class member_port {
public:
  /// `self` is the actor whose state this is; `job`: fingerprint of its job. `address`: where the
  /// member listens, if its role does. Call it once, first.
  void open(caf::local_actor* self, const member_id& id, std::uint64_t job,
            const coordinator_connector& connect, std::string address = {});

  /// Returns the body of `what`; null if it is old, or for another kind of member.
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

  /// Sets the time between statuses, else report_interval.
  void report_every(std::chrono::milliseconds interval) { interval_ = interval; }
  /// Returns whether the last status is at least that old.
  bool due() const;

private:
  caf::local_actor* self_ = nullptr;
  member_id id_;
  std::uint64_t job_ = 0;
  std::string address_;
  coordinator_handle coordinator_;
  std::pair<std::uint64_t, std::uint64_t> newest_{0, 0}; ///< Newest term and sequence.
  std::uint64_t sequence_ = 0;
  time_point sent_at_{0};
  std::chrono::milliseconds interval_ = report_interval;
};

} // namespace troupe
