#include "actors/protocol/chain.hpp"

#include "actors/protocol/mutation.hpp"

#include <algorithm>
#include <cassert>

namespace troupe {

chain::chain(member_id self, generation_id generation, std::uint64_t committed, bool complete,
             chain_options options)
    : self_(self), generation_(generation), options_(options), complete_(complete),
      last_(committed), committed_(committed), released_(committed) {}

// -- desired state from the coordinator --

void chain::propose(config_id config) { sealed_ = std::max(sealed_, config); }

void chain::activate(const chain_config& config, time_point now, chain_effects& effects) {
  propose(config.config);
  if (config.config <= config_.config || config.generation != generation_)
    return;
  config_ = config;
  next_.reset();
  copied_.reset();
  waits_for_joiner_ = false;
  join_requested_at_ = heard_at_ = now;
  stalled_ = false;
  position_.reset();
  const auto found = std::find(config_.members.begin(), config_.members.end(), self_);
  if (found == config_.members.end() || !complete_)
    return become_spare(effects);
  position_ = static_cast<std::size_t>(found - config_.members.begin());
  begun_with_ = last_;
  if (!is_tail())
    follow_with(config_.members[*position_ + 1], committed_, now);
  send_next(effects);
  commit_what_all_have(now, effects);
  release(effects);
}

/// Drops uncommitted entries, since the members may commit others in their place.
void chain::become_spare(chain_effects& effects) {
  complete_ = mutated(mutation::state_trusted_when_removed) && complete_;
  if (last_ > committed_ && !mutated(mutation::log_kept_when_removed)) {
    last_ = committed_;
    effects.push_back(truncate_effect{committed_});
  }
  release(effects);
  if (is_joiner())
    request_join(effects);
}

void chain::renew(time_point stamp) {
  lease_until_ = std::max(lease_until_, stamp + options_.lease_time);
}

// -- entries --

void chain::append(time_point now, chain_effects& effects) {
  assert(leads());
  take_next(now, effects);
}

bool chain::receive(const member_id& from, const append_message& what, time_point now,
                    chain_effects& effects) {
  const bool is_ours = (is_current(what.config) && upstream() == from)
                       || mutated(mutation::append_unchecked)
                       || (mutated(mutation::append_while_sealed) && what.config == config_.config
                           && upstream() == from);
  if (!is_ours || !complete_)
    return false;
  heard_at_ = now;
  if (mutated(mutation::append_over_a_gap) && what.index > last_)
    last_ = what.index - 1;
  const bool is_next = what.index == last_ + 1;
  if (is_next)
    take_next(now, effects);
  commit(std::min(what.committed, last_), now, effects);
  if (is_joiner())
    request_join(effects);
  else if (!is_next && what.index <= last_) // The sender missed that, or has to wait.
    effects.push_back(chain_message_effect{from, committed_message{config_.config, committed_}});
  return is_next;
}

void chain::take_next(time_point now, chain_effects& effects) {
  assert(!sealed());
  if (next_ && next_->has == last_)
    next_->since = next_->grew_at = now;
  ++last_;
  send_next(effects);
  commit_what_all_have(now, effects);
}

void chain::follow_with(const member_id& next, std::uint64_t has, time_point now) {
  next_ = downstream{next, has, has, now, now, options_.window, options_.resend_time, {}};
}

void chain::send_next(chain_effects& effects) {
  if (!next_)
    return;
  const auto until = std::min(last_, next_->has + next_->window);
  while (next_->sent < until)
    effects.push_back(append_effect{next_->to, {config_.config, ++next_->sent, committed_}});
}

void chain::next_has(std::uint64_t index, time_point now, chain_effects& effects) {
  if (index <= next_->has)
    return;
  assert(index <= last_);
  next_->has = index;
  next_->sent = std::max(next_->sent, index);
  next_->patience = patience_for(now - next_->grew_at);
  next_->since = next_->grew_at = now;
  next_->window = options_.window;
  send_next(effects);
}

time_point chain::patience_for(time_point span) const {
  return std::max<time_point>(options_.resend_time,
                              std::min<time_point>(2 * span, options_.stalled_time / 4));
}

void chain::receive(const member_id& from, const committed_message& what, time_point now,
                    chain_effects& effects) {
  if (what.config != config_.config || !is_member(from) || !complete_)
    return;
  heard_at_ = now;
  if (next_ && next_->to == from)
    next_->heard_at = now;
  commit(std::min(what.index, last_), now, effects);
}

/// Commits, on the tail, the entries that all members have.
void chain::commit_what_all_have(time_point now, chain_effects& effects) {
  const bool waits = waits_for_joiner_ && !mutated(mutation::joiner_not_waited_for);
  const auto all_have = waits ? std::min(last_, next_ ? next_->has : *copied_) : last_;
  const bool may_commit = (is_tail() || (position_ && mutated(mutation::commit_at_once)))
                          && (!sealed() || mutated(mutation::commit_while_sealed));
  if (!may_commit || all_have <= committed_)
    return;
  assert(!sealed());
  commit(all_have, now, effects);
  const committed_message news{config_.config, committed_};
  for (const member_id& each : config_.members)
    if (each != self_)
      effects.push_back(chain_message_effect{each, news});
  if (next_)
    effects.push_back(chain_message_effect{next_->to, news});
}

void chain::commit(std::uint64_t index, time_point now, chain_effects& effects) {
  if (index <= committed_)
    return;
  assert(index <= last_);
  committed_ = index;
  effects.push_back(commit_effect{index});
  release(effects);
  if (next_ && !is_tail())
    next_has(index, now, effects);
}

void chain::tick(time_point now, chain_effects& effects) {
  stalled_ = is_stalled(now);
  if (sealed() || mutated(mutation::nothing_sent_again))
    return;
  if (is_joiner() && now - join_requested_at_ >= options_.resend_time) {
    join_requested_at_ = now;
    request_join(effects);
  }
  if (next_ && next_->has < last_ && now - next_->since >= next_->patience) {
    next_->since = now;
    next_->sent = next_->has;
    next_->window = 1;
    next_->patience = patience_for(next_->patience);
    send_next(effects);
  }
}

/// Returns whether it cannot talk to the next replica, or to the tail that it is to join.
bool chain::is_stalled(time_point now) const {
  if (sealed() || mutated(mutation::stall_unreported))
    return false;
  if (is_joiner())
    return now - heard_at_ >= options_.stalled_time;
  return next_ && next_->has < last_
         && now - std::max(next_->grew_at, next_->heard_at) >= options_.stalled_time;
}

// -- joining --

/// Tells the tail which entries this joiner has, or asks it for a copy.
void chain::request_join(chain_effects& effects) const {
  const member_id& tail = config_.members.back();
  if (complete_ || mutated(mutation::joiner_complete_without_copy))
    effects.push_back(chain_message_effect{tail, joined_message{config_.config, last_}});
  else
    effects.push_back(request_copy_effect{tail, config_.config});
}

std::optional<std::uint64_t> chain::copy_for(const member_id& from, config_id config) {
  if (!is_current(config) || !is_tail() || config_.joiner != from || next_)
    return std::nullopt;
  if (!copied_)
    copied_ = committed_;
  return committed_;
}

bool chain::install(config_id config, std::uint64_t index, time_point now, chain_effects& effects) {
  if (!is_current(config) || !is_joiner() || complete_ || index < committed_)
    return false;
  complete_ = true;
  last_ = committed_ = released_ = index + (mutated(mutation::copy_off_by_one) ? 1 : 0);
  join_requested_at_ = heard_at_ = now;
  request_join(effects);
  return true;
}

void chain::receive(const member_id& from, const joined_message& what, time_point now,
                    chain_effects& effects) {
  const bool is_ours = is_current(what.config) && is_tail() && config_.joiner == from;
  if (!is_ours || !copied_ || what.last < *copied_ || what.last > last_)
    return;
  if (!next_)
    follow_with(from, what.last, now);
  next_has(what.last, now, effects);
  effects.push_back(chain_message_effect{from, committed_message{config_.config, committed_}});
  waits_for_joiner_ = waits_for_joiner_ || last_ - next_->has <= options_.sync_lag;
  send_next(effects);
  commit_what_all_have(now, effects);
  release(effects);
}

/// Releases entries that no replica will ask for again.
void chain::release(chain_effects& effects) {
  auto until = committed_;
  if (copied_ && !mutated(mutation::released_before_joined))
    until = std::min(until, next_ ? next_->has : *copied_);
  if (until <= released_)
    return;
  released_ = until;
  effects.push_back(release_effect{until});
}

// -- reads and membership --

bool chain::may_read(time_point now) const {
  const bool needs_no_lease = options_.lease_time == std::chrono::milliseconds{0};
  return position_ && committed_ >= begun_with_
         && (!sealed() || mutated(mutation::read_while_sealed))
         && (needs_no_lease || now < lease_until_ || mutated(mutation::read_without_lease));
}

bool chain::is_member(const member_id& who) const {
  return std::find(config_.members.begin(), config_.members.end(), who) != config_.members.end();
}

std::optional<member_id> chain::upstream() const {
  if (is_joiner())
    return config_.members.back();
  if (!position_ || *position_ == 0)
    return std::nullopt;
  return config_.members[*position_ - 1];
}

chain_status chain::status() const {
  const bool joiner_synced =
    waits_for_joiner_ && next_ && (next_->has >= committed_ || mutated(mutation::synced_too_early));
  return {generation_, config_.config, sealed_, complete_, joiner_synced, stalled_};
}

} // namespace troupe
