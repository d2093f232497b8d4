// Workers: the steps that their pipelines decide, and the requests that routers split. Links keep
// the order of messages until they break.
#include "cli/sim/job_world_parts.hpp"

#include "serialization/payload.hpp"

namespace troupe::sim {
namespace {

/// A router takes a part without a reply for failed after this, beside the time for its payload.
constexpr time_point router_patience = 400ms;
/// A link ends a request without a reply after this, beside the time for its payload.
constexpr std::chrono::milliseconds link_patience{500};
constexpr std::uint64_t connect_ms_max = 5, gathering_us_max = 100;
/// Share of messages on links that take as long as any.
constexpr double slow_share = 0.03;

} // namespace

// -- control path -------------------------------------------------------------------------------

/// Lets the links and the router of a process notice the time.
void job_world::tick(worker_process& by) {
  for (auto& [index, link] : by.links)
    decide(by, index, [&](request_window& window, window_effects& effects) {
      window.expire(local(by), effects);
    });
  fail_late_parts(by);
  router_effects effects;
  by.values_of.tick(local(by), effects);
  carry_out(by, effects);
}

void job_world::act(worker& by) {
  auto& home = process_of(by);
  tick(home);
  if (home.stage)
    guard(home, [&](guard_effects& more) { home.stage->tick(local(home), more); });
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
    return end(by.id, what.failed);
  const auto& mine = std::get<desired_worker>(what.body);
  if (mine.view.config > by.known_view.config) {
    by.known_view = mine.view;
    std::vector<worker_process*> homes{&process_of(by)};
    std::ranges::copy(parts_of(by), std::back_inserter(homes));
    for (auto* const home : homes) {
      router_effects effects;
      home->values_of.set_view(mine.view, local(*home), effects);
      carry_out(*home, effects);
    }
  }
  by.admitted = mine.admitted;
  by.steps.reconcile(mine);
  drop_steps(by);
  advance(by);
}

// -- a step: pull, compute, push ----------------------------------------------------------------

void job_world::advance(worker& by) {
  if (by.failed)
    return;
  while (const auto step = by.steps.next_pull())
    ask(by, {}, step);
  while (const auto step = by.steps.next_compute())
    by.to_compute.push_back(*step);
  if (by.computes || by.to_compute.empty())
    return;
  by.computes = true;
  by.counters.wait_us += static_cast<std::uint64_t>((local(by) - by.idle_since) / 1us);
  const auto time =
    std::chrono::microseconds{by.step_ms * static_cast<std::int64_t>(pick(500, 1500))};
  const auto step = by.to_compute.front();
  by.to_compute.pop_front();
  if (has_lines())
    return begin_line(by, step, time);
  when_awake(by.id, now_ + time, [this, who = by.id, step] { computed(*find_worker(who), step); });
}

void job_world::computed(worker& by, const training_step& what) {
  by.computes = false;
  by.idle_since = local(by);
  ++by.counters.batches_computed;
  ++by.counters.samples_computed;
  if (const auto step = by.steps.computed(what.number)) {
    note_push(by, header_of(by, *step), {0});
    ask(by, *step, by.steps.next_pull_with(*step));
  } else {
    forget_pushes(by, what.batch);
  }
  advance(by);
}

/// Remembers for the checks that a part of the worker's line pushes.
void job_world::note_push(worker& by, const step_header& step, table_id table) {
  if (step.generation < by.made_in)
    return;
  if (by.made_in != step.generation)
    by.made.clear();
  by.made_in = step.generation;
  by.made.push_back({step.clock, step.batch, table, now_});
}

/// Forgets the pushes of a batch that the worker gives up: no reader waits for them.
void job_world::forget_pushes(worker& by, batch_id batch) {
  std::erase_if(by.made, [&](const auto& push) { return push.batch == batch; });
}

step_header job_world::header_of(const worker& by, const training_step& step) {
  return {{by.id.index}, by.id.incarnation, step.generation, step.batch, step.clock};
}

/// Sends one request: the push of a step, the pull for another one, or both.
void job_world::ask(worker& by, std::optional<training_step> done,
                    std::optional<training_step> next) {
  request what;
  if (done)
    what.push = push_request{.step = header_of(by, *done),
                             .tables = {{0}},
                             .gradient_norm = gradient_of(mark_of(job(), done->batch, {0})),
                             .pieces = {}};
  if (next)
    what.pull =
      pull_request{.step = header_of(by, *next), .ranges = {{{0}, 0, job().tables.front().size()}}};
  auto& home = process_of(by);
  const request_token token{home.next_token++};
  by.requests.emplace(token, worker::open_request{done, next});
  ask(home, by.id, token, std::move(what));
}

void job_world::answered(worker& by, request_token token) {
  const auto open = std::move(by.requests.extract(token).mapped());
  if (open.done && by.steps.acknowledged(*open.done)) {
    ++by.counters.pushes_acknowledged;
    hear_work(by.id);
    if (by.steps.take_finished())
      send_report(by);
  }
  if (open.next)
    by.steps.pulled(open.next->number);
}

void job_world::failed(worker& by, request_token token, const failure& why) {
  require(why.code != errc::contract_broken, "stages: " + why.text);
  const auto open = std::move(by.requests.extract(token).mapped());
  if (open.next)
    by.steps.pull_failed(open.next->number); // The next tick or desired state tries again.
  if (open.done) { // Its worker computes it again, at a later clock, if it still holds the batch.
    by.steps.not_applied(*open.done);
    forget_pushes(by, open.done->batch);
  }
  if (reaction_to(why.code) == reaction::stop) {
    by.failed = why;
    send_report(by);
  }
}

// -- links --------------------------------------------------------------------------------------

void job_world::carry_out(worker_process& by, router_effects& effects) {
  for (std::size_t i = 0; i < effects.size(); ++i)
    std::visit([&](auto& effect) { run(by, effect); }, effects[i]);
}

void job_world::run(worker_process& by, send_part_effect& effect) {
  const auto index = effect.to.head.index;
  const auto number = by.next_message++;
  auto open_bytes = payload_bytes(effect.what);
  for (const auto& [unused, sent] : by.sent)
    open_bytes += sent.has_failed ? 0 : sent.bytes;
  by.sent[number] = {effect.part, effect.attempt, index, payload_bytes(effect.what),
                     now_ + router_patience + time_for_payload(open_bytes)};
  decide(by, index, [&](request_window& window, window_effects& effects) {
    window.add(number, std::move(effect.what), local(by), effects);
  });
}

void job_world::decide(worker_process& by, std::uint32_t index,
                       const std::function<void(request_window&, window_effects&)>& what) {
  auto& window = by.links[index].window;
  if (!window)
    window.emplace(request_window_options{options_.window_bytes, link_patience}, by.push_memory);
  window_effects effects;
  what(*window, effects);
  for (auto& effect : effects)
    std::visit([&](auto& x) { run(by, index, x); }, effect);
}

void job_world::run(worker_process& by, std::uint32_t index, connect_effect&) {
  if (!quiet_ && chance(link_breaks_))
    return break_link(by, index);
  when_awake(by.id, now_ + pick_ms(0, connect_ms_max),
             [this, who = by.id, index, number = by.links[index].number] {
               auto& mine = *find_worker_process(who);
               if (mine.links[index].number == number)
                 decide(mine, index, [&](request_window& window, window_effects& effects) {
                   window.opened(local(mine), effects);
                 });
             });
}

void job_world::run(worker_process& by, std::uint32_t index, flush_soon_effect&) {
  when_awake(
    by.id, now_ + std::chrono::microseconds{pick(0, gathering_us_max)}, [this, who = by.id, index] {
      decide(*find_worker_process(who), index,
             [](request_window& window, window_effects& effects) { window.flush(effects); });
    });
}

void job_world::run(worker_process& by, std::uint32_t index, send_requests_effect& effect) {
  std::vector<part_in_flight> in_flight;
  for (auto& each : effect.requests.items) {
    const auto found = by.sent.find(each.number);
    const auto sent = found != by.sent.end() ? found->second : sent_part{}; // Has it expired?
    in_flight.push_back({each.number,
                         sent.part,
                         sent.attempt,
                         std::make_shared<const request>(std::move(each.what)),
                         {}});
    in_flight.back().told = told_[in_flight.back().what->shard];
  }
  over_link(by.id, index, true, [this, from = by.id, index, in_flight = std::move(in_flight)] {
    for (const auto& each : in_flight)
      arrive(from, index, each);
  });
}

void job_world::arrive(const member_id& from, std::uint32_t index, const part_in_flight& what) {
  if (const auto found = servers_.find(index); found != servers_.end())
    when_awake(found->second->id, now_,
               [this, who = found->second->id, from, what] { ask(*find_server(who), from, what); });
  else if (auto* const client = find_worker_process(from))
    settle(*client, what, failure{errc::peer_lost, "nobody listens"});
}

void job_world::run(worker_process& by, std::uint32_t, end_request_effect& effect) {
  when_awake(by.id, now_, [this, who = by.id, effect = std::move(effect)] {
    auto& mine = *find_worker_process(who);
    const auto ended = mine.sent.extract(effect.number).mapped();
    if (ended.has_failed)
      return;
    router_effects effects;
    mine.values_of.failed(ended.part, ended.attempt, effect.why, local(mine), effects);
    carry_out(mine, effects);
  });
}

/// Delivers in order until the link breaks: then all messages on their way are lost.
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
    if (to_server) // Messages that a client sent before it died arrive, too.
      arrive();
    else
      when_awake(client, now_, arrive);
  });
}

/// Breaks a link. Until the process notices, further messages are lost as well.
void job_world::break_link(worker_process& by, std::uint32_t index) {
  auto& link = by.links[index];
  if (std::exchange(link.is_dead, true))
    return;
  ++link.number;
  ++tally_.links_broken;
  when_awake(by.id, now_ + pick_ms(1, 100), [this, who = by.id, index] {
    auto& mine = *find_worker_process(who);
    mine.links[index].is_dead = false;
    decide(mine, index, [](request_window& window, window_effects& effects) {
      window.lost({errc::peer_lost, "the link broke"}, effects);
    });
  });
}

/// Takes the outcome of a part, if the link waits for it. A failure is dropped if the part has
/// missed its deadline at the router.
void job_world::settle(worker_process& by, const part_in_flight& asked, outcome what) {
  const auto found = by.sent.find(asked.number);
  if (found == by.sent.end())
    return;
  const auto part = found->second;
  bool is_open = false;
  decide(by, part.server, [&](request_window& window, window_effects& effects) {
    is_open = window.answered(asked.number, local(by), effects);
  });
  if (!is_open)
    return;
  by.sent.erase(asked.number);
  router_effects effects;
  if (auto* got = std::get_if<reply>(&what))
    by.values_of.answered(part.part, std::move(*got), local(by), effects);
  else if (!part.has_failed)
    by.values_of.failed(part.part, part.attempt, std::get<failure>(what), local(by), effects);
  carry_out(by, effects);
  if (by.id.role == role::actor)
    return;
  for (const auto index : group_of(by.id.index))
    if (const auto one = workers_.find(index); one != workers_.end())
      advance(*one->second);
}

void job_world::fail_late_parts(worker_process& by) {
  router_effects effects;
  for (auto& [unused, sent] : by.sent)
    if (sent.deadline <= now_ && !std::exchange(sent.has_failed, true))
      by.values_of.failed(sent.part, sent.attempt, {errc::timed_out, "no answer in time"},
                          local(by), effects);
  carry_out(by, effects);
}

} // namespace troupe::sim
