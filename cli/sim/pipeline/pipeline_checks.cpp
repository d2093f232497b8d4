// Checks of pipelines: kept inputs, sums, losses, and the end of a history.
#include "cli/sim/pipeline/pipeline_world_parts.hpp"

#include <algorithm>

namespace troupe::sim {

pipeline_world::attempt_record& pipeline_world::record_of(const part& who, const part_attempt& of) {
  auto& found = records_[{who.line, of.incarnation, of.number}];
  found.values.resize(parts_);
  return found;
}

/// Notes the values on which a part computes an attempt.
void pipeline_world::note_values(const part& who, const part_attempt& of, std::uint64_t value) {
  auto& known = record_of(who, of).values[who.index];
  require(!known, "versions: a part takes values twice for one attempt");
  known = value;
}

std::vector<pipeline_world::micro_values> pipeline_world::expected(const attempt_record& of,
                                                                   std::uint32_t micro) const {
  std::vector<micro_values> all(parts_);
  std::vector<std::uint64_t> inputs(parts_ + 1, input_of(of.step.batch.value, micro));
  for (std::uint32_t i = 0; i < parts_; ++i)
    inputs[i + 1] = output_of(inputs[i], of.values[i].value());
  auto gradient = inputs.back();
  for (std::uint32_t i = parts_; i-- > 0;) {
    gradient = input_gradient_of(inputs[i], *of.values[i], gradient);
    all[i] = {gradient, loss_of(inputs.back())};
  }
  return all;
}

/// Checks a part's kept inputs and gradients against their bounds.
void pipeline_world::check_kept(const part& who) {
  const auto* const present = who.flow->present();
  require(present != nullptr, "keeps: something without an attempt");
  const auto micros = record_of(who, *present).step.micros;
  const bool is_fill = schedule_.order == micro_order::fill_drain;
  const auto keeps = [&](std::uint32_t index) {
    const auto below = parts_ - index - 1;
    return is_fill ? micros : std::min(micros, 1 + below + below * schedule_.ahead);
  };
  const auto most = keeps(who.index);
  const auto most_held = keeps(who.index - (who.index > 0 ? 1 : 0));
  require(who.kept <= most, "kept: more inputs than the order of micro-batches allows");
  require(who.inputs.size() <= most_held, "kept: more inputs came than the order allows");
  require(who.gradients.size() <= who.kept, "kept: more gradients than inputs");
  tally_.bounds_met += who.kept == most;
}

/// Checks a sum that is pushed or given to the worker.
void pipeline_world::check_sum(const part& who, const part_attempt& of) {
  const auto& record = record_of(who, of);
  require(std::ranges::all_of(record.values, [](const auto& x) { return x.has_value(); }),
          "sum: a part has not computed the attempt");
  std::uint64_t sum = 0;
  for (std::uint32_t micro = 0; micro < record.step.micros; ++micro)
    sum = added(sum, expected(record, micro)[who.index].input_gradient);
  require(who.sum == sum, "sum: not that of all micro-batches in their order");
}

/// Checks that all later parts have applied the batch of the worker, and its loss.
void pipeline_world::check_done(const part& who, double loss) {
  const auto& of = *who.flow->present();
  const auto& record = record_of(who, of);
  require(record.step.batch.value == who.batch, "done: another batch than the worker's");
  for (std::uint32_t i = 1; i < parts_; ++i)
    require(tables_[i].applied.contains(who.batch), "done: a later part has not applied the batch");
  check_sum(who, of);
  double right = 0;
  for (std::uint32_t micro = 0; micro < record.step.micros; ++micro)
    right += expected(record, micro).front().loss;
  require(loss == right, "done: not the loss of the batch");
}

void pipeline_world::check_end() {
  for (const auto& each : all_) {
    if (is_traced())
      note("part " + std::to_string(each->place) + (each->flow->is_whole() ? " is" : " is not")
           + " whole, and has " + (each->flow->present() == nullptr ? "no" : "an") + " attempt");
    require(each->is_alive, "liveness: a part does not start");
    require(each->flow->is_whole(), "liveness: two parts do not meet");
    require(each->flow->present() == nullptr, "liveness: an attempt does not end");
    require(each->inputs.empty() && each->gradients.empty() && each->kept == 0,
            "keeps: something is left of an attempt");
  }
  for (std::uint64_t batch = 1; batch <= batches_; ++batch) {
    require(applied_.contains(batch), "liveness: a batch is not applied");
    for (const auto& each : tables_)
      require(each.applied.contains(batch), "once: a table lacks a batch that is said to be done");
  }
  for (const auto& each : tables_)
    require(each.applied.size() == batches_, "once: a table has a batch that there is not");
  for (const auto& each : lines_)
    require(each.broken_attempts <= each.losses, "restarts: more than lanes were lost");
}

} // namespace troupe::sim
