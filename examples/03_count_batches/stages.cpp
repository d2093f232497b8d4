#include "examples/03_count_batches/stages.hpp"

#include "actors/protocol/worker/stage.hpp"

#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

namespace count_batches {

namespace {

using troupe::request;
using troupe::request_token;
using troupe::stage_effects;
using troupe::time_point;

/// Passes requests on, and counts pushes.
class plain final : public troupe::pass_through {
public:
  void outgoing(request& what, stage_effects& effects) override {
    if (what.push)
      effects.count("pushes");
  }
};

/// Passes requests on, and makes one kind of mistake from the 20th push on.
class mistaken final : public troupe::pass_through {
public:
  explicit mistaken(std::string kind) : kind_(std::move(kind)) {}

  void ask(request_token from, request what, time_point now, stage_effects& effects) override {
    const bool is_due = what.push && ++pushes_ >= 20;
    if (held_) { // Reordered: the older request goes after the newer one.
      auto [token, older] = *std::exchange(held_, std::nullopt);
      pass_through::ask(from, std::move(what), now, effects);
      pass_through::ask(token, std::move(older), now, effects);
    } else if (is_due && kind_ == "swallow") {
      effects.answer(from, {troupe::push_reply{}, {}});
    } else if (is_due && kind_ == "reorder" && !what.pull) {
      held_.emplace(from, std::move(what));
    } else {
      if (is_due && kind_ == "double")
        effects.forward(what);
      if (is_due && kind_ == "rename")
        what.push->step.batch.value += 1'000;
      if (is_due && kind_ == "throw")
        throw std::runtime_error{"a stage that fails on purpose"};
      pass_through::ask(from, std::move(what), now, effects);
    }
  }

private:
  std::string kind_;
  int pushes_ = 0;
  std::optional<std::pair<request_token, request>> held_;
};

} // namespace

std::vector<std::string> stage_names() {
  return {"none", "plain", "swallow", "double", "rename", "reorder", "throw"};
}

troupe::stage_list stages_of(const std::string& name) {
  if (name == "none")
    return {};
  if (name == "plain")
    return {troupe::own_stage("plain", {.pure = true},
                              [] { return std::make_unique<plain>(); })};
  return {troupe::own_stage(name, {}, [name] { return std::make_unique<mistaken>(name); })};
}

} // namespace count_batches
