// The shells of parts in the simulated pipeline, and the servers that they ask.
#include "cli/sim/pipeline/pipeline_world_parts.hpp"

#include <algorithm>
#include <utility>

namespace troupe::sim {

// -- shell --------------------------------------------------------------------------------------

void pipeline_world::shell::send(part_side to, const part_word& what) {
  if (what.what == part_word::kind::begin && part_->is_first())
    world_->records_[{part_->line, what.of.incarnation, what.of.number}].step = what.step;
  world_->carry(*part_, to, what);
}

void pipeline_world::shell::keep_input(std::uint32_t micro) {
  require(part_->in_hand != nullptr && part_->in_hand->word.what == part_word::kind::forward,
          "keeps: no activations came");
  require(part_->inputs.emplace(micro, part_->in_hand->value).second, "keeps: an input twice");
  world_->check_kept(*part_);
}

void pipeline_world::shell::keep_gradient(std::uint32_t micro) {
  require(part_->in_hand != nullptr && part_->in_hand->word.what == part_word::kind::backward,
          "keeps: no gradient came");
  require(part_->gradients.emplace(micro, part_->in_hand->value).second, "keeps: a gradient twice");
  world_->check_kept(*part_);
}

void pipeline_world::shell::pull(const part_attempt& of, const part_step& step) {
  check_askable(of);
  world_->ask(*part_, {part_->line, part_->index, part_->incarnation, of, step.batch.value});
}

void pipeline_world::shell::push(const part_attempt& of, const part_step& step) {
  check_askable(of);
  world_->check_sum(*part_, of);
  world_->ask(*part_, {part_->line, part_->index, part_->incarnation, of, step.batch.value, true,
                       part_->sum});
}

/// Checks that servers have not refused the worker of this attempt for good.
void pipeline_world::shell::check_askable(const part_attempt& of) const {
  require(part_->fenced != of, "fenced: a part asks again");
}

void pipeline_world::shell::compute_forward(std::uint32_t micro) {
  if (part_->is_first())
    part_->inputs.emplace(micro, input_of(part_->batch, micro));
  ++part_->kept;
  world_->check_kept(*part_);
  compute(micro, true);
}

void pipeline_world::shell::compute_backward(std::uint32_t micro) { compute(micro, false); }

/// Computes for a while, with the values of the begin.
void pipeline_world::shell::compute(std::uint32_t micro, bool is_forward) {
  require(!part_->computing, "computes: two micro-batches at a time");
  require(part_->inputs.contains(micro), "computes: an input that is not kept");
  const auto& of = *part_->flow->present();
  if (part_->is_first() && is_forward && micro == 0)
    world_->note_values(*part_, of, part_->value);
  const auto input = part_->inputs.at(micro);
  const auto output = output_of(input, part_->value);
  part::computation made{of, micro, is_forward, false, output, loss_of(output)};
  if (!is_forward) {
    require(part_->flow->is_last() || part_->gradients.contains(micro),
            "computes: a gradient that is not kept");
    const auto gradient = part_->flow->is_last() ? output : part_->gradients.at(micro);
    made.result = input_gradient_of(input, part_->value, gradient);
  }
  part_->computing = made;
  const auto takes = std::chrono::microseconds{world_->pick(20, part_->compute_us)};
  world_->post_to(*part_, world_->now_ + takes, [world = world_](part& at) { world->report(at); });
}

void pipeline_world::shell::done(double loss) {
  world_->check_done(*part_, loss);
  world_->push_first(*part_);
}

void pipeline_world::shell::drop(const part_attempt& /*which*/) {
  if (part_->computing)
    part_->computing->is_dropped = true;
  part_->forget();
}

void pipeline_world::shell::say(const std::string& line) {
  ++world_->lines_[part_->line].broken_attempts;
  ++world_->tally_.ended;
  world_->note(line);
}

/// Reports the end of a computation to the flow.
void pipeline_world::report(part& at) {
  at.reported = std::exchange(at.computing, std::nullopt);
  const auto& done = *at.reported;
  if (done.is_dropped)
    ++tally_.old_results;
  else if (!done.is_forward) {
    at.sum = added(at.sum, done.result);
    at.inputs.erase(done.micro);
    at.gradients.erase(done.micro);
    --at.kept;
    ++tally_.micros;
  }
  if (done.is_forward)
    at.flow->computed_forward(*at.effects);
  else
    at.flow->computed_backward(done.loss, *at.effects);
  at.reported.reset();
}

// -- servers ------------------------------------------------------------------------------------

/// Sends a request to the servers. Request or answer may be lost, which the asking part notices.
void pipeline_world::ask(const part& who, const request& what) {
  const auto way = [&] { return std::chrono::microseconds{pick(50, request_us_max_)}; };
  const bool is_request_lost = !quiet_ && chance(request_failure_);
  const bool is_answer_lost = !quiet_ && chance(request_failure_);
  const auto arrives = now_ + way(), answered = arrives + way();
  all_[who.place]->asks_for = what.of.incarnation;
  if (is_request_lost)
    return post_to(who, now_ + pick_ms(20, 200),
                   [this, what](part& at) { answer(at, what, errc::timed_out, 0); });
  at(arrives, [this, what, is_answer_lost, answered] {
    std::uint64_t value = 0;
    const auto refused = serve(what, value);
    auto& asks = *all_[what.line * parts_ + what.part];
    if (asks.incarnation != what.by)
      return;
    if (refused == errc::not_ready) // The router asks again, unless another start asks meanwhile.
      return post_to(asks, now_ + pick_ms(20, 100), [this, what](part& at) {
        if (at.asks_for == what.of.incarnation)
          ask(at, what);
        else
          answer(at, what, errc::fenced, 0);
      });
    const auto when = is_answer_lost ? now_ + pick_ms(20, 200) : answered;
    const auto failed = is_answer_lost ? errc::timed_out : refused;
    post_to(asks, when, [this, what, failed, value](part& at) { answer(at, what, failed, value); });
  });
}

/// Has each server list a start of a line's worker. A server that has begun since knows no earlier
/// one.
void pipeline_world::list(std::uint32_t line, std::uint64_t incarnation) {
  const auto number = ++lists_;
  for (auto& each : tables_)
    at(now_ + pick_ms(0, 100), [this, &mine = each.listed[line], incarnation, number] {
      if (number < mine.number)
        return; // A later list came before.
      mine.departed.insert(mine.incarnation);
      if (!quiet_ && chance(0.2))
        mine.departed.clear();
      mine.incarnation = incarnation;
      mine.number = number;
    });
}

/// Pulls from a table, or applies a push. Refuses it as shard::push() does: fenced if the start of
/// the worker was listed and another one is, not_ready if it was not.
std::optional<errc> pipeline_world::serve(const request& what, std::uint64_t& value) {
  auto& from = tables_[what.part];
  const auto& mine = from.listed[what.line];
  if (what.of.incarnation != mine.incarnation) {
    const bool has_left = mine.departed.contains(what.of.incarnation);
    ++(has_left ? tally_.fenced : tally_.not_listed);
    return has_left ? errc::fenced : errc::not_ready;
  }
  if (what.is_push && !from.applied.insert(what.batch).second)
    ++tally_.duplicates;
  else if (what.is_push)
    from.value = mixed(from.value, what.sum);
  value = from.value;
  return std::nullopt;
}

/// Takes an answer of the servers, or the end of the wait for it.
void pipeline_world::answer(part& who, const request& what, std::optional<errc> failed,
                            std::uint64_t value) {
  if (failed)
    ++(what.is_push ? tally_.failed_pushes : tally_.failed_pulls);
  if (who.is_first())
    return worker_heard(who, what, !failed, value);
  if (failed == errc::fenced)
    who.fenced = what.of;
  if (failed)
    return who.flow->failed(what.of, *failed, now_);
  if (what.is_push)
    return who.flow->pushed(what.of, *who.effects);
  const auto* const present = who.flow->present();
  if (present == nullptr || *present != what.of)
    return who.flow->pulled(what.of, *who.effects);
  who.value = value;
  note_values(who, what.of, value);
  who.flow->pulled(what.of, *who.effects);
}

} // namespace troupe::sim
