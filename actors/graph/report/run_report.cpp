#include "actors/graph/report/run_report.hpp"

#include "base/quote.hpp"

#include "fmt/format.h"
#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace troupe {

namespace {

using std::chrono::nanoseconds;
using json = nlohmann::ordered_json;

/// Time over which rates are taken.
constexpr std::chrono::seconds rate_window{5};
/// Number of points of the training loss in a whole run.
constexpr std::uint64_t curve_points = 100;

double seconds(nanoseconds x) { return std::chrono::duration<double>(x).count(); }
double milliseconds(nanoseconds x) { return 1e3 * seconds(x); }

/// Returns "server-0".
std::string key_of(const process_name& who) {
  return std::string{traits_of(who.role).process} + "-" + std::to_string(who.index);
}

/// Returns sum / by, as an integer if it is one.
json divided(std::uint64_t sum, std::uint64_t by) {
  if (by == 0 || sum % by == 0)
    return by == 0 ? 0 : sum / by;
  return static_cast<double>(sum) / static_cast<double>(by);
}

json summary_of(const histogram& x) {
  return {{"mean", x.mean()}, {"p99", x.quantile(0.99)}, {"max", x.max()}};
}

/// Returns the times from a worker's request until all of its reply is there.
json times_of(const histogram& x) {
  const auto at = [&](double q) { return milliseconds_of(x.quantile(q)); };
  return x.count() == 0 ? json() : json{{"p50", at(0.5)}, {"p99", at(0.99)}, {"max", at(1.0)}};
}

/// Returns "asp", or "asp, bsp" in the order of tables if they differ. Frozen tables do not count.
template <class Text>
std::string joined(const job_spec& job, Text text) {
  std::vector<std::string> seen;
  for (const table_spec& table : job.tables) {
    if (table.frozen)
      continue;
    std::string name = text(table);
    if (std::find(seen.begin(), seen.end(), name) == seen.end())
      seen.push_back(std::move(name));
  }
  return fmt::format("{}", fmt::join(seen, ", "));
}

std::uint64_t samples_of(const job_spec& job, std::uint64_t batches) {
  const std::uint64_t per_epoch = job.batches_per_epoch();
  if (per_epoch == 0)
    return 0;
  const std::uint64_t rest = (batches % per_epoch) * job.batch_samples;
  return batches / per_epoch * job.samples + std::min(rest, job.samples);
}

bool is_over(job_phase phase) { return phase >= job_phase::finishing; }

/// Returns what a process line says of its work.
std::string detail_of(const member_status& status) {
  if (status.member.role == role::actor)
    return ""; // Its work has no clock.
  return (traits_of(status.member.role).holds_values ? "version " : "clock ")
         + std::to_string(status.clock);
}

json json_of(const port_counters& x) {
  return {{"parcels", x.parcels},
          {"bytes", x.bytes},
          {"lost", x.lost},
          {"longest_wait_seconds", static_cast<double>(x.longest_wait_us) * 1e-6}};
}

} // namespace

// -- counters --

template <class Counters>
void run_statistics::accumulated<Counters>::set(const Counters& value) {
  for (const auto each : counter_list<Counters>::counts)
    if (value.*each < last.*each)
      before.*each += last.*each;
  for (const auto each : counter_list<Counters>::histograms)
    if ((value.*each).count() < (last.*each).count())
      (before.*each).merge(last.*each);
  auto notes = std::move(last.notes); // A coordinator that has just begun knows of none.
  last = value;
  if (last.notes.empty())
    last.notes = std::move(notes);
}

std::uint64_t run_statistics::incarnation::activity() const {
  return worker.total(&worker_counters::bytes_sent) + worker.total(&worker_counters::bytes_received)
         + server.total(&server_counters::bytes_sent)
         + server.total(&server_counters::bytes_received)
         + std::accumulate(ports.begin(), ports.end(), std::uint64_t{0},
                           [](auto sum, const auto& x) { return sum + x.second.bytes; });
}

/// Takes the counts of ports, which only grow. A coordinator that has just begun knows of none.
void run_statistics::incarnation::set_ports(const std::vector<port_counters>& present) {
  for (const auto& each : present) {
    auto& mine = ports[each.port];
    mine.port = each.port;
    for (const auto count : {&port_counters::parcels, &port_counters::bytes, &port_counters::lost,
                             &port_counters::longest_wait_us})
      mine.*count = std::max(mine.*count, each.*count);
  }
}

run_statistics::run_statistics(const job_spec& job, node_roles nodes)
    : job_(job), nodes_(std::move(nodes)) {}

void run_statistics::job_started(time_point now) { started_at_ = now; }

void run_statistics::job_finished(time_point now) {
  finished_at_ = now;
  if (training_from_ && !training_until_)
    training_until_ = now;
}

void run_statistics::observe(const job_status& what, time_point now) {
  if (!training_from_ && what.phase == job_phase::training) {
    training_from_ = now;
    samples_at_start_ = samples_of(job_, what.batches_done);
  }
  if (training_from_ && !training_until_ && is_over(what.phase))
    training_until_ = now;
  phase_ = what.phase;
  batches_done_ = what.batches_done;
  checkpoint_ = what.checkpoint;
  for (const member_status& status : what.members) {
    note_succession(status.member, now);
    account(status);
    note_recovery(status, what.phase, now);
  }
  note_departures(what.servers, now);
  note_loss(now);
  note_pause(what.phase, now);
  if (training_from_) // Before, the batches of an earlier run arrive all at once.
    note_rate(now);
}

void run_statistics::note_succession(const member_id& member, time_point now) {
  process& owner = processes_[process_of(member)];
  const bool was_seen = owner.last_seen != incarnation_id{};
  if (member.incarnation == incarnation_id{}) {
    if (was_seen && !owner.missing_since)
      owner.missing_since = now;
    return;
  }
  if (was_seen && owner.last_seen != member.incarnation) {
    const time_point missed_at = owner.missing_since.value_or(now);
    process_died({member.role, member.index, owner.last_seen}, missed_at, missed_at);
  }
  owner.last_seen = member.incarnation;
  owner.missing_since.reset();
}

/// Notes servers that the job no longer has. Others do their work now, so their deaths are over.
void run_statistics::note_departures(const std::vector<server_id>& servers, time_point now) {
  if (servers.empty())
    return; // The status names no servers.
  for (auto& [who, owner] : processes_) {
    owner.has_left =
      who.role == role::server && std::ranges::find(servers, server_id{who.index}) == servers.end();
    if (!owner.has_left)
      continue;
    owner.last_seen = {};
    owner.missing_since.reset();
    for (recovery& open : recoveries_)
      if (open.who == who && !open.recovered_at)
        open.recovered_at = now;
  }
}

void run_statistics::account(const member_status& status) {
  const auto [position, is_new] = incarnations_.try_emplace(status.member);
  incarnation& x = position->second;
  process& owner = processes_[process_of(status.member)];
  owner.rss_bytes_max = std::max(owner.rss_bytes_max, status.rss_bytes_max);
  if (is_new && status.member.incarnation != incarnation_id{}) // A default one means absent.
    ++owner.starts;
  if (!dead_.contains(status.member)) {
    owner.present = status.member.incarnation;
    owner.dead = false;
  }
  x.status = status;
  x.worker.set(status.member.role == role::actor ? status.actor.requests : status.worker);
  x.server.set(status.server);
  x.set_ports(status.worker.ports);
  x.set_ports(status.actor.ports);
  if (!status.actor.notes.empty())
    x.actor_notes = status.actor.notes;
  if (status.state == member_state::active && !x.first_active)
    x.first_active = {status.clock, x.server.total(&server_counters::applied)};
}

// -- deaths --

void run_statistics::process_died(const member_id& member, time_point killed_at,
                                  time_point detected_at) {
  if (!dead_.insert(member).second)
    return;
  recoveries_.push_back({process_of(member), killed_at, detected_at, std::nullopt, 0});
  process& owner = processes_[process_of(member)];
  owner.starts = std::max(owner.starts, 1u);
  if (owner.present == member.incarnation || owner.present == incarnation_id{})
    owner.dead = true;
}

void run_statistics::note_recovery(const member_status& status, job_phase phase, time_point now) {
  if (dead_.contains(status.member))
    return;
  const incarnation& x = incarnations_.at(status.member);
  const bool is_working =
    status.member.role == role::worker ? x.worker.total(&worker_counters::pushes_acknowledged) > 0
    : status.member.role == role::actor
      ? true
      : x.first_active
          && (status.clock > x.first_active->first
              || x.server.total(&server_counters::applied) > x.first_active->second);
  const bool is_up = status.state == member_state::active || status.state == member_state::finished;
  for (recovery& open : recoveries_) {
    if (open.who != process_of(status.member) || open.recovered_at)
      continue;
    open.updates_rolled_back = std::max(open.updates_rolled_back, status.updates_rolled_back);
    if (is_up && (is_working || is_over(phase)))
      open.recovered_at = now;
  }
}

void run_statistics::coordinator_back(time_point now) {
  for (auto& [who, owner] : processes_)
    if (traits_of(who.role).leads_job)
      owner.dead = false;
  for (recovery& open : recoveries_)
    if (traits_of(open.who.role).leads_job && !open.recovered_at)
      open.recovered_at = now;
}

void run_statistics::resident_memory(const std::string& name, std::uint64_t bytes_max) {
  std::uint64_t& known = other_memory_[name];
  known = std::max(known, bytes_max);
}

// -- curves and rates --

void run_statistics::evaluated(std::uint64_t epoch, evaluation found, time_point now) {
  const auto batches = epoch * job_.batches_per_epoch();
  // The evaluation of the end follows that of the last epoch, and takes its place.
  std::erase_if(curve_, [&](const loss_point& x) { return x.test && x.batches == batches; });
  curve_.push_back({batches, now, std::nullopt, std::move(found)});
}

void run_statistics::note_loss(time_point now) {
  double sum = 0.0;
  for (const auto& [member, x] : incarnations_)
    sum += x.worker.last.loss_sum;
  const std::uint64_t count = total(&worker_counters::loss_count);
  const std::uint64_t step = std::max<std::uint64_t>(1, job_.batches() / curve_points);
  if (count < curve_loss_count_ + step)
    return;
  const double mean = (sum - curve_loss_sum_) / static_cast<double>(count - curve_loss_count_);
  curve_.push_back({batches_done_, now, mean, std::nullopt});
  curve_loss_sum_ = sum;
  curve_loss_count_ = count;
}

/// Updates the longest pause at each status. It is exact to 100 ms, the time between two of them.
/// Pushes of later parts do not end a pause: their line may begin the same batch again and again.
void run_statistics::note_pause(job_phase phase, time_point now) {
  std::uint64_t count = 0;
  for (const auto& [member, x] : incarnations_)
    if (member.role == role::worker)
      count += x.worker.total(&worker_counters::pushes_acknowledged);
  if (phase != job_phase::training)
    acknowledged_at_.reset();
  if (phase != job_phase::training || std::exchange(acknowledged_, count) == count)
    return;
  pause_max_ = std::max(pause_max_, now - acknowledged_at_.value_or(now));
  acknowledged_at_ = now;
}

void run_statistics::note_rate(time_point now) {
  rate_sample sample{now, 0, 0, {}};
  sample.samples = samples_of(job_, batches_done_);
  for (const auto& [member, x] : incarnations_) {
    sample.process_bytes[process_of(member)] += x.activity();
    if (member.role == role::worker)
      sample.bytes += x.activity();
    else if (member.role == role::actor) // Parcels between actors do not count.
      sample.bytes += x.worker.total(&worker_counters::bytes_sent)
                      + x.worker.total(&worker_counters::bytes_received);
  }
  const auto wire =
    total(&worker_counters::wire_bytes_sent) + total(&worker_counters::wire_bytes_received);
  if (wire > 0) // Without links only the bytes of values can be counted.
    sample.bytes = wire;
  rates_.push_back(std::move(sample));
  while (rates_.size() > 2 && rates_[1].at + rate_window <= now)
    rates_.pop_front();
}

// -- sums --

std::uint64_t run_statistics::total(std::uint64_t worker_counters::*which) const {
  std::uint64_t sum = 0;
  for (const auto& [member, x] : incarnations_)
    sum += x.worker.total(which);
  return sum;
}

std::uint64_t run_statistics::total(std::uint64_t server_counters::*which) const {
  std::uint64_t sum = 0;
  for (const auto& [member, x] : incarnations_)
    sum += x.server.total(which);
  return sum;
}

template <class Counters>
histogram run_statistics::merged(accumulated<Counters> incarnation::*counters,
                                 histogram Counters::*which) const {
  histogram sum;
  for (const auto& [member, x] : incarnations_) {
    sum.merge((x.*counters).before.*which);
    sum.merge((x.*counters).last.*which);
  }
  return sum;
}

template <class Value>
const loss_point* run_statistics::last_with(std::optional<Value> loss_point::*which) const {
  const auto found = std::find_if(curve_.rbegin(), curve_.rend(),
                                  [&](const loss_point& x) { return (x.*which).has_value(); });
  return found == curve_.rend() ? nullptr : &*found;
}

std::optional<evaluation_result> run_statistics::last_evaluation() const {
  const auto* last = last_with(&loss_point::test);
  if (last == nullptr)
    return std::nullopt;
  const std::uint64_t per_epoch = std::max<std::uint64_t>(job_.batches_per_epoch(), 1);
  return evaluation_result{*last->test, last->batches / per_epoch, job_.epochs};
}

std::uint64_t run_statistics::samples_done() const {
  const std::uint64_t now = samples_of(job_, batches_done_);
  return now - std::min(now, samples_at_start_);
}

// -- results for callers --

progress_snapshot run_statistics::snapshot(time_point now) const {
  progress_snapshot all;
  all.elapsed = now - started_at_;
  all.phase = phase_;
  all.batches_done = batches_done_;
  all.batches = job_.batches();
  all.epochs = job_.epochs;
  const std::uint64_t per_epoch = job_.batches_per_epoch();
  all.epoch = per_epoch == 0 ? 0.0 : static_cast<double>(batches_done_) / per_epoch;
  if (const auto* last = last_with(&loss_point::training_loss))
    all.loss = last->training_loss;
  if (const auto* last = last_with(&loss_point::test))
    all.measures = figures_of(*last->test);
  const histogram staleness = merged(&incarnation::server, &server_counters::staleness_versions);
  all.staleness_mean = staleness.mean();
  all.staleness_max = staleness.max();
  all.checkpoint = checkpoint_;

  const bool any_rate = rates_.size() > 1 && rates_.back().at > rates_.front().at;
  const double span = any_rate ? seconds(rates_.back().at - rates_.front().at) : 1.0;
  // A rollback decreases the work done for a moment.
  const auto rate = [&](std::uint64_t from, std::uint64_t to) {
    return any_rate && to > from ? static_cast<double>(to - from) / span : 0.0;
  };
  if (!rates_.empty()) {
    all.samples_per_second = rate(rates_.front().samples, rates_.back().samples);
    all.bytes_per_second = rate(rates_.front().bytes, rates_.back().bytes);
  }
  for (const auto& [key, owner] : processes_) {
    // A coordinator reports no status, so it is shown only while it is dead.
    if (owner.has_left || (traits_of(key.role).leads_job && !owner.dead))
      continue;
    process_progress line;
    line.name = key_of(key);
    if (const auto* const node = node_of(nodes_, {key.role, key.index}))
      line.node = node->node;
    line.dead = owner.dead;
    line.is_coordinator = traits_of(key.role).leads_job;
    line.starts = owner.starts;
    line.rss_bytes = owner.rss_bytes_max;
    const auto present = incarnations_.find({key.role, key.index, owner.present});
    if (present != incarnations_.end()) {
      const member_status& status = present->second.status;
      line.state = status.state;
      line.detail = detail_of(status);
    }
    if (any_rate) {
      const auto from = rates_.front().process_bytes.find(key);
      const auto to = rates_.back().process_bytes.find(key);
      if (to != rates_.back().process_bytes.end())
        line.bytes_per_second =
          rate(from == rates_.front().process_bytes.end() ? 0 : from->second, to->second);
    }
    all.processes.push_back(std::move(line));
  }
  return all;
}

namespace {

json json_of(const recovery& x, time_point started_at) {
  json recovered;
  if (x.recovered_at)
    recovered = milliseconds(*x.recovered_at - x.killed_at);
  return {{"role", traits_of(x.who.role).process},
          {"index", x.who.index},
          {"at_seconds", seconds(x.killed_at - started_at)},
          {"detected_ms", milliseconds(x.detected_at - x.killed_at)},
          {"recovered_ms", recovered},
          {"updates_rolled_back", x.updates_rolled_back}};
}

/// Puts the figures of an evaluation but its loss.
void put(const evaluation& test, json& all) {
  if (test.accuracy)
    all["test_accuracy"] = *test.accuracy;
  if (test.auc)
    all["test_auc"] = *test.auc;
  for (const auto& each : test.measures)
    all[each.name] = each.value;
}

json json_of(const loss_point& x, const job_spec& job, time_point started_at) {
  json point;
  const auto per_epoch = static_cast<double>(std::max<std::uint64_t>(1, job.batches_per_epoch()));
  point["epoch"] = static_cast<double>(x.batches) / per_epoch;
  point["seconds"] = seconds(x.at - started_at);
  if (x.training_loss)
    point["train_loss"] = *x.training_loss;
  if (x.test) {
    point["test_loss"] = x.test->loss;
    put(*x.test, point);
  }
  return point;
}

} // namespace

/// Adds the sums over all processes. A push goes to every chain, and the head of each counts it. So
/// the counts of heads are divided by the number of chains.
void run_statistics::put_sums(json& all) const {
  all["staleness_versions"] =
    summary_of(merged(&incarnation::server, &server_counters::staleness_versions));
  all["staleness_clocks"] =
    summary_of(merged(&incarnation::server, &server_counters::staleness_clocks));
  std::map<std::uint32_t, std::uint64_t> pulls;
  for (const auto& [member, x] : incarnations_)
    if (member.role == role::server)
      pulls[member.index] += x.server.total(&server_counters::pulls);
  all["pulls"] = json::array();
  for (const auto& [unused, count] : pulls)
    all["pulls"].push_back(count);
  all["waiting_pulls"] = total(&server_counters::waiting_pulls);
  const std::uint64_t chains = std::max(1u, job_.shard_count());
  all["pushes"] = {{"sent", total(&worker_counters::pushes_sent)},
                   {"acknowledged", total(&worker_counters::pushes_acknowledged)},
                   {"applied", sync_without_servers_.empty() && !job_.gossip
                                 ? divided(total(&server_counters::applied), chains)
                                 : json(batches_done_ - batches_before_)},
                   {"duplicates_dropped", divided(total(&server_counters::duplicates), chains)},
                   {"refused", divided(total(&worker_counters::pushes_refused) * chains
                                         + total(&server_counters::refused),
                                       chains)}};
  all["bytes"] = {{"sent", total(&worker_counters::bytes_sent)},
                  {"received", total(&worker_counters::bytes_received)}};
  all["wire_bytes"] = {{"sent", total(&worker_counters::wire_bytes_sent)},
                       {"received", total(&worker_counters::wire_bytes_received)}};
  std::map<std::string, std::uint64_t> left_out;
  for (const auto& [member, x] : incarnations_)
    if (const auto count = x.worker.total(&worker_counters::left_out); count > 0)
      left_out[key_of(process_of(member))] += count;
  all["counts"] = notes(false);
  all["lines"] = notes(true);
  all["reducers"] = {{"pushes", total(&worker_counters::pushes_summed)},
                     {"sums", total(&worker_counters::sums)},
                     {"device_sums", total(&worker_counters::device_sums)},
                     {"left_out", left_out}};
  // Times of all workers together: without a batch to compute; with requests before a full link;
  // with a batch whose trainer waits for a parcel.
  all["idle_seconds"] = static_cast<double>(total(&worker_counters::wait_us)) * 1e-6;
  all["window_wait_seconds"] = static_cast<double>(total(&worker_counters::window_wait_us)) * 1e-6;
  all["channel_wait_seconds"] =
    static_cast<double>(total(&worker_counters::channel_wait_us)) * 1e-6;
  all["ports"] = json::object();
  for (const auto& [name, sum] : ports())
    all["ports"][name] = json_of(sum);

  all["request_ms"] = times_of(merged(&incarnation::worker, &worker_counters::request_times));
}

/// Returns the counts or the lines of the program's own code: sums over all incarnations.
std::map<std::string, std::uint64_t> run_statistics::notes(bool lines) const {
  std::map<std::string, std::uint64_t> sums;
  const auto add = [&](const program_note& x) {
    if (x.is_line == lines)
      sums[x.name] += x.count;
  };
  for (const auto& [member, x] : incarnations_) {
    std::ranges::for_each(x.worker.last.notes, add);
    std::ranges::for_each(x.server.last.notes, add);
    std::ranges::for_each(x.actor_notes, add);
  }
  return sums;
}

std::map<std::string, port_counters> run_statistics::ports() const {
  std::map<std::string, port_counters> sums;
  for (const auto& [member, x] : incarnations_)
    for (const auto& [name, mine] : x.ports) {
      auto& sum = sums[name];
      sum.parcels += mine.parcels;
      sum.bytes += mine.bytes;
      sum.lost += mine.lost;
      sum.longest_wait_us = std::max(sum.longest_wait_us, mine.longest_wait_us);
    }
  return sums;
}

std::map<std::string, std::uint64_t> run_statistics::counts() const { return notes(false); }

std::string run_statistics::to_json(const std::string& command) const {
  json all;
  all["command"] = printable(command, command.size());
  all["nodes"] = json::object();
  for (const auto& each : nodes_)
    all["nodes"][each.node] = each.process;
  const bool has_servers = sync_without_servers_.empty();
  all["sync"] = has_servers ? joined(job_, [](const table_spec& x) { return to_string(x.sync); })
                            : sync_without_servers_;
  all["optimizer"] = joined(job_, [](const table_spec& x) { return x.optimizer.name(); });
  all["workers"] = job_.workers;
  all["servers"] = has_servers ? job_.servers : 0;
  all["seed"] = job_.seed;
  all["epochs"] = job_.epochs;

  const time_point until = finished_at_.value_or(rates_.empty() ? started_at_ : rates_.back().at);
  all["seconds"] = seconds(until - started_at_);
  const double trained =
    training_from_ ? seconds(training_until_.value_or(until) - *training_from_) : 0.0;
  all["samples_per_second"] = trained > 0.0 ? static_cast<double>(samples_done()) / trained : 0.0;

  all["longest_pause_ms"] = milliseconds(pause_max_);

  all["test_accuracy"] = json();
  if (const auto* last = last_with(&loss_point::test))
    put(*last->test, all);
  all["loss_curve"] = json::array();
  for (const loss_point& x : curve_)
    all["loss_curve"].push_back(json_of(x, job_, started_at_));

  put_sums(all);

  all["recoveries"] = json::array();
  for (const recovery& x : recoveries_)
    all["recoveries"].push_back(json_of(x, started_at_));
  all["peak_rss_bytes"] = json::object();
  for (const auto& [key, owner] : processes_)
    if (owner.rss_bytes_max > 0)
      all["peak_rss_bytes"][key_of(key)] = owner.rss_bytes_max;
  for (const auto& [name, bytes] : other_memory_)
    all["peak_rss_bytes"][name] = bytes;
  return all.dump(2);
}

} // namespace troupe
