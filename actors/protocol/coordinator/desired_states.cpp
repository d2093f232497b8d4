#include "actors/protocol/coordinator/desired_states.hpp"

#include "actors/protocol/clock_table.hpp"
#include "actors/protocol/mutation.hpp"

#include <algorithm>

namespace troupe {
namespace {

member_status absent(const member_id& slot) {
  member_status one;
  one.member = slot;
  return one;
}

/// Returns the leases without the batches from `end` on.
std::vector<lease> leases_before(std::optional<batch_id> end, std::vector<lease> leases) {
  for (auto& each : leases)
    while (end && each.count > 0 && each.at(each.count - 1) >= *end)
      --each.count;
  std::erase_if(leases, [](const lease& each) { return each.count == 0; });
  return leases;
}

void fill(desired_worker& mine, const member_id& who, const cluster_state& cluster) {
  const auto& worker = cluster.workers.all().at(who.index);
  mine.view = cluster.view;
  mine.admitted = worker.stage == admission_stage::admitted;
  mine.start_clock = worker.start_clock;
  if (mine.admitted && !cluster.shards.is_rolling_back())
    mine.leases = leases_before(cluster.work_end, cluster.workers.batches().leases_of({who.index}));
}

void fill(desired_server& mine, const member_id& who, const cluster_state& cluster) {
  mine.job = cluster.job;
  mine.generation = cluster.stored.generation;
  mine.shard_of = cluster.stored.shard_of;
  for (std::uint32_t index = 0; index < cluster.stored.chains.size(); ++index)
    mine.chains.push_back({{index}, cluster.stored.chains[index]});
  if (const auto found = cluster.servers.find(who.index); found != cluster.servers.end())
    mine.heard_ns = found->second.echo_ns;
  for (const auto& [place, record] : cluster.members.workers()) {
    const auto& worker = cluster.workers.all().at(place.index);
    const bool known = worker.stage == admission_stage::admitted;
    const bool unbound = known && worker.measure == straggler_measure::demoted;
    if (known || worker.stage == admission_stage::candidate)
      mine.workers.push_back({{place.index},
                              record.id.incarnation,
                              unbound ? unbound_clock : worker.start_clock,
                              known});
  }
  mine.checkpoint = cluster.schedule.asked();
  mine.checkpoint_clock = cluster.schedule.asked_clock();
}

void fill(desired_actor& mine, const member_id& /*who*/, const cluster_state& cluster) {
  mine.view = cluster.view;
  mine.wind_down = cluster.phase >= job_phase::finishing;
}

member_status status_of_server(std::uint32_t index, bool over, const cluster_state& cluster) {
  auto one = absent(member_of(server_id{index}));
  one.updates_rolled_back = cluster.shards.rolled_back_by(index);
  const auto found = cluster.servers.find(index);
  if (found == cluster.servers.end())
    return one;
  const auto& report = found->second.report;
  one.member = found->second.id;
  one.server = report.counters;
  bool complete = true;
  for (const auto& mine : report.chains) {
    const auto& active = cluster.stored.chains[mine.shard.value].active;
    const bool joins = active.joiner == one.member;
    const bool is_member = std::ranges::find(active.members, one.member) != active.members.end();
    complete = complete && !joins && (!is_member || mine.status.complete);
    one.clock = std::max(one.clock, mine.version);
  }
  one.state = over                                               ? member_state::finished
              : report.chains.empty()                            ? member_state::joining
              : complete && !cluster.newcomers.contains({index}) ? member_state::active
                                                                 : member_state::restoring;
  return one;
}

member_status status_of_worker(std::uint32_t index, bool over, const cluster_state& cluster) {
  const auto& worker = cluster.workers.all().at(index);
  const auto& batches = cluster.workers.batches();
  auto one = absent(member_of(worker_id{index}));
  const bool busy = worker.stage == admission_stage::admitted && batches.holds_work({index});
  const bool idle = over || cluster.phase == job_phase::finishing
                    || (cluster.phase == job_phase::training && batches.remaining() == 0);
  one.state = worker.measure == straggler_measure::evicted ? member_state::evicted
              : busy                                       ? member_state::active
              : idle                                       ? member_state::finished
                                                           : member_state::joining;
  one.clock = worker.report.clock;
  one.worker = worker.report.counters;
  return one;
}

/// An actor that had stopped stays in the list after its end.
member_status status_of_actor(std::uint32_t index, const cluster_state& cluster) {
  auto one = absent({role::actor, index, {}});
  const auto found = cluster.actors.find(index);
  if (found == cluster.actors.end())
    return one;
  const auto& [id, report] = found->second;
  one.member = id;
  one.state = report.stopped ? member_state::finished : member_state::active;
  one.actor = report.counters;
  return one;
}

// Launchers show neither coordinators nor observers by their statuses.
static_assert(role_max == role::actor);

std::vector<member_status> statuses(const cluster_state& cluster) {
  const bool over = cluster.phase == job_phase::finished || cluster.phase == job_phase::stopped;
  const auto& workers = cluster.workers.all();
  std::vector<member_status> all;
  for (const auto& server : servers_of(cluster.job, cluster.stored))
    all.push_back(status_of_server(server.value, over, cluster));
  for (const auto& [index, worker] : workers)
    all.push_back(status_of_worker(index, over, cluster));
  for (std::uint32_t index = 0; index < cluster.workers.expected(); ++index) {
    if (workers.contains(index))
      continue;
    all.push_back(absent(member_of(worker_id{index})));
    if (cluster.workers.measure_of({index}) == straggler_measure::evicted)
      all.back().state = member_state::evicted;
  }
  for (std::uint32_t index = 0; index < cluster.job.actors; ++index)
    all.push_back(status_of_actor(index, cluster));
  const auto& actors = cluster.actors; // Hosts may have more of them, as they may of workers.
  for (auto more = actors.lower_bound(cluster.job.actors); more != actors.end(); ++more)
    all.push_back(status_of_actor(more->first, cluster));
  for (auto& one : all) {
    const auto slot = cluster.members.all().find({one.member.role, one.member.index, {}});
    if (slot != cluster.members.all().end()) {
      one.member = slot->second.id;
      one.rss_bytes_max = slot->second.rss_bytes_max;
    }
  }
  return all;
}

void fill(job_status& mine, const member_id& /*who*/, const cluster_state& cluster) {
  mine.view = cluster.view;
  mine.phase = cluster.phase;
  mine.batches_done = cluster.workers.batches().settled();
  mine.checkpoint = cluster.stored.committed;
  mine.members = statuses(cluster);
  const auto servers = servers_of(cluster.job, cluster.stored);
  mine.servers.assign(servers.begin(), servers.end());
  mine.draining.assign(cluster.stored.draining.begin(), cluster.stored.draining.end());
  mine.events.assign(cluster.events.newest().begin(), cluster.events.newest().end());
  mine.events_total = cluster.events.total();
  mine.job = cluster.job;
  mine.coordinator = cluster.coordinator;
  mine.directory_mark = cluster.directory_mark;
}

/// Makes `body` an empty one of the alternative for the role, if there is one.
template <class... Bodies>
void choose_body(role whom, std::variant<Bodies...>& body) {
  ((Bodies::receiver == whom ? void(body = Bodies{}) : void()), ...);
}

} // namespace

decltype(desired_state::body) body_for(role whom) {
  decltype(desired_state::body) body;
  choose_body(whom, body);
  return body;
}

std::vector<member_address> listeners_for(role whom, const membership& members,
                                          std::span<const role_traits> rows) {
  std::vector<member_address> all;
  for (const auto& [slot, member] : members.all())
    if ((rows[static_cast<std::size_t>(slot.role)].is_reached_by(whom) && !member.address.empty())
        || mutated(mutation::told_of_all_members))
      all.push_back({member.id, member.address});
  return all;
}

desired_state desired_for(const member_id& who, const cluster_state& cluster) {
  desired_state what{who,
                     cluster.stored.term,
                     0,
                     cluster.phase == job_phase::stopped,
                     cluster.failed,
                     body_for(who.role),
                     listeners_for(who.role, cluster.members)};
  std::visit([&](auto& body) { fill(body, who, cluster); }, what.body);
  return what;
}

view view_of(const cluster_state& cluster) {
  view made{cluster.view.config, cluster.stored.generation, {}, cluster.stored.shard_of};
  const auto is_here = [&](const member_id& who) {
    const auto found = cluster.servers.find(who.index);
    return found != cluster.servers.end() && found->second.id == who;
  };
  for (std::uint32_t index = 0; index < cluster.shards.all().size(); ++index) {
    const auto& shard = cluster.shards.all()[index];
    auto& entry = made.chains.emplace_back(chain_entry{{index}, {}, false});
    if (shard.head && is_here(*shard.head))
      entry = {{index}, *shard.head, shard.serving};
    const auto& members = cluster.stored.chains[index].active.members;
    for (std::size_t i = 1; i < members.size(); ++i)
      if (is_here(members[i]))
        entry.others.push_back(members[i]);
  }
  return made;
}

bool must_be_sent(const desired_state& now_valid, const desired_state& sent) {
  if (now_valid.stop != sent.stop || now_valid.failed != sent.failed
      || now_valid.listeners != sent.listeners)
    return true;
  const auto* shown = std::get_if<job_status>(&now_valid.body);
  const auto* before = std::get_if<job_status>(&sent.body);
  if (shown == nullptr || before == nullptr)
    return now_valid.body != sent.body;
  return shown->phase != before->phase || shown->checkpoint != before->checkpoint
         || shown->events_total != before->events_total || shown->view != before->view
         || shown->servers != before->servers || shown->draining != before->draining;
}

std::set<server_id> servers_of(const job_spec& job, const storage::coordinator_state& stored) {
  if (!stored.servers.empty())
    return stored.servers;
  std::set<server_id> all;
  for (std::uint32_t index = 0; index < job.servers; ++index)
    all.insert({index});
  return all;
}

} // namespace troupe
