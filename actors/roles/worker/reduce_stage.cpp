#include "actors/roles/worker/reduce_stage.hpp"

#include "actors/tables/device_pushes.hpp"
#include "base/growing_map.hpp"

#include <utility>
#include <variant>

namespace troupe {

namespace {

class reduce_stage final : public stage_decider {
public:
  reduce_stage(const job_spec& job, reducer_options options, std::shared_ptr<reducer_tally> tally)
      : job_(job), reducer_(job, options), tally_(std::move(tally)) {}

  void ask(request_token from, request what, time_point now, stage_effects& effects) override {
    reducer_.ask(from, std::move(what), now, decided_);
    pass_on(effects);
  }
  void answered(forward_id number, reply what, time_point, stage_effects& effects) override {
    reducer_.answered(*sums_.extract(number.value), what, decided_);
    pass_on(effects);
  }
  void failed(forward_id number, const failure& why, time_point, stage_effects& effects) override {
    reducer_.failed(*sums_.extract(number.value), why, decided_);
    pass_on(effects);
  }
  void tick(time_point now, stage_effects& effects) override {
    reducer_.tick(now, decided_);
    pass_on(effects);
  }
  std::optional<time_point> next_tick() const override { return reducer_.next_tick(); }

private:
  void pass_on(stage_effects& effects) {
    for (std::size_t i = 0; i < decided_.size(); ++i) { // A sum that cannot be made appends more.
      auto effect = std::move(decided_[i]);
      std::visit([&](auto& x) { run(x, effects); }, effect);
    }
    decided_.clear();
  }

  void run(sum_effect& effect, stage_effects& effects) {
    request what;
    what.pull = std::move(effect.pull);
    if (!effect.pushes.empty()) {
      const auto push = as_one(effect.pushes);
      if (!push)
        return reducer_.failed(effect.number, push.error(), decided_);
      what.push = **push;
    }
    sums_.add(effects.forward(std::move(what)).value, effect.number);
  }

  /// Returns the pushes as one push. If a device fails, workers compute its gradients once more.
  result<push_ptr> as_one(const std::vector<push_ptr>& pushes) {
    if (pushes.size() == 1)
      return bring_to_host(pushes.front(), *pool_);
    auto sum = add_up_anywhere(job_, pushes, *pool_);
    if (!sum)
      return {errc::sum_not_applicable, sum.error().text};
    tally_->sums += 1;
    tally_->device_sums += are_on_one_group(pushes) ? 1 : 0;
    tally_->pushes_summed += pushes.size();
    return sum;
  }

  void run(left_out_effect& effect, stage_effects&) {
    if (effect.worker.value < tally_->left_out.size())
      tally_->left_out[effect.worker.value] += 1;
  }
  void run(answered_effect& effect, stage_effects& effects) {
    effects.answer(effect.request, std::move(effect.answer));
  }
  void run(failed_effect& effect, stage_effects& effects) {
    effects.refuse(effect.request, std::move(effect.why));
  }

  job_spec job_;
  reducer reducer_;
  reducer_effects decided_;  ///< Empty between events.
  growing_map<sum_id> sums_; ///< The sum in each forward.
  std::shared_ptr<reducer_tally> tally_;
  std::shared_ptr<buffer_pool> pool_ = std::make_shared<buffer_pool>();
};

} // namespace

void count(const reducer_tally& tally, std::uint32_t worker, bool all, worker_counters& counters) {
  if (worker < tally.left_out.size())
    counters.left_out = tally.left_out[worker];
  counters.sums = all ? tally.sums.load() : 0;
  counters.device_sums = all ? tally.device_sums.load() : 0;
  counters.pushes_summed = all ? tally.pushes_summed.load() : 0;
}

std::unique_ptr<stage_decider> make_reduce_stage(const job_spec& job, reducer_options options,
                                                 std::shared_ptr<reducer_tally> tally) {
  return std::make_unique<reduce_stage>(job, options, std::move(tally));
}

} // namespace troupe
