// Checks of values, reads and checkpoints, and at the end.
#include "cli/sim/job_world_parts.hpp"

namespace troupe::sim {

// -- values -------------------------------------------------------------------------------------

std::uint64_t job_world::clocks_of(const batch_set& applied) const {
  return applied.floor().value >= job().batches() ? bsp_clock_count(job())
                                                  : bsp_clock(job(), applied.floor());
}

/// Checks the values that begin a generation: all that begin it have the same.
void job_world::check_beginning(const server& by, const hosted& at, const value_image& image) {
  require(image.adds_up(), "sums: a generation begins with a sum that is not that of its batches");
  const auto stored = checkpoints_.find(at.host.record().base_checkpoint);
  // An initial member's own state may have begun with an older checkpoint; check_kept() covers it.
  if (stored != checkpoints_.end() && !rotten_.contains(stored->first) && !at.host.recovered()) {
    auto both = stored->second.parts.at(at.host.shard()).applied;
    both.intersect(image.applied);
    require(both == stored->second.parts.at(at.host.shard()).applied,
            "durability: a generation begins with less than its checkpoint");
  }
  const history fresh{at.host.job_generation(), now_,          at.host.recovered(), image,
                      image.version(),          {image.digest}};
  const auto [known, is_first] =
    histories_.try_emplace({at.host.shard(), at.host.generation()}, fresh);
  require(known->second.first_values == image,
          "replicas: those that begin a generation differ in what they have");
  if (is_traced() && is_first)
    note(full_name(by.id) + " begins shard " + std::to_string(at.host.shard().value) + " with "
         + std::to_string(image.applied.size())
         + (at.host.recovered() ? " that it kept" : " batches") + ", told were "
         + std::to_string(acknowledged_[at.host.shard()].size()));
}

/// Checks a generation that acts from now on: with logs it has all that was acknowledged before.
void job_world::check_kept(shard_id shard, const chain_config& lost, generation_id next) {
  auto& told = acknowledged_[shard];
  const auto& begun = histories_.at({shard, next});
  auto both = told;
  both.intersect(begun.first_values.applied);
  require(!is_durable() || both == told
            || may_be_lost(shard, lost, histories_.at({shard, lost.generation}), begun),
          "durability: an acknowledged push is gone, and its logs are not");
  told = std::move(both);
}

/// Returns true if acknowledged pushes may be gone: all disks are wiped or do not come back in
/// time, or in bsp all chains go back for one. An initial member that reports a recovery has all of
/// them.
bool job_world::may_be_lost(shard_id shard, const chain_config& lost, const history& past,
                            const history& begun) const {
  const auto has_nothing = [&](const member_id& who) {
    return wiped_disks_.contains({who.index, shard}) || was_missed(who, past.begun);
  };
  const bool nobody_came = std::ranges::all_of(lost.members, has_nothing);
  const bool all_go_back = begun.job_generation != past.job_generation;
  return (nobody_came || all_go_back) && !begun.recovered;
}

void job_world::check_step(const hosted& at, const apply_effect& effect) {
  require(effect.skip.empty(), "exactly once: partitions of a shard differ");
  if (!mode().clock_updates || is_durable())
    return;
  // Chains of one generation of a bsp job have begun at the same clock.
  const auto& mine = histories_.at({at.host.shard(), at.host.generation()});
  for (std::uint32_t i = 0; i < persisted_.chains.size(); ++i) {
    const auto other = histories_.find({{i}, persisted_.chains[i].active.generation});
    require(other == histories_.end() || other->second.job_generation != mine.job_generation
              || other->second.first_values.applied == mine.first_values.applied,
            "one cut: chains of one generation began at different clocks");
  }
}

/// Checks that replicas have the same at the same version.
void job_world::check_applied(const hosted& at, std::uint64_t version) {
  auto& all = histories_.at({at.host.shard(), at.host.generation()});
  const auto step = version - all.first;
  require(version >= all.first && step <= all.digests.size(), "replicas: one has skipped an entry");
  if (step == all.digests.size())
    all.digests.push_back(at.values.digest);
  require(all.digests[step] == at.values.digest, "replicas: they differ at the same version");
}

// -- reads --------------------------------------------------------------------------------------

void job_world::check_answer(server& by, const hosted& at, const part_in_flight& asked,
                             std::uint64_t version) {
  const auto& what = *asked.what->pull;
  if (what.ranges.empty())
    return; // A request without ranges is an introduction.
  const std::pair given{at.host.generation(), version};
  require(given >= std::pair{what.seen.generation, what.seen.version},
          "reads: an answer is older than what its reader had been told");
  // Without other replicas there is no lease: a server that was given up answers from the past.
  const bool has_lease = job().replicas > 1;
  if (what.anywhere)
    ++tally_.answered_anywhere;
  else
    require(given >= asked.told || (!has_lease && at.host.generation() < asked.told.first),
            "reads: a head's answer is older than what heads had told anyone");
  if (mode().clock_updates)
    require(clocks_of(at.values.applied) >= bsp_clock(job(), what.step.batch),
            "bsp: a pull is answered before its clock");
  const auto& newest = newest_of(persisted_.chains[at.host.shard().value]);
  const bool is_over = !has_lease && newest.generation != at.host.generation();
  if (mode().bounded_lead && !is_over)
    check_staleness(by, at, what.step.clock);
}

bool job_world::has_open_work(const worker& one) {
  return std::ranges::any_of(one.steps.progress(),
                             [](const auto& x) { return x.done.size() < x.lease.count; });
}

/// Returns true if the worker has open work that was not taken back. It may not have heard of that.
bool job_world::is_at_work(const worker& one) const {
  const auto newest = leases_now_.find(one.id);
  if (newest == leases_now_.end())
    return has_open_work(one);
  std::set<batch_id> left;
  for (const auto& given : newest->second)
    for (std::uint32_t i = 0; i < given.count; ++i)
      left.insert(given.at(i));
  for (const auto& held : one.steps.progress())
    for (std::uint32_t i = 0; i < held.lease.count; ++i)
      if (left.contains(held.lease.at(i)) && std::ranges::count(held.done, held.lease.at(i)) == 0)
        return true;
  return false;
}

/// Returns the clock from which the server waits for the worker, by its newest desired state;
/// nullopt: it does not wait.
std::optional<std::uint64_t> job_world::bound_from(const hosted& at, const worker& one) {
  const auto listed = std::ranges::find_if(at.host.desired().workers, [&](const clock_entry& x) {
    return x.worker.value == one.id.index && x.incarnation == one.id.incarnation;
  });
  if (listed == at.host.desired().workers.end() || !listed->known || at.unbound.contains(one.id))
    return std::nullopt;
  return listed->clock;
}

/// Checks ssp: no worker at work is more than the bound behind a reader, and the reader sees all
/// pushes below the bound. A worker that is out for a while is not counted.
void job_world::check_staleness(server& by, const hosted& at, std::uint64_t reader_clock) {
  const auto bound = job().tables.front().sync.staleness_clocks;
  const auto begun = histories_.at({at.host.shard(), at.host.generation()}).begun;
  for (const auto& [index, other] : workers_) {
    // A worker that was given up for a while begins again, with a clock that it may not have heard
    // of.
    const bool may_be_given_up = other->disturbed_until.has_value() || other->was_given_up;
    const auto from = bound_from(at, *other);
    if (!other->admitted || !is_at_work(*other)
        || (may_be_given_up && (!from || other->steps.clock() < *from)))
      continue;
    const auto first = may_be_given_up ? *from : 0;
    const bool is_near = other->steps.clock() + bound >= reader_clock;
    if (!is_near)
      throw violation("staleness: worker " + std::to_string(index) + " at clock "
                      + std::to_string(other->steps.clock()) + " is too far behind a reader at "
                      + std::to_string(reader_clock) + ", whom server "
                      + std::to_string(by.id.index) + " answered");
    for (const auto& push : other->made)
      if (push.clock >= first && push.clock + bound < reader_clock && push.when >= begun
          && !at.values.applied.contains(mark_of(job(), push.batch, push.table)))
        throw violation("staleness: a reader at clock " + std::to_string(reader_clock)
                        + " does not see batch " + std::to_string(push.batch.value)
                        + ", which worker " + std::to_string(index) + " pushed at clock "
                        + std::to_string(push.clock));
  }
}

// -- checkpoints --------------------------------------------------------------------------------

void job_world::check_cut(const hosted& at) const {
  require(at.values.adds_up(), "sums: a cut has a sum that is not that of its batches");
  const auto told = at.host.state()->batches_applied();
  for (std::uint64_t batch = 0; batch < job().batches(); ++batch) {
    bool is_applied = true;
    for (std::uint32_t table = 0; table < job().tables.size(); ++table)
      is_applied &= at.values.applied.contains(mark_of(job(), {batch}, {table}));
    require(told.contains({batch}) == is_applied,
            "one cut: applied batches and values of a part differ");
  }
}

/// Checks that a server that no configuration has named for a while holds no state.
void job_world::check_freed(const server& by, const hosted& at) const {
  const bool holds = at.host.is_broken() || at.host.state() != nullptr;
  require(!holds || !at.unnamed_since || local(by) - *at.unnamed_since < unnamed_time,
          "freed: a server holds what is of no use any more");
}

void job_world::check_parts(const storage::manifest& what) {
  const auto& parts = checkpoints_[what.checkpoint].parts;
  require(what.parts.size() == job().shard_count() && parts.size() == what.parts.size(),
          "one cut: a checkpoint lacks a part");
  for (const auto& part : what.parts) {
    require(part.checkpoint == what.checkpoint && parts.contains(part.shard),
            "one cut: a part is of another checkpoint");
    if (mode().clock_updates)
      require(clocks_of(parts.at(part.shard).applied) == what.clock,
              "one cut: parts of a bsp checkpoint were cut at different clocks");
  }
}

// -- the end ------------------------------------------------------------------------------------

void job_world::check_finished() {
  const auto full = [&](const value_image& x) {
    return x.applied == batch_set(mark_of(job(), {job().batches()}, {0})) && x.adds_up();
  };
  for (std::uint32_t i = 0; i < persisted_.chains.size(); ++i) {
    const auto& members = persisted_.chains[i].active.members;
    const auto* head = members.empty() ? nullptr : find_server(members.front());
    if (head == nullptr || !head->chains.contains({i}))
      continue; // It died after the end, and another server takes its place.
    const auto& at = head->chains.at({i});
    if (at.host.leads())
      require(full(at.values),
              "exactly once: finished without all batches in shard " + std::to_string(i));
  }
  const auto newest = std::find_if(checkpoints_.rbegin(), checkpoints_.rend(),
                                   [](const auto& x) { return x.second.committed; });
  require(newest != checkpoints_.rend(), "one cut: finished without a checkpoint");
  for (const auto& [unused, part] : newest->second.parts)
    require(full(part), "one cut: the last checkpoint lacks batches");
}

/// Checks that the last checkpoint of a stopped job, if there is one, has each acknowledged push;
/// of a line, those of batches whose first part has been acknowledged.
/// Does so without faults only, because a shard that is restored later has lost its cut. In bsp all
/// workers may push a clock after the cut before they hear of it.
void job_world::check_stopped() {
  const auto newest = std::find_if(checkpoints_.rbegin(), checkpoints_.rend(),
                                   [](const auto& x) { return x.second.committed; });
  const bool was_asked =
    stop_at_ && *stop_at_ >= faults_end_; // Else it finished between two looks.
  if (newest == checkpoints_.rend() || newest->first <= before_stop_ || !was_asked
      || mode().clock_updates)
    return;
  ++tally_.stops;
  for (const auto& [shard, part] : newest->second.parts) {
    const auto& told = acknowledged_[shard];
    const auto tables = job().tables.size();
    for (std::uint64_t mark = 0; mark < told.end().value; ++mark)
      require(!told.contains({mark}) || !told.contains({mark - mark % tables})
                || part.applied.contains({mark}),
              "one cut: the last checkpoint of a stopped job lacks acknowledged batches");
  }
}

void job_world::check_end() {
  if (!has_ended()) {
    note(describe());
    throw violation("liveness: the job does not end");
  }
  tally_.completed += launcher_->end->status == EXIT_FAILURE ? 0 : 1;
}

} // namespace troupe::sim
