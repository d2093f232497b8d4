// Who waits for answers of a kv_service, and how they get them.
#pragma once

#include "actors/kv.hpp"

#include "caf/typed_response_promise.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

/// An item of a request_list.
struct numbered_asker {
  answer_sink to;
  std::uint64_t number = 0;
};
/// Who asked alone has a promise.
using asker = std::variant<caf::typed_response_promise<reply>, numbered_asker>;

/// Answers that are ready. A member of the state of the actor that gives them.
class ready_answers {
public:
  void add(asker& to, std::variant<reply, failure> what) {
    if (auto* alone = std::get_if<caf::typed_response_promise<reply>>(&to))
      deliver(*alone, std::move(what));
    else
      gather(std::get<numbered_asker>(to), std::move(what));
  }

  /// To be called at the end of each event: sends what was gathered, short answers together.
  template <class Self>
  void send(Self self) {
    for (auto& each : std::exchange(gathered_, {}))
      self->send(each.to, std::move(each.list));
  }

private:
  /// Answers are one message up to so many bytes, and items.
  static constexpr std::uint64_t together_bytes_max = std::uint64_t{64} << 10;
  static constexpr std::size_t together_items_max = 16;

  static void deliver(caf::typed_response_promise<reply>& to, std::variant<reply, failure> what) {
    if (auto* why = std::get_if<failure>(&what))
      to.deliver(to_caf(*why));
    else
      to.deliver(std::get<reply>(std::move(what)));
  }

  void gather(const numbered_asker& to, std::variant<reply, failure> what) {
    auto* came = std::get_if<reply>(&what);
    const auto bytes = came != nullptr && came->pulled ? payload_bytes(*came->pulled) : 0;
    if (gathered_.empty() || gathered_.back().to != to.to
        || gathered_.back().bytes + bytes > together_bytes_max
        || gathered_.back().list.items.size() == together_items_max)
      gathered_.push_back({to.to, {}, 0});
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
};

} // namespace troupe
