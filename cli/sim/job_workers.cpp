// Workers: the steps that their pipelines decide, and the requests that routers split. Links keep
// the order of letters until they break.
#include "cli/sim/job_world_parts.hpp"

namespace troupe::sim {
namespace {

/// A request without an answer is sent again after this.
constexpr time_point request_patience = 400ms;
/// Share of letters on links that take as long as any.
constexpr double slow_share = 0.03;

} // namespace

// -- control path -------------------------------------------------------------------------------

void job_world::act(worker& by) {
  auto& home = process_of(by);
  fail_parts(home, [&](const sent_part& part) { return part.deadline <= now_; });
  router_effects effects;
  home.values_of.tick(local(by), effects);
  carry_out(home, effects);
  if (home.reduces)
    reduce(home, [&](reducer_effects& more) { home.reduces->tick(local(by), more); });
  if (local(by) - by.reported_at >= report_interval)
    send_report(by);
  advance(by);
}

void job_world::send_report(worker& by) {
  worker_status body;
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

void job_world::reconcile(worker& by, const desired_state& what) {
  if (!by.takes(what))
    return;
  if (what.stop)
    return end(by.id);
  const auto& mine = std::get<desired_worker>(what.body);
  if (mine.view.config > by.view_config) {
    by.view_config = mine.view.config;
    router_effects effects;
    process_of(by).values_of.set_view(mine.view, local(by), effects);
    carry_out(process_of(by), effects);
  }
  by.admitted = mine.admitted;
  by.steps.reconcile(mine);
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

/// Sends one request: the push of a step, the pull for another one, or both.
void job_world::ask(worker& by, std::optional<training_step> done,
                    std::optional<training_step> next) {
  const auto header = [&](const training_step& step) {
    return step_header{{by.id.index}, by.id.incarnation, step.generation, step.batch, step.clock};
  };
  request what;
  if (done)
    what.push = push_request{.step = header(*done),
                             .tables = {{0}},
                             .gradient_norm = gradient_of(done->batch),
                             .pieces = {}};
  if (next)
    what.pull =
      pull_request{.step = header(*next), .ranges = {{{0}, 0, job().tables.front().size()}}};
  auto& home = process_of(by);
  const request_token token{home.next_token++};
  by.requests.emplace(token, worker::open_request{done, next});
  ask(home, by.id, token, std::move(what));
}

void job_world::answered(worker& by, request_token token) {
  const auto open = std::move(by.requests.extract(token).mapped());
  if (open.done && by.steps.acknowledged(*open.done)) {
    ++by.counters.pushes_acknowledged;
    if (by.steps.take_finished())
      send_report(by);
  }
  if (open.next)
    by.steps.pulled(open.next->number);
}

void job_world::failed(worker& by, request_token token, const failure& why) {
  const auto open = std::move(by.requests.extract(token).mapped());
  if (open.next)
    by.steps.pull_failed(open.next->number); // The next tick or orders try again.
  if (open.done)
    by.steps.not_applied(*open.done);
  if (reaction_to(why.code) == reaction::stop) {
    by.failed = why.text;
    send_report(by);
  }
}

// -- links --------------------------------------------------------------------------------------

void job_world::carry_out(worker_process& by, router_effects& effects) {
  for (std::size_t i = 0; i < effects.size(); ++i)
    std::visit([&](auto& effect) { run(by, effect); }, effects[i]);
}

void job_world::run(worker_process& by, send_part_effect& effect) {
  const auto head = effect.to.head.index;
  const auto number = by.next_message++;
  by.sent[number] = {effect.part, effect.attempt, head, now_ + request_patience};
  part_in_flight letter_variant{number,
                                effect.part,
                                effect.attempt,
                                std::make_shared<const request>(std::move(effect.what)),
                                {}};
  letter_variant.told = told_[letter_variant.what->chain];
  over_link(
    by.id, head, true, [this, from = by.id, head, letter_variant = std::move(letter_variant)] {
      if (const auto found = servers_.find(head); found != servers_.end())
        when_awake(found->second->id, now_, [this, who = found->second->id, from, letter_variant] {
          ask(*find_server(who), from, letter_variant);
        });
      else if (auto* const responder = find_worker_process(from))
        settle(*responder, letter_variant, failure{errc::peer_lost, "nobody listens"});
    });
}

/// Delivers in order until the link breaks: then all letters on their way are lost.
void job_world::over_link(const member_id& client, std::uint32_t index, bool to_server,
                          std::function<void()> arrive) {
  auto* const by = find_worker_process(client);
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
    auto* const end = find_worker_process(client);
    if (end != nullptr && end->links[index].number != number)
      return;
    if (to_server) // Letters that a client sent before it died arrive, too.
      arrive();
    else
      when_awake(client, now_, arrive);
  });
}

/// Breaks a link. Until the process notices, further letters are lost as well.
void job_world::break_link(worker_process& by, std::uint32_t index) {
  auto& link = by.links[index];
  if (std::exchange(link.is_dead, true))
    return;
  ++link.number;
  ++tally_.links_broken;
  when_awake(by.id, now_ + pick_ms(1, 100), [this, who = by.id, index] {
    auto& mine = *find_worker_process(who);
    mine.links[index].is_dead = false;
    fail_parts(mine, [&](const sent_part& part) { return part.server == index; });
  });
}

void job_world::settle(worker_process& by, const part_in_flight& asked, outcome what) {
  by.sent.erase(asked.number);
  router_effects effects;
  if (auto* got = std::get_if<reply>(&what))
    by.values_of.answered(asked.part, std::move(*got), local(by), effects);
  else
    by.values_of.failed(asked.part, asked.attempt, std::get<failure>(what), local(by), effects);
  carry_out(by, effects);
  for (const auto index : group_of(by.id.index))
    if (const auto one = workers_.find(index); one != workers_.end())
      advance(*one->second);
}

void job_world::fail_parts(worker_process& by, const std::function<bool(const sent_part&)>& which) {
  std::vector<sent_part> failed;
  std::erase_if(by.sent, [&](const auto& sent) {
    if (!which(sent.second))
      return false;
    failed.push_back(sent.second);
    return true;
  });
  router_effects effects;
  for (const auto& sent : failed)
    by.values_of.failed(sent.part, sent.attempt, {errc::timed_out, "no answer in time"}, local(by),
                        effects);
  carry_out(by, effects);
}

} // namespace troupe::sim
