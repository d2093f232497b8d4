#include "actors/training/pure_path.hpp"

#include "actors/protocol/worker/push_values.hpp"
#include "base/exception_text.hpp"

#include <cstddef>
#include <optional>
#include <utility>
#include <variant>

namespace troupe {

namespace {

/// Calls `event` of a stage, and returns its only effect of this kind beside counts and lines.
template <class Effect, class Event>
result<Effect> only_effect(const std::string& stage, stage_effects& effects, Event event) {
  const auto wrong = [&](const std::string& text) {
    return failure{errc::contract_broken, "stage '" + stage + "' " + text};
  };
  try {
    event();
  } catch (...) {
    return wrong("failed: " + exception_text());
  }
  std::optional<Effect> found;
  for (auto& each : std::exchange(effects.list, {})) {
    if (std::holds_alternative<count_effect>(each) || std::holds_alternative<log_effect>(each))
      continue;
    auto* const wanted = std::get_if<Effect>(&each);
    if (wanted == nullptr || found)
      return wrong("is declared pure, but does more than to pass on a request");
    found.emplace(std::move(*wanted));
  }
  if (!found)
    return wrong("is declared pure, but does not pass on a request at once");
  return *std::move(found);
}

} // namespace

result<pure_path> pure_path::of(const std::vector<pure_stage>& stages) {
  pure_path path;
  try {
    for (const auto& each : stages)
      path.stages_.push_back({each.name, each.make(), {}});
  } catch (...) {
    return exception_failure();
  }
  return path;
}

result<request> pure_path::forward(request_token token, request passed) {
  std::vector<forward_id> forwards;
  for (auto& stage : stages_) {
    values_before before;
    if (passed.push)
      before.add(*passed.push);
    auto sent = only_effect<forward_effect>(stage.name, stage.effects, [&] {
      stage.decider->ask(token, std::move(passed), time_point{0}, stage.effects);
    });
    if (!sent)
      return sent.error();
    forwards.push_back(sent->number);
    passed = std::move(sent->what);
    if (passed.push)
      correct_norm(*passed.push, before); // As the guard of the stage does.
  }
  open_.add(token.value, std::move(forwards));
  return passed;
}

result<reply> pure_path::answer(request_token token, reply passed) {
  const auto forwards = *open_.extract(token.value);
  for (std::size_t i = stages_.size(); i-- > 0;) {
    auto& stage = stages_[i];
    auto answered = only_effect<answered_effect>(stage.name, stage.effects, [&] {
      stage.decider->answered(forwards[i], std::move(passed), time_point{0}, stage.effects);
    });
    if (!answered)
      return answered.error();
    passed = std::move(answered->answer);
  }
  return passed;
}

} // namespace troupe
