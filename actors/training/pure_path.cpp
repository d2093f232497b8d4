#include "actors/training/pure_path.hpp"

#include "base/exception_text.hpp"

#include <optional>
#include <ranges>
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
    for (const auto& each : stages) {
      auto made = each.make();
      if (!made)
        return {errc::invalid_argument, "the maker of stage '" + each.name + "' made no stage"};
      path.stages_.push_back({each.name, std::move(made), {}, {}});
    }
  } catch (...) {
    return {errc::invalid_argument, exception_text()};
  }
  return path;
}

result<request> pure_path::forward(request passed) {
  newest_ = {newest_.value + 1};
  for (auto& stage : stages_) {
    auto sent = only_effect<forward_effect>(stage.name, stage.effects, [&] {
      stage.decider->ask(newest_, std::move(passed), time_point{0}, stage.effects);
    });
    if (!sent)
      return sent.error();
    stage.forwarded = sent->number;
    passed = std::move(sent->what);
  }
  return passed;
}

result<reply> pure_path::answer(reply passed) {
  for (auto& stage : stages_ | std::views::reverse) {
    auto answered = only_effect<answered_effect>(stage.name, stage.effects, [&] {
      stage.decider->answered(stage.forwarded, std::move(passed), time_point{0}, stage.effects);
    });
    if (!answered)
      return answered.error();
    passed = std::move(answered->answer);
  }
  return passed;
}

} // namespace troupe
