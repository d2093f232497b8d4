#include "actors/protocol/worker/fault_stage.hpp"

#include <deque>
#include <random>
#include <utility>

namespace troupe {

namespace {

class fault_stage final : public stage_decider {
public:
  fault_stage(const fault_rates& rates, std::uint64_t seed) : rates_(rates), random_(seed) {}

  void ask(request_token from, request what, time_point now, stage_effects& effects) override {
    held_.push_back({now + rates_.delay, from, std::move(what)});
    tick(now, effects);
  }

  void tick(time_point now, stage_effects& effects) override {
    for (; !held_.empty() && held_.front().until <= now; held_.pop_front()) {
      auto& next = held_.front();
      const bool pushes = next.what.push.has_value();
      if (pushes && draw(rates_.lost)) {
        effects.count("lost");
        effects.refuse(next.from, {errc::timed_out, "the push was lost on purpose"});
        continue;
      }
      open_.add(effects.forward(std::move(next.what)).value, {next.from, pushes});
    }
  }

  std::optional<time_point> next_tick() const override {
    return held_.empty() ? std::nullopt : std::optional{held_.front().until};
  }

  void answered(forward_id number, reply what, time_point, stage_effects& effects) override {
    const auto [from, pushes] = *open_.extract(number.value);
    if (pushes && draw(rates_.repeated)) {
      effects.count("repeated");
      effects.refuse(from, {errc::timed_out, "the receipt was lost on purpose"});
    } else {
      effects.answer(from, std::move(what));
    }
  }

  void failed(forward_id number, const failure& why, time_point, stage_effects& effects) override {
    effects.refuse(open_.extract(number.value)->from, why);
  }

private:
  struct held_request {
    time_point until;
    request_token from;
    request what;
  };
  struct open_request {
    request_token from;
    bool pushes = false;
  };

  bool draw(double share) { return std::uniform_real_distribution{}(random_) < share; }

  fault_rates rates_;
  std::mt19937_64 random_;
  std::deque<held_request> held_; ///< In the order in which they came.
  growing_map<open_request> open_;
};

} // namespace

std::unique_ptr<stage_decider> make_fault_stage(const fault_rates& rates, std::uint64_t seed) {
  return std::make_unique<fault_stage>(rates, seed);
}

} // namespace troupe
