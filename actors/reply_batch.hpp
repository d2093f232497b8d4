// Collects the replies of a `kv_service` and sends small ones together.
#pragma once

#include "actors/kv.hpp"
#include "serialization/payload.hpp"

#include "caf/typed_response_promise.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

/// The client of one item of a request_list.
struct numbered_responder {
  answer_sink to;
  std::uint64_t number = 0;
};
/// The client of a request: a promise if it came alone.
using responder = std::variant<caf::typed_response_promise<reply>, numbered_responder>;

/// Replies that are ready. Part of the state of the actor that gives them.
class reply_batcher {
public:
  void add(responder& to, std::variant<reply, failure> what) {
    if (auto* alone = std::get_if<caf::typed_response_promise<reply>>(&to))
      deliver(*alone, std::move(what));
    else
      gather(std::get<numbered_responder>(to), std::move(what));
  }

  /// Sends the collected replies, short ones together. Call it at the end of each event.
  template <class Self>
  void send(Self self) {
    bytes_ = 0;
    for (auto& each : std::exchange(gathered_, {}))
      self->send(each.to, std::move(each.list));
  }

  /// Sends them within an event if there are more than 1 MiB, which should not wait.
  template <class Self>
  void send_if_much(Self self) {
    if (bytes_ > much_bytes)
      send(self);
  }

private:
  static constexpr std::uint64_t much_bytes = std::uint64_t{1} << 20;

  static void deliver(caf::typed_response_promise<reply>& to, std::variant<reply, failure> what) {
    if (auto* why = std::get_if<failure>(&what))
      to.deliver(to_caf(*why));
    else
      to.deliver(std::get<reply>(std::move(what)));
  }

  void gather(const numbered_responder& to, std::variant<reply, failure> what) {
    auto* came = std::get_if<reply>(&what);
    const auto bytes = came != nullptr && came->pulled ? payload_bytes(*came->pulled) : 0;
    if (gathered_.empty() || gathered_.back().to != to.to
        || gathered_.back().bytes + bytes > together_bytes_max
        || gathered_.back().list.items.size() == together_items_max)
      gathered_.push_back({to.to, {}, 0});
    bytes_ += bytes;
    auto& last = gathered_.back();
    last.bytes += bytes;
    if (came != nullptr)
      last.list.items.push_back(reply_message{to.number, std::move(*came)});
    else
      last.list.items.push_back(failure_message{to.number, std::get<failure>(std::move(what))});
  }

  struct together {
    answer_sink to;
    answer_list list;
    std::uint64_t bytes = 0;
  };
  std::vector<together> gathered_;
  std::uint64_t bytes_ = 0;
};

} // namespace troupe
