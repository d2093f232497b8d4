#include "actors/protocol/server/replica.hpp"

#include "actors/protocol/mutation.hpp"
#include "serialization/payload.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace troupe {

namespace {

std::vector<table_id> tables_of(const pull_request& pull) {
  std::vector<table_id> tables;
  const auto add = [&](const auto& all) {
    for (const auto& x : all)
      if (std::find(tables.begin(), tables.end(), x.table) == tables.end())
        tables.push_back(x.table);
  };
  add(pull.ranges);
  add(pull.rows);
  return tables;
}

} // namespace

entry_header header_of(const log_entry& what) {
  entry_header header{{}, what.tables, what.pushes.front()->base_version};
  for (const auto& push : what.pushes)
    std::ranges::move(push->steps(), std::back_inserter(header.steps));
  return header;
}

bool was_member(const chain_config& config, server_id server) {
  return std::ranges::find(config.members, server.value, &member_id::index) != config.members.end();
}

bool kept_all(const chain_config& lost, server_id server, const storage::base_id& base) {
  if (base.generation == lost.generation)
    return was_member(lost, server);
  return base.generation > lost.generation && base.recovered;
}

replica::replica(const job_spec& job, member_id self, generation_id generation, generation_id of,
                 const std::vector<shard_partition>& partitions, replica_options options)
    : job_(job), generation_(generation), options_(options),
      chain_(self, of, 0, !partitions.empty(), options.chain) {
  if (!partitions.empty())
    shard_.emplace(job_, generation_, partitions, options_.shard);
}

// -- desired state from the coordinator --

void replica::reconcile(const chain_metadata& record, time_point now, replica_effects& effects) {
  const bool led = leads();
  chain_effects news;
  if (record.proposed)
    chain_.propose(record.proposed->config);
  chain_.activate(record.active, now, news);
  run(news, effects);
  stop_leading(led);
  if (shard_ && !led && leads() && !mutated(mutation::leads_without_promise))
    shard_->lead();
  carry_out(now, effects);
}

void replica::stop_leading(bool led) {
  if (shard_ && led && !leads())
    shard_->step_down(decided_);
}

void replica::set_workers(const std::vector<clock_entry>& workers, time_point now,
                          replica_effects& effects) {
  workers_ = workers;
  if (!shard_)
    return;
  shard_->set_workers(workers_, decided_);
  carry_out(now, effects);
}

void replica::request_cut(std::uint64_t checkpoint, std::uint64_t clock, time_point now,
                          replica_effects& effects) {
  assert(leads() && shard_);
  shard_->request_cut(checkpoint, clock, decided_);
  carry_out(now, effects);
}

// -- requests --

std::optional<failure> replica::unfit() const {
  if (!leads() || !shard_)
    return failure{errc::not_ready, "this server does not lead the chain"};
  return std::nullopt;
}

void replica::push(request_token token, std::shared_ptr<const push_request> what, time_point now,
                   replica_effects& effects) {
  auto why = unfit();
  if (!why && log_bytes_ > options_.chain_log_bytes_max)
    why = failure{errc::not_ready, "too much waits for the other replicas"};
  if (why) {
    effects.push_back(refuse_effect{token, *std::move(why)});
    return;
  }
  arriving_ = {token, std::move(what)};
  const push_request& push = *arriving_.second;
  shard_->push(token, push.steps(), push.tables, push.base_version, decided_);
  keep_payload();
  carry_out(now, effects);
  arriving_ = {};
}

/// Keeps the payload of a slot that waits for the others of its clock.
void replica::keep_payload() {
  if (shard_->holds(arriving_.first))
    held_.insert(arriving_);
}

std::shared_ptr<const push_request> replica::payload_of(request_token token) {
  if (token == arriving_.first || mutated(mutation::another_payload))
    return arriving_.second;
  return std::move(held_.extract(token).mapped());
}

/// Drops a kept payload that is not needed: no clock proposed here has it.
void replica::drop_payload(request_token token) {
  if (held_.contains(token) && !shard_->holds(token))
    held_.erase(token);
}

std::optional<failure> replica::unfit(const pull_request& what, time_point now) const {
  const bool reads = what.anywhere && (chain_.is_tail() || !what.latest);
  if (!leads() && !reads)
    return unfit();
  if (!chain_.may_read(now))
    return failure{errc::not_ready, "the coordinator was not heard for too long"};
  if (what.seen.generation > chain_.generation() && !mutated(mutation::seen_generation_ignored))
    return failure{errc::not_ready, "the asker has seen a later history of the chain"};
  return std::nullopt;
}

void replica::pull(request_token token, const pull_request& what, time_point now,
                   replica_effects& effects) {
  if (auto why = unfit(what, now)) {
    effects.push_back(refuse_effect{token, *std::move(why)});
    return;
  }
  // Versions of another generation do not count in this one.
  const bool is_of_this = what.seen.generation == chain_.generation();
  const pull_terms terms{what.step, what.others, what.latest, tables_of(what),
                         is_of_this ? what.seen.version : 0};
  if (leads())
    shard_->pull(token, terms, now, decided_);
  else
    shard_->read(token, terms, now, decided_);
  carry_out(now, effects);
}

void replica::applied(time_point now, replica_effects& effects) {
  assert(stepping_);
  stepping_ = false;
  ++applied_;
  shard_->applied(decided_);
  drop_released();
  carry_out(now, effects);
}

void replica::discarded(failure why, time_point now, replica_effects& effects) {
  assert(stepping_);
  stepping_ = false;
  ++applied_;
  shard_->discarded(std::move(why), decided_);
  drop_released();
  carry_out(now, effects);
}

void replica::count_refused() {
  if (shard_)
    shard_->count_refused();
}

void replica::tick(time_point now, replica_effects& effects) {
  chain_effects news;
  chain_.tick(now, news);
  run(news, effects);
  if (shard_)
    shard_->tick(now, decided_);
  carry_out(now, effects);
}

// -- the log --

void replica::append(const propose_effect& what, time_point now, replica_effects& effects) {
  assert(leads());
  log_entry entry{.pushes = {}, .tables = what.entry.tables};
  entry.pushes.reserve(what.pushes.size());
  for (const auto token : what.pushes)
    entry.pushes.push_back(payload_of(token));
  if (entry.pushes.size() > 1 && options_.add_up && chain_.config().members.size() > 1)
    if (auto sum = options_.add_up(entry.tables, entry.pushes))
      entry.pushes = {std::move(sum)};
  keep(std::move(entry), effects);
  chain_effects news;
  chain_.append(now, news);
  run(news, effects);
}

/// Adds the next entry to the log.
void replica::keep(log_entry entry, replica_effects& effects) {
  if (options_.writes_log)
    effects.push_back(write_effect{first_ + log_.size(), entry});
  log_bytes_ += payload_bytes(entry);
  log_.push_back(std::move(entry));
  if (log_bytes_ > options_.chain_log_bytes_max)
    chain_.wait_for_joiner();
}

void replica::run(chain_effects& news, replica_effects& effects) {
  struct {
    replica& self;
    replica_effects& effects;

    void operator()(const append_effect& x) const {
      const auto& entry = self.log_.at(x.what.index - self.first_);
      effects.push_back(replica_send_effect{x.to, entry_message{x.what, entry}});
    }
    void operator()(const chain_message_effect& x) const {
      std::visit(
        [&](const auto& what) {
          effects.push_back(replica_send_effect{x.to, what});
        },
        x.what);
    }
    void operator()(const commit_effect& x) const { self.final_ = x.index; }
    void operator()(const truncate_effect& x) const { self.truncate(x.last, effects); }
    void operator()(const release_effect& x) const { self.released_ = x.index; }
    void operator()(const request_copy_effect& x) const { effects.push_back(x); }
  } const carry_out{*this, effects};
  for (const auto& each : news)
    std::visit(carry_out, each);
  drop_released();
}

void replica::truncate(std::uint64_t last, replica_effects& effects) {
  if (options_.writes_log && first_ + log_.size() > last + 1)
    effects.push_back(write_effect{last + 1, std::nullopt});
  while (first_ + log_.size() > last + 1) {
    log_bytes_ -= payload_bytes(log_.back());
    log_.pop_back();
  }
  shard_->truncate(decided_);
}

void replica::drop_released() {
  while (!log_.empty() && first_ <= std::min(released_, applied_)) {
    log_bytes_ -= payload_bytes(log_.front());
    log_.pop_front();
    ++first_;
  }
}

void replica::carry_out(time_point now, replica_effects& effects) {
  for (;;) {
    for (std::size_t i = 0; i < decided_.size(); ++i) {
      auto each = std::move(decided_[i]); // Carrying it out may add more.
      std::visit([&](auto& x) { pass_on(x, now, effects); }, each);
    }
    decided_.clear();
    if (stepping_ || applied_ == final_)
      return;
    assert(applied_ < final_ && first_ <= applied_ + 1);
    stepping_ = true;
    shard_->commit(decided_);
  }
}

void replica::pass_on(propose_effect& what, time_point now, replica_effects& effects) {
  append(what, now, effects);
}

void replica::pass_on(apply_effect& what, time_point, replica_effects& effects) {
  const auto& entry = log_.at(applied_ + 1 - first_);
  effects.push_back(step_effect{std::move(what), entry.pushes});
}

void replica::pass_on(answer_effect& what, time_point now, replica_effects& effects) {
  if (chain_.may_read(now))
    effects.push_back(std::move(what));
  else
    effects.push_back(refuse_effect{what.pull, {errc::not_ready, "the server's lease has ended"}});
}

void replica::pass_on(acknowledge_effect& what, time_point, replica_effects& effects) {
  drop_payload(what.push);
  effects.push_back(what);
}

void replica::pass_on(refuse_effect& what, time_point, replica_effects& effects) {
  drop_payload(what.request);
  effects.push_back(std::move(what));
}

// -- other replicas --

void replica::receive(const member_id& from, entry_message what, time_point now,
                      replica_effects& effects) {
  chain_effects news;
  if (chain_.receive(from, what.place, now, news)) {
    shard_->append(header_of(what.entry));
    keep(std::move(what.entry), effects);
  }
  run(news, effects);
  carry_out(now, effects);
}

void replica::receive(const member_id& from, const committed_message& what, time_point now,
                      replica_effects& effects) {
  chain_effects news;
  chain_.receive(from, what, now, news);
  run(news, effects);
  carry_out(now, effects);
}

void replica::receive(const member_id& from, const joined_message& what, time_point now,
                      replica_effects& effects) {
  chain_effects news;
  chain_.receive(from, what, now, news);
  run(news, effects);
  carry_out(now, effects);
}

std::pair<std::uint64_t, std::vector<log_entry>> replica::unapplied() const {
  const auto next = applied_ + 1 - first_;
  return {applied_ + 1, {log_.begin() + static_cast<std::ptrdiff_t>(next), log_.end()}};
}

std::optional<std::uint64_t> replica::copy_for(const member_id& from, config_id config) {
  if (applied_ != final_)
    return std::nullopt; // The values do not match committed() yet.
  const auto index = chain_.copy_for(from, config);
  if (index)
    copied_clocks_ = shard_->bsp_clocks();
  return index;
}

chain_status replica::status() const {
  auto mine = chain_.status();
  mine.joiner_synced =
    mine.joiner_synced && (copied_clocks_ == 0 || shard_->bsp_clocks() > copied_clocks_);
  return mine;
}

bool replica::install(config_id config, std::uint64_t index, std::uint64_t clock_max,
                      const std::vector<shard_partition>& partitions, time_point now,
                      replica_effects& effects) {
  chain_effects news;
  if (!chain_.install(config, index, now, news))
    return false;
  log_.clear();
  log_bytes_ = 0;
  first_ = index + 1;
  applied_ = final_ = released_ = index;
  if (shard_)
    shard_->step_down(decided_); // Pulls may wait here from when it was a member.
  shard_.emplace(job_, generation_, partitions, options_.shard);
  shard_->follow(clock_max);
  shard_->set_workers(workers_, decided_);
  run(news, effects);
  carry_out(now, effects);
  return true;
}

} // namespace troupe
