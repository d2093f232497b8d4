#include "actors/protocol/gossip/collector.hpp"

#include "fmt/format.h"
#include "fmt/ranges.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace troupe {

collector::collector(const member_id& self, neighbour_graph graph, collector_options options)
    : self_(self), graph_(std::move(graph)), options_(options), living_(graph_.size()) {}

void collector::reconcile(const desired_server& what, time_point now, collector_effects& effects) {
  if (what.chains.empty())
    return;
  chain_ = what.chains.front();
  workers_ = what.workers;
  for (auto& each : workers_)
    each.known = true; // No pull waits for it.
  wanted_checkpoint_ = what.checkpoint;
  const auto& record = chain_.record;
  const auto& newest = record.proposed ? *record.proposed : record.active;
  const bool is_member = std::ranges::find(newest.members, self_) != newest.members.end();
  if (is_member && newest.generation != generation_) {
    generation_ = newest.generation;
    is_new_ = record.active.config == config_id{};
    loaded_at_.reset();
    failed_.reset();
    loads_from_ = record.base_checkpoint;
    effects.push_back(load_values_effect{++loads_, loads_from_});
  }
  write_if_due(now, effects);
}

bool collector::loaded(std::uint64_t load, const result<batch_set>& what, time_point now) {
  if (load != loads_)
    return false; // Another one has begun.
  if (!what) {
    failed_ = what.error();
    return false;
  }
  applied_.unite(*what);
  loaded_at_ = now;
  return true;
}

bool collector::serves(time_point now) const {
  return loaded_at_ && (is_new_ || now - *loaded_at_ >= options_.settle_time);
}

void collector::tick(time_point now, collector_effects& effects) { write_if_due(now, effects); }

void collector::write_if_due(time_point now, collector_effects& effects) {
  if (wanted_checkpoint_ <= begun_checkpoint_ || !serves(now))
    return;
  begun_checkpoint_ = wanted_checkpoint_;
  is_final_ = applied_.size() >= options_.batches;
  effects.push_back(write_mean_effect{begun_checkpoint_});
}

void collector::written(std::uint64_t checkpoint, const result<checkpoint_part>& done) {
  if (done) {
    part_ = *done;
  } else {
    checkpoint_failed_ = checkpoint;
    checkpoint_failure_ = done.error().text;
  }
}

bool collector::copied(worker_id peer, incarnation_id incarnation, const batch_set& applied) {
  if (is_final_ || replaced_.contains({peer, incarnation}))
    return false;
  auto& mine = copies_[peer];
  if (mine.renewed != 0 && mine.incarnation != incarnation)
    replaced_.insert({peer, mine.incarnation});
  mine = {incarnation, ++renewals_};
  applied_.unite(applied);
  return true;
}

void collector::joined(worker_id peer, collector_effects& effects) {
  living_.at(peer.value) = true;
  is_gathered_ = is_gathered_ || std::ranges::all_of(living_, std::identity{});
  look_at_graph(effects);
}

void collector::lost(worker_id peer, collector_effects& effects) {
  living_.at(peer.value) = false;
  wanting_.erase(peer);
  look_at_graph(effects);
}

void collector::look_at_graph(collector_effects& effects) {
  if (!is_gathered_)
    return;
  const auto parts = graph_.components(living_);
  std::string text;
  for (std::size_t i = 0; parts.size() > 1 && i < parts.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : " | ", fmt::join(parts[i], " "));
  if (text == cut_)
    return;
  cut_ = text;
  effects.push_back(graph_cut_effect{
    text.empty() ? text : "deaths cut the neighbour graph: the parts " + text + " do not mix"});
}

std::vector<worker_id> collector::to_start(time_point now) const {
  return serves(now) ? std::vector(wanting_.begin(), wanting_.end()) : std::vector<worker_id>{};
}

std::vector<worker_id> collector::in_mean() const {
  std::vector<worker_id> all;
  const auto patience = options_.renewals_max * (copies_.empty() ? 0 : copies_.size() - 1);
  for (const auto& [peer, kept] : copies_)
    if (renewals_ - kept.renewed <= patience)
      all.push_back(peer);
  return all;
}

replica_status collector::report(time_point now) const {
  const auto& record = chain_.record;
  const auto& newest = record.proposed ? *record.proposed : record.active;
  replica_status mine;
  mine.shard = chain_.shard;
  mine.status.generation = generation_;
  mine.status.config = record.active.config;
  mine.status.sealed = newest.config;
  mine.status.complete = serves(now);
  mine.failed = failed_;
  mine.unreadable = failed_ ? loads_from_ : 0;
  mine.recovered = !is_new_;
  mine.part = part_;
  mine.checkpoint_failed = checkpoint_failed_;
  mine.checkpoint_failure = checkpoint_failure_;
  if (mine.status.complete) {
    mine.applied = applied_;
    mine.clocks = workers_;
    mine.version = applied_.size();
  }
  return mine;
}

} // namespace troupe
