// A server's work for a chain: requests of workers, steps on its values, other replicas. decide()
// gives an event to a server's host, and carries its effects out here and in job_servers.cpp.
#include "cli/sim/job_world_parts.hpp"

namespace troupe::sim {
namespace {

/// Share of messages between servers that are slow, doubled or lost like others.
constexpr double replica_share = 0.05;
/// The time in which pushes are gathered, at most.
constexpr std::uint64_t gathering_ms_max = 3;

} // namespace

// -- requests -----------------------------------------------------------------------------------

void job_world::ask(server& by, const member_id& from, const part_in_flight& what) {
  const auto found = by.chains.find(what.what->shard);
  if (found == by.chains.end())
    return send_answer(by, from, what, {},
                       failure{errc::not_ready, "the server has no part in this shard (yet)"});
  if (what.what->push && !quiet_ && chance(full_log_)) {
    ++tally_.refused;
    return send_answer(by, from, what, {},
                       failure{errc::not_ready, "too much waits for the other replicas"});
  }
  auto& at = found->second;
  const request_token token{at.next_token++};
  at.requests.emplace(token, hosted::open_request{from, what});
  decide(by, at, [&](host_effects& effects) {
    at.host.ask(token, request{*what.what}, local(by), effects);
  });
}

void job_world::answer(server& by, hosted& at, request_token token, outcome what) {
  const auto open = std::move(at.requests.extract(token).mapped());
  const auto generation = at.host.generation();
  if (auto* const got = std::get_if<reply>(&what))
    got->generation = generation;
  send_answer(by, open.from, open.asked, generation, std::move(what));
}

void job_world::send_answer(const server& by, const member_id& to, const part_in_flight& asked,
                            generation_id generation, outcome what) {
  over_link(to, by.id.index, false, [this, to, asked, generation, what = std::move(what)] {
    auto* const reader = find_worker_process(to);
    if (reader == nullptr)
      return;
    const bool by_head = !asked.what->pull || !asked.what->pull->anywhere;
    auto& told = told_[asked.what->shard];
    const auto* const got = std::get_if<reply>(&what);
    if (got != nullptr && got->pushed)
      told = std::max(told, std::pair{generation, got->pushed->version});
    if (got != nullptr && got->pulled && by_head)
      told = std::max(told, std::pair{generation, got->pulled->version});
    settle(*reader, asked, what);
  });
}

void job_world::run(server& by, hosted& at, acknowledge_effect& effect, host_effects&) {
  hear_work(by.id);
  const auto& open = at.requests.at(effect.push);
  tally_.repeated += effect.push_reply.duplicate ? 1 : 0;
  for (const batch_id mark : marks_of(job(), *open.asked.what->push)) {
    require(at.has(job(), mark), "acknowledged: a push is not applied");
    const auto shard = at.host.shard();
    if (at.host.generation() == persisted_.chains[shard.value].active.generation)
      acknowledged_[shard].insert(mark);
  }
}

void job_world::run(server& by, hosted& at, reply_effect& effect, host_effects&) {
  if (!effect.read)
    return answer(by, at, effect.request, reply{effect.pushed, std::nullopt});
  require(at.gathered.empty(), "reads: an answer lacks steps of its version");
  check_answer(by, at, at.requests.at(effect.request).asked, effect.read->version);
  ++tally_.answered;
  pull_reply brought;
  brought.version = effect.read->version;
  for (const auto& where : effect.read->what.ranges)
    brought.pieces.push_back({where, nullptr});
  answer(by, at, effect.request, reply{effect.pushed, std::move(brought)});
}

void job_world::run(server& by, hosted& at, refuse_effect& effect, host_effects&) {
  tally_.sum_not_applicable += effect.why.code == errc::sum_not_applicable ? 1 : 0;
  answer(by, at, effect.request, std::move(effect.why));
}

// -- steps --------------------------------------------------------------------------------------

void job_world::decide(server& by, hosted& at, const std::function<void(host_effects&)>& what) {
  host_effects effects;
  what(effects);
  for (std::size_t i = 0; i < effects.size(); ++i) { // Carrying one out may append more.
    auto effect = std::move(effects[i]);
    std::visit([&](auto& x) { run(by, at, x, effects); }, effect);
  }
}

void job_world::run(server& by, hosted& at, step_effect& effect, host_effects& more) {
  check_step(at, effect.what);
  if (effect.is_gathered && at.gathered.empty())
    later(by, at, now_ + pick_ms(0, gathering_ms_max), [this](server& mine, hosted& here) {
      decide(mine, here,
             [&](host_effects& effects) { here.host.end_gathering(local(mine), effects); });
    });
  if (effect.is_gathered)
    at.gathered.push_back({std::move(effect.pushes.front()), at.host.state()->version() + 1});
  else
    at.values.apply(job(), effect.pushes);
  at.host.applied(local(by), more);
  ++tally_.applied;
  if (!effect.is_gathered)
    check_applied(at, at.host.state()->version());
}

void job_world::run(server&, hosted& at, apply_gathered_effect&, host_effects&) {
  tally_.gathered += at.gathered.size() > 1 ? 1 : 0;
  for (const auto& [push, version] : std::exchange(at.gathered, {})) {
    at.values.apply(job(), {push});
    check_applied(at, version);
  }
}

// -- other replicas -----------------------------------------------------------------------------

void job_world::run(server& by, hosted& at, replica_send_effect& effect, host_effects&) {
  std::visit(
    [&](auto& what) {
      if constexpr (!std::is_same_v<std::decay_t<decltype(what)>, copy_part>)
        send_to_peer(effect.to, at.host.shard(), by.id, std::move(what));
    },
    effect.what);
}

void job_world::run(server& by, hosted& at, ask_copy_effect& effect, host_effects&) {
  send_to_peer(effect.from, at.host.shard(), by.id, copy_request{effect.config, 0, {}});
}

/// Sends a copy in one piece.
void job_world::run(server& by, hosted& at, send_copy_effect& effect, host_effects&) {
  if (effect.fresh) {
    auto image = at.values;
    image.partitions = std::move(effect.fresh->partitions);
    at.sent = std::make_shared<const state_copy>(state_copy{
      effect.fresh->config, effect.fresh->index, effect.fresh->clock_max, std::move(image)});
  }
  send_to_peer(effect.to, at.host.shard(), by.id, at.sent);
}

void job_world::run(server&, hosted& at, end_copy_effect&, host_effects&) { at.sent.reset(); }

void job_world::send_to_peer(const member_id& to, shard_id shard, const member_id& from,
                             replica_what what) {
  post_quickly(place_of(from), place_of(to), replica_share,
               [this, to, shard, from, what = std::move(what)] {
                 when_awake(to, now_, [this, to, shard, from, what] {
                   auto& mine = *find_server(to);
                   if (const auto at = mine.chains.find(shard); at != mine.chains.end())
                     receive(mine, at->second, from, what);
                 });
               });
}

void job_world::receive(server& by, hosted& at, const member_id& from, const replica_what& what) {
  if (const auto* brought = std::get_if<std::shared_ptr<const state_copy>>(&what))
    return receive(by, at, **brought);
  decide(by, at, [&](host_effects& effects) {
    std::visit(
      [&](const auto& x) {
        if constexpr (!std::is_same_v<decltype(x), const std::shared_ptr<const state_copy>&>)
          at.host.receive(from, x, local(by), effects);
      },
      what);
  });
}

void job_world::receive(server& by, hosted& at, const state_copy& what) {
  if (!at.host.awaits_copy(what.config))
    return;
  at.loaded = what.image;
  at.is_copy = true;
  decide(by, at, [&](host_effects& effects) {
    at.host.copied({what.config, what.index, what.clock_max, what.image.partitions}, local(by),
                   effects);
  });
}

} // namespace troupe::sim
