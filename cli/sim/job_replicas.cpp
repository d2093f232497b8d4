// A server's work for a chain: requests of workers, decisions of its replica, other replicas.
#include "cli/sim/job_world_parts.hpp"

namespace troupe::sim {
namespace {

/// Share of letters between servers that are slow, doubled or lost like others.
constexpr double peer_share = 0.05;
/// Rate at which log writes fail, relative to parts of checkpoints.
constexpr double log_share = 0.03;

} // namespace

// -- requests -----------------------------------------------------------------------------------

void job_world::ask(server& by, const member_id& from, const part_in_flight& what) {
  const auto found = by.chains.find(what.what->chain);
  if (found == by.chains.end() || !found->second.decider || found->second.broken)
    return send_answer(by, from, what, {},
                       failure{errc::not_ready, "the server has no part in this chain (yet)"});
  auto& at = found->second;
  const request_token token{at.next_token++};
  at.requests.emplace(token, hosted::open_request{from, what, {}});
  decide(by, at, [&](replica_effects& effects) {
    if (!what.what->push)
      return pull(by, at, token, effects);
    at.decider->push(token, std::make_shared<const push_request>(*what.what->push), local(by),
                     effects);
  });
}

void job_world::pull(server& by, hosted& at, request_token token, replica_effects& effects) {
  at.decider->pull(token, *at.requests.at(token).asked.what->pull, local(by), effects);
}

void job_world::answer(server& by, hosted& at, request_token token, outcome what) {
  const auto open = std::move(at.requests.extract(token).mapped());
  if (auto* const got = std::get_if<reply>(&what))
    got->generation = at.generation;
  send_answer(by, open.from, open.asked, at.generation, std::move(what));
}

void job_world::send_answer(const server& by, const member_id& to, const part_in_flight& asked,
                            generation_id generation, outcome what) {
  over_link(to, by.id.index, false, [this, to, asked, generation, what = std::move(what)] {
    auto* const reader = find_worker_process(to);
    if (reader == nullptr)
      return;
    const bool by_head = !asked.what->pull || !asked.what->pull->anywhere;
    auto& told = told_[asked.what->chain];
    const auto* const got = std::get_if<reply>(&what);
    if (got != nullptr && got->pushed)
      told = std::max(told, std::pair{generation, got->pushed->version});
    if (got != nullptr && got->pulled && by_head)
      told = std::max(told, std::pair{generation, got->pulled->version});
    settle(*reader, asked, what);
  });
}

// -- effects ------------------------------------------------------------------------------------

/// Carries out effects, which may append more. A pull follows when the push of its request is done.
void job_world::decide(server& by, hosted& at, const std::function<void(replica_effects&)>& what) {
  replica_effects effects;
  what(effects);
  for (std::size_t i = 0;;) {
    while (i < effects.size() && !at.broken) {
      auto effect = std::move(effects[i++]);
      std::visit([&](auto& x) { run(by, at, x, effects); }, effect);
    }
    if (at.pulls_due.empty() || at.broken)
      return;
    const auto token = at.pulls_due.front();
    at.pulls_due.pop_front();
    pull(by, at, token, effects);
  }
}

void job_world::run(server& by, hosted& at, step_effect& effect, replica_effects& more) {
  check_step(at, effect);
  at.values.apply(effect.pushes);
  at.decider->applied(local(by), more);
  ++tally_.applied;
  check_applied(at);
}

void job_world::run(server& by, hosted& at, acknowledge_effect& effect, replica_effects&) {
  auto& open = at.requests.at(effect.push);
  tally_.repeated += effect.push_reply.duplicate ? 1 : 0;
  for (const auto& step : open.asked.what->push->steps()) {
    require(at.values.marks.contains(step.batch), "acknowledged: a push is not applied");
    if (at.generation == persisted_.chains[at.chain.value].active.generation)
      acknowledged_[at.chain].insert(step.batch);
  }
  open.answer.pushed = effect.push_reply;
  if (open.asked.what->pull)
    at.pulls_due.push_back(effect.push);
  else
    answer(by, at, effect.push, std::move(open.answer));
}

void job_world::run(server& by, hosted& at, refuse_effect& effect, replica_effects&) {
  auto& open = at.requests.at(effect.request);
  tally_.sum_not_applicable += effect.why.code == errc::sum_not_applicable ? 1 : 0;
  // A client that has its push reply is to ask for the values again, alone.
  if (open.answer.pushed && reaction_to(effect.why.code) == reaction::retry)
    answer(by, at, effect.request, std::move(open.answer));
  else
    answer(by, at, effect.request, std::move(effect.why));
}

void job_world::run(server& by, hosted& at, answer_effect& effect, replica_effects&) {
  auto& open = at.requests.at(effect.pull);
  check_answer(by, at, open.asked, effect);
  ++tally_.answered;
  pull_reply brought;
  brought.version = effect.version;
  for (const auto& where : open.asked.what->pull->ranges)
    brought.pieces.push_back({where, nullptr});
  open.answer.pulled = std::move(brought);
  answer(by, at, effect.pull, std::move(open.answer));
}

void job_world::run(server& by, hosted& at, cut_effect& effect, replica_effects&) {
  check_cut(at);
  at.cut = at.kept_at = effect.checkpoint;
  auto image = image_of(at);
  if (is_durable())
    keep_image(by, at, image, [](bool) {});
  later(by, at, disk_time(by),
        [this, number = effect.checkpoint, image = std::move(image)](server& mine, hosted& here) {
          if (!quiet_ && chance(part_failure_)) {
            here.checkpoint_failed = number;
            ++tally_.parts_failed;
          } else {
            checkpoints_[number].parts[here.chain] = image;
            here.part = {number, here.chain, {}, image.version()};
          }
          send_report(mine);
        });
}

void job_world::run(server& by, hosted& at, write_effect& effect, replica_effects&) {
  if (job().replicas > 1 && !quiet_ && chance(part_failure_ * log_share))
    return break_off(by, at);
  auto& disk = disk_of(by, at);
  disk.logs[disk.newest].emplace_back(effect.index, std::move(effect.entry));
}

void job_world::run(server& by, hosted& at, take_back_effect& effect, replica_effects&) {
  auto& disk = disk_of(by, at);
  disk.logs[disk.newest].emplace_back(effect.last, std::nullopt);
}

void job_world::run(server& by, hosted& at, replica_send_effect& effect, replica_effects&) {
  std::visit(
    [&](auto& what) {
      if constexpr (!std::is_same_v<std::decay_t<decltype(what)>, copy_part>)
        send_to_peer(effect.to, at.chain, by.id, std::move(what));
    },
    effect.what);
}

void job_world::run(server& by, hosted& at, request_copy_effect& effect, replica_effects&) {
  if (at.copy_waits)
    return at.decider->copy_advanced(local(by));
  send_to_peer(effect.from, at.chain, by.id, copy_request{effect.config, 0, {}});
}

// -- other replicas -----------------------------------------------------------------------------

void job_world::send_to_peer(const member_id& to, chain_id chain, const member_id& from,
                             replica_what what) {
  post_quickly(place_of(from), place_of(to), peer_share,
               [this, to, chain, from, what = std::move(what)] {
                 when_awake(to, now_, [this, to, chain, from, what] {
                   auto& mine = *find_server(to);
                   const auto at = mine.chains.find(chain);
                   if (at != mine.chains.end() && at->second.decider && !at->second.broken)
                     receive(mine, at->second, from, what);
                 });
               });
}

void job_world::receive(server& by, hosted& at, const member_id& from, const replica_what& what) {
  if (const auto* asked = std::get_if<copy_request>(&what))
    return send_copy(by, at, from, *asked);
  if (const auto* brought = std::get_if<std::shared_ptr<const state_copy>>(&what))
    return install(by, at, *brought);
  decide(by, at, [&](replica_effects& effects) {
    if (const auto* entry = std::get_if<entry_message>(&what))
      at.decider->receive(from, *entry, local(by), effects);
    else if (const auto* committed = std::get_if<committed_message>(&what))
      at.decider->receive(from, *committed, local(by), effects);
    else if (const auto* joined = std::get_if<joined_message>(&what))
      at.decider->receive(from, *joined, local(by), effects);
  });
}

void job_world::send_copy(server& by, hosted& at, const member_id& to, const copy_request& asked) {
  const auto index = at.decider->copy_for(to, asked.config);
  if (!index) {
    if (asked.config > at.decider->status().config)
      at.early_request = {to, asked}; // Otherwise it would come again only after a while.
    return;
  }
  send_to_peer(to, at.chain, by.id,
               std::make_shared<const state_copy>(state_copy{
                 asked.config, *index, at.decider->state()->pull_clock_max(), image_of(at)}));
}

void job_world::install(server& by, hosted& at, const std::shared_ptr<const state_copy>& what) {
  if (at.copy_waits)
    return;
  if (!is_durable())
    return decide(by, at, [&](replica_effects& effects) { put_in_place(by, at, *what, effects); });
  at.copy_waits = true;
  keep_image(by, at, what->image, [this, who = by.id, chain = at.chain, what](bool is_kept) {
    auto& mine = *find_server(who);
    auto& here = mine.chains.at(chain);
    here.copy_waits = false;
    if (!is_kept)
      return break_off(mine, here);
    decide(mine, here, [&](replica_effects& effects) { put_in_place(mine, here, *what, effects); });
  });
}

void job_world::put_in_place(server& by, hosted& at, const state_copy& what,
                             replica_effects& effects) {
  if (!at.decider->install(what.config, what.index, what.clock_max, what.image.partitions,
                           local(by), effects))
    return;
  ++tally_.copies;
  at.values = what.image;
  at.values.partitions.clear();
  check_applied(at);
  send_report(by);
}

} // namespace troupe::sim
