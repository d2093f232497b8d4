// Lines: workers whose step is one push of each of several parts. Each part has a table. The worker
// is the first part; the later ones ask through routers of their own. A later part's death begins
// the batch anew. Words between parts take no time here.
#include "cli/sim/job_world_parts.hpp"

#include "actors/protocol/mutation.hpp"
#include "actors/protocol/pipeline/part_flow.hpp"

#include <algorithm>

namespace troupe::sim {

// -- processes ----------------------------------------------------------------------------------

job_world::later_part* job_world::find_part(const member_id& who) {
  const auto found = who.role == role::actor ? parts_.find(who.index) : parts_.end();
  return found != parts_.end() && found->second->id == who ? found->second.get() : nullptr;
}

std::vector<job_world::later_part*> job_world::parts_of(const worker& by) {
  std::vector<later_part*> all;
  for (const auto& [index, part] : parts_)
    if (index / line_parts_max == by.id.index)
      all.push_back(part.get());
  return all;
}

/// Starts a later part, unless it runs.
void job_world::start_part(std::uint32_t index, table_id table) {
  auto& fresh = parts_[index * line_parts_max + table.value];
  if (fresh)
    return;
  fresh = std::make_unique<later_part>(options_);
  fresh->id = {role::actor, index * line_parts_max + table.value, next_incarnation()};
  fresh->rate = pick_rate();
  fresh->table = table;
  every(fresh->id, 20ms, [this, who = fresh->id] {
    tick(*find_part(who));
    act(*find_part(who));
  });
  const auto found = workers_.find(index);
  if (found == workers_.end())
    return;
  router_effects effects;
  fresh->values_of.set_view(found->second->known_view, local(*fresh), effects);
  carry_out(*fresh, effects);
  begin_attempt(*found->second);
}

/// Kills a later part. The other parts of its line drop the attempt.
void job_world::kill_part() {
  const auto victim =
    std::next(parts_.begin(), static_cast<std::ptrdiff_t>(pick(0, parts_.size() - 1)));
  const auto index = victim->first / line_parts_max;
  if (is_traced())
    note(full_name(victim->second->id) + " is killed");
  ++tally_.part_kills;
  at(now_ + absence_of(role::actor),
     [this, index, table = victim->second->table] { start_part(index, table); });
  parts_.erase(victim);
  if (const auto found = workers_.find(index); found != workers_.end())
    for (auto* const part : parts_of(*found->second))
      part->drop_attempt();
}

// -- a batch ------------------------------------------------------------------------------------

/// Begins a batch that the first part has values for, and computes within `time`.
void job_world::begin_line(worker& by, const training_step& what, time_point time) {
  by.line = worker::line_step{what};
  by.line->what.clock = by.steps.clock(); // Of the push that ends it.
  when_awake(by.id, now_ + time, [this, who = by.id, number = what.number] {
    auto& mine = *find_worker(who);
    if (!mine.line || mine.line->what.number != number)
      return;
    mine.line->is_computed = true;
    go_on(mine);
  });
  begin_attempt(by);
}

/// Begins the batch of the line, or begins it anew, if all of its parts are there.
void job_world::begin_attempt(worker& by) {
  const auto parts = parts_of(by);
  if (!by.line || parts.size() + 1 < options_.line_parts)
    return;
  tally_.attempts_again += std::exchange(by.line->is_begun, true) ? 1 : 0;
  for (auto* const part : parts) {
    part->drop_attempt();
    part->of = by.id;
    part->step = header_of(by, by.line->what);
    ++part->attempt;
    part->does = later_part::phase::to_pull;
  }
  for (auto* const part : parts)
    act(*part);
}

/// Lets the first part push, once it has its gradient and all partial pushes are acknowledged.
void job_world::go_on(worker& by) {
  using phase = later_part::phase;
  const auto is_done = [](const later_part* part) {
    return part->does == phase::done
           || (part->does == phase::pushing && mutated(mutation::partial_push_done_early));
  };
  const auto parts = parts_of(by);
  if (!by.line || !by.line->is_computed || parts.size() + 1 < options_.line_parts
      || !std::ranges::all_of(parts, is_done))
    return;
  const auto what = by.line->what;
  by.line.reset();
  for (auto* const part : parts)
    part->drop_attempt();
  computed(by, what);
}

/// Has the first part of a line end the steps that the worker has dropped. Later parts go on until
/// another attempt begins, as if the word were late. A worker without a line computes on.
void job_world::drop_steps(worker& by) {
  for (const auto number : by.steps.take_dropped()) {
    if (!has_lines())
      continue;
    const bool is_begun = by.line && by.line->what.number == number;
    const auto queued = std::ranges::find(by.to_compute, number, &training_step::number);
    if (!is_begun && queued == by.to_compute.end())
      continue; // Its gradient is there.
    forget_pushes(by, is_begun ? by.line->what.batch : queued->batch);
    if (is_begun) {
      by.line.reset();
      by.computes = false;
      by.idle_since = local(by);
    } else {
      by.to_compute.erase(queued);
    }
    by.steps.computed(number);
    ++tally_.dropped_by_lines;
  }
}

// -- a later part: pull, compute, push ----------------------------------------------------------

/// Sends the next request of a part.
void job_world::act(later_part& by) {
  using phase = later_part::phase;
  if (by.does != phase::to_pull && by.does != phase::to_push)
    return;
  request what;
  if (by.does == phase::to_pull) {
    what.pull =
      pull_request{.step = by.step, .ranges = {{by.table, 0, job().tables[by.table.value].size()}}};
  } else {
    what.push = push_request{.step = by.step,
                             .tables = {by.table},
                             .gradient_norm = gradient_of(mark_of(job(), by.step.batch, by.table)),
                             .pieces = {}};
    what.push->step.is_partial = true;
    if (auto* const first = find_worker(by.of))
      note_push(*first, by.step, by.table);
  }
  by.does = what.pull ? phase::pulling : phase::pushing;
  by.open = request_token{by.next_token++};
  router_effects effects;
  by.values_of.ask(*by.open, std::move(what), local(by), effects);
  carry_out(by, effects);
}

void job_world::answered(later_part& by, request_token token) {
  using phase = later_part::phase;
  if (by.open != token)
    return;
  by.open.reset();
  if (by.does == phase::pulling) {
    by.does = phase::computing;
    when_awake(by.id, now_ + pick_ms(0, 10), [this, who = by.id, attempt = by.attempt] {
      auto& mine = *find_part(who);
      if (mine.attempt != attempt || mine.does != phase::computing)
        return;
      mine.does = phase::to_push;
      act(mine);
    });
    return;
  }
  ++tally_.partial_pushes;
  by.does = phase::done;
  if (auto* const first = find_worker(by.of))
    go_on(*first);
}

/// Asks again at the next tick, waits for another attempt, or ends the job.
void job_world::failed(later_part& by, request_token token, const failure& why) {
  using phase = later_part::phase;
  if (by.open != token)
    return;
  by.open.reset();
  const auto then = part_reaction_to(why.code);
  if (then == part_reaction::try_again) {
    by.does = by.does == phase::pulling ? phase::to_pull : phase::to_push;
    return;
  }
  by.does = phase::idle;
  auto* const first = find_worker(by.of);
  if (then == part_reaction::wait || first == nullptr)
    return;
  first->failed = why;
  send_report(*first);
}

} // namespace troupe::sim
