#include "examples/03_count_batches/stages.hpp"

#include "actors/protocol/worker/stage.hpp"

#include <algorithm>
#include <limits>
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

/// Halves the gradients, and counts pushes.
class halves final : public troupe::pass_through {
public:
  void outgoing(request& what, stage_effects& effects) override {
    if (!what.push)
      return;
    effects.count("pushes");
    halve(*what.push);
  }
};

/// Replaces values by a copy that `change` has changed. Values are borrowed, so they stay.
template <class Change>
void replace(troupe::float_ptr& values, std::size_t count, Change change) {
  const std::shared_ptr<float[]> own{new float[count]};
  std::copy_n(values.get(), count, own.get());
  change(own.get());
  values = {own, own.get()};
}

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
      if (is_due && kind_ == "nan")
        put_nan(*what.push);
      if (is_due && kind_ == "silent")
        return;
      if (is_due && kind_ == "refuse")
        return effects.refuse(from, {troupe::errc::timed_out, "a push that is refused on purpose"});
      if (is_due && kind_ == "throw")
        throw std::runtime_error{"a stage that fails on purpose"};
      pass_through::ask(from, std::move(what), now, effects);
    }
  }

private:
  static void put_nan(troupe::push_request& push) {
    auto& [where, values] = push.pieces.at(0);
    replace(values, where.count,
            [](float* own) { own[0] = std::numeric_limits<float>::quiet_NaN(); });
  }

  std::string kind_;
  int pushes_ = 0;
  std::optional<std::pair<request_token, request>> held_;
};

} // namespace

void halve(troupe::push_request& push) {
  const auto halve_all = [](troupe::float_ptr& values, std::size_t count) {
    replace(values, count, [count](float* own) {
      for (std::size_t i = 0; i < count; ++i)
        own[i] /= 2;
    });
  };
  for (auto& [where, values] : push.pieces)
    halve_all(values, where.count);
  for (auto& [where, values] : push.rows)
    halve_all(values, where.floats());
}

std::vector<std::string> mistakes() {
  return {"swallow", "double", "rename", "reorder", "throw", "nan", "nan-push", "silent", "refuse"};
}

troupe::stage_list stages_of(const std::string& graph) {
  if (graph == "stage")
    return {troupe::own_stage("halves", {.pure = true}, [] { return std::make_unique<halves>(); })};
  if (graph == "nan-push")
    return {
      troupe::map_push("nan", [](const troupe::push_info& push, troupe::mutable_tensors gradient) {
        if (push.batch.value % 10 == 9)
          gradient[0][0] = std::numeric_limits<float>::quiet_NaN();
      })};
  const auto wrong = mistakes();
  if (std::ranges::find(wrong, graph) == wrong.end())
    return {};
  return {troupe::own_stage(graph, {}, [graph] { return std::make_unique<mistaken>(graph); })};
}

} // namespace count_batches
