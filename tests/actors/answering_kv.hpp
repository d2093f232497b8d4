// A kv_service that answers each request with the result of a function.
#pragma once

#include "actors/reply_batch.hpp"

#include "caf/actor_system.hpp"
#include "caf/typed_event_based_actor.hpp"

#include <functional>
#include <optional>
#include <utility>
#include <variant>

namespace troupe::test {

/// Returns the answer to a request; nullopt leaves it without an answer.
using answer_function = std::function<std::optional<std::variant<reply, failure>>(const request&)>;

/// `seen` is called with the number of requests in each list that arrives.
inline kv_service spawn_answering(
  caf::actor_system& system, answer_function answer,
  std::function<void(std::size_t)> seen = [](std::size_t) {}) {
  return system.spawn([answer = std::move(answer), seen = std::move(seen)](
                        kv_service::pointer self) -> kv_service::behavior_type {
    return {
      [](const request&) -> caf::result<reply> { return caf::sec::unexpected_message; },
      [self, answer, seen](const request_list& what, const answer_sink& to) {
        seen(what.items.size());
        reply_batcher ready;
        for (const auto& each : what.items)
          if (auto made = answer(each.what)) {
            responder by = numbered_responder{to, each.number};
            ready.add(by, *std::move(made));
          }
        ready.send(self);
      },
    };
  });
}

} // namespace troupe::test
