// Workers: the steps that their pipelines decide, and the requests that their routers split, over
// links that keep the order of what they carry until they break.
#include "cli/sim/job_world_parts.hpp"

namespace troupe::sim {
namespace {

/// A request without an answer is sent again after this.
constexpr time_point request_patience = 400ms;
/// Of letters on links: those that take as long as any.
constexpr double slow_share = 0.03;

} // namespace

// -- control path -------------------------------------------------------------------------------

void job_world::act(worker& by) {
  fail_parts(by, [&](const sent_part& part) { return part.deadline <= now_; });
  router_effects effects;
  by.values_of.tick(local(by), effects);
  carry_out(by, effects);
  if (local(by) - by.reported_at >= report_interval)
    send_report(by);
  advance(by);
}

void job_world::send_report(worker& by) {
  worker_report body;
  body.generation = by.steps.generation();
  body.leases = by.steps.progress();
  body.clock = by.steps.clock();
  body.counters = by.counters;
  if (!by.computes)
    body.counters.wait_us += static_cast<std::uint64_t>((local(by) - by.idle_since) / 1us);
  body.failed = by.failed;
  by.reported_at = local(by);
  send_up(by, std::move(body));
}

void job_world::obey(worker& by, const orders& what) {
  if (!by.takes(what))
    return;
  if (what.stop)
    return end(by.id);
  const auto& mine = std::get<worker_orders>(what.body);
  if (mine.view.epoch > by.view_epoch) {
    by.view_epoch = mine.view.epoch;
    router_effects effects;
    by.values_of.set_view(mine.view, local(by), effects);
    carry_out(by, effects);
  }
  by.admitted = mine.admitted;
  by.steps.obey(mine);
  advance(by);
}

// -- a step: pull, compute, push ----------------------------------------------------------------

void job_world::advance(worker& by) {
  if (!by.failed.empty())
    return;
  while (const auto step = by.steps.next_pull())
    ask(by, {}, step);
  while (const auto step = by.steps.next_compute())
    by.to_compute.push_back(step->number);
  if (by.computes || by.to_compute.empty())
    return;
  by.computes = true;
  by.counters.wait_us += static_cast<std::uint64_t>((local(by) - by.idle_since) / 1us);
  const auto time =
    std::chrono::microseconds{by.step_ms * static_cast<std::int64_t>(pick(500, 1500))};
  const auto number = by.to_compute.front();
  by.to_compute.pop_front();
  when_awake(by.id, now_ + time,
             [this, who = by.id, number] { computed(*find_worker(who), number); });
}

void job_world::computed(worker& by, std::uint64_t number) {
  by.computes = false;
  by.idle_since = local(by);
  ++by.counters.batches_computed;
  ++by.counters.samples_computed;
  if (const auto step = by.steps.computed(number)) {
    if (by.made_in != step->generation)
      by.made.clear();
    by.made_in = step->generation;
    by.made.push_back({step->clock, step->batch, now_});
    ask(by, *step, by.steps.next_pull_with(*step));
  }
  advance(by);
}

/// One request: the push of a step, the pull for another one, or both.
void job_world::ask(worker& by, std::optional<training_step> done,
                    std::optional<training_step> next) {
  const auto header = [&](const training_step& step) {
    return step_header{{by.id.index}, by.id.incarnation, step.generation, step.batch, step.clock};
  };
  request what;
  if (done)
    what.push = update{.step = header(*done),
                       .tables = {{0}},
                       .gradient_norm = gradient_of(done->batch),
                       .pieces = {}};
  if (next)
    what.pull = query{.step = header(*next), .ranges = {{{0}, 0, job().tables.front().size()}}};
  const request_token token{by.next_token++};
  by.requests.emplace(token, worker::open_request{done, next});
  router_effects effects;
  by.values_of.ask(token, std::move(what), local(by), effects);
  carry_out(by, effects);
}

void job_world::carry_out(worker& by, router_effects& effects) {
  for (std::size_t i = 0; i < effects.size(); ++i)
    std::visit([&](auto& effect) { run(by, effect); }, effects[i]);
}

void job_world::run(worker& by, answered_effect& effect) {
  const auto open = std::move(by.requests.extract(effect.request).mapped());
  if (open.done && by.steps.acknowledged(*open.done)) {
    ++by.counters.pushes_acknowledged;
    if (by.steps.take_finished())
      send_report(by);
  }
  if (open.next)
    by.steps.pulled(open.next->number);
}

void job_world::run(worker& by, failed_effect& effect) {
  const auto open = std::move(by.requests.extract(effect.request).mapped());
  if (open.next)
    by.steps.pull_failed(open.next->number); // The next tick or orders try again.
  if (open.done)
    by.steps.not_applied(*open.done);
  if (reaction_to(effect.why.code) == reaction::stop) {
    by.failed = effect.why.text;
    send_report(by);
  }
}

// -- links --------------------------------------------------------------------------------------

void job_world::run(worker& by, send_part_effect& effect) {
  const auto head = effect.to.head.index;
  by.sent[effect.part] = {effect.attempt, head, now_ + request_patience};
  part_letter letter{
    effect.part, effect.attempt, std::make_shared<const request>(std::move(effect.what)), {}};
  letter.told = told_[letter.what->chain];
  over_link(by.id, head, true, [this, from = by.id, head, letter = std::move(letter)] {
    if (const auto found = servers_.find(head); found != servers_.end())
      when_awake(found->second->id, now_, [this, who = found->second->id, from, letter] {
        ask(*find_server(who), from, letter);
      });
    else if (auto* const asker = find_worker(from))
      settle(*asker, letter.part, letter.attempt, failure{errc::peer_lost, "nobody listens"});
  });
}

/// In order, until the link breaks: then nothing of what is on its way arrives.
void job_world::over_link(const member_id& client, std::uint32_t index, bool to_server,
                          std::function<void()> arrive) {
  auto* const by = find_worker(client);
  if (by == nullptr)
    return;
  const auto there = place_of(client);
  const auto* const broken = to_server ? cut_between(there, index) : cut_between(index, there);
  const auto& link = by->links[index];
  if (link.is_dead || (broken != nullptr && !broken->holds) || (!quiet_ && chance(link_breaks_)))
    return break_link(*by, index);
  const auto delay = pick(50, !quiet_ && chance(slow_share) ? delay_us_max_ + 50 : 1500);
  auto& last = by->in_order[{index, to_server}];
  last =
    std::max(last, (broken != nullptr ? broken->until : now_) + std::chrono::microseconds{delay});
  at(last, [this, client, index, to_server, number = link.number, arrive = std::move(arrive)] {
    auto* const end = find_worker(client);
    if (end != nullptr && end->links[index].number != number)
      return;
    if (to_server) // Also what a client sent before it died.
      arrive();
    else
      when_awake(client, now_, arrive);
  });
}

/// Until that is noticed, whatever is sent is lost as well.
void job_world::break_link(worker& by, std::uint32_t index) {
  auto& link = by.links[index];
  if (std::exchange(link.is_dead, true))
    return;
  ++link.number;
  ++tally_.links_broken;
  when_awake(by.id, now_ + pick_ms(1, 100), [this, who = by.id, index] {
    auto& mine = *find_worker(who);
    mine.links[index].is_dead = false;
    fail_parts(mine, [&](const sent_part& part) { return part.server == index; });
  });
}

void job_world::settle(worker& by, part_id part, std::uint64_t attempt, outcome what) {
  if (const auto sent = by.sent.find(part);
      sent != by.sent.end() && sent->second.attempt == attempt)
    by.sent.erase(sent);
  router_effects effects;
  if (auto* got = std::get_if<reply>(&what))
    by.values_of.answered(part, std::move(*got), local(by), effects);
  else
    by.values_of.failed(part, attempt, std::get<failure>(what), local(by), effects);
  carry_out(by, effects);
  advance(by);
}

void job_world::fail_parts(worker& by, const std::function<bool(const sent_part&)>& which) {
  std::vector<std::pair<part_id, std::uint64_t>> failed;
  for (const auto& [part, sent] : by.sent)
    if (which(sent))
      failed.emplace_back(part, sent.attempt);
  router_effects effects;
  for (const auto& [part, attempt] : failed) {
    by.sent.erase(part);
    by.values_of.failed(part, attempt, {errc::timed_out, "no answer in time"}, local(by), effects);
  }
  carry_out(by, effects);
}

} // namespace troupe::sim
