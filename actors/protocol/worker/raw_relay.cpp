#include "actors/protocol/worker/raw_relay.hpp"

#include <utility>

namespace troupe {

void raw_relay::ask(request_token from, request what, time_point, stage_effects&) {
  actor_.ask(from, std::move(what));
}

void raw_relay::answered(forward_id number, reply what, time_point, stage_effects&) {
  actor_.answer(*open_.extract(number.value), std::move(what));
}

void raw_relay::failed(forward_id number, const failure& why, time_point, stage_effects&) {
  actor_.refuse(*open_.extract(number.value), why);
}

void raw_relay::tick(time_point, stage_effects& effects) {
  for (auto& event : std::exchange(waiting_, {}))
    if (auto* const sent = std::get_if<forwarded>(&event))
      open_.add(effects.forward(std::move(sent->what)).value, sent->from);
    else if (auto* const done = std::get_if<answered_effect>(&event))
      effects.answer(done->request, std::move(done->answer));
    else if (auto* const not_done = std::get_if<failed_effect>(&event))
      effects.refuse(not_done->request, std::move(not_done->why));
}

} // namespace troupe
