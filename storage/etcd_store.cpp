#include "storage/etcd_store.hpp"

#include <poll.h>

#include <chrono>
#include <utility>

namespace troupe::storage {

namespace {

using std::chrono::milliseconds;

// Deadline of one try; a coordinator waits for it.
constexpr milliseconds try_time{500};
constexpr milliseconds launcher_patience{3000};
// A lease of the usual length, and the time that etcd takes to notice its end.
constexpr milliseconds leader_patience{4000};
constexpr milliseconds burial_time{500}; ///< Each of two calls.
constexpr milliseconds retry_pause{50};

std::string key_of(const etcd_address& etcd, const char* what) {
  return "/troupe/" + etcd.job + "/" + what;
}

/// Is coordinator_store::prepare_resume() in etcd, if no process leads.
result<void> forget_servers_in(const etcd_client& client, const etcd_address& etcd) {
  const auto key = key_of(etcd, "state");
  const auto stored = client.get(key, launcher_patience);
  if (!stored)
    return stored.error();
  auto state = *stored ? decode((*stored)->bytes) : std::nullopt;
  if (!state || !forget_servers(*state)) // The coordinator reports bytes that are not a state.
    return {};
  const auto outcome = client.write(
    {{{key, etcd_transaction::condition::modified, (*stored)->modified}}, key, encode(*state)},
    launcher_patience);
  if (!outcome)
    return outcome.error();
  return outcome->written ? result<void>{}
                          : result<void>{errc::in_use, "the job '" + etcd.job + "' runs already"};
}

} // namespace

etcd_store::etcd_store(const etcd_candidate& who, std::unique_ptr<etcd_leadership> lead)
    : client_(who.etcd.endpoints), key_(key_of(who.etcd, "state")), lead_(std::move(lead)) {}

result<std::unique_ptr<etcd_store>> etcd_store::campaign(const etcd_candidate& who) {
  auto lead = etcd_leadership::campaign({.endpoints = who.etcd.endpoints,
                                         .key = key_of(who.etcd, "leader"),
                                         .who = who.who,
                                         .log = who.log,
                                         .waits = who.waits});
  if (!lead)
    return lead.error();
  return std::unique_ptr<etcd_store>{new etcd_store{who, *std::move(lead)}};
}

result<void> etcd_store::check_lead() const {
  return lead_->held() ? result<void>{} : lead_->lost();
}

/// Repeats the call while etcd does not answer and this process leads.
template <class Call>
auto etcd_store::insist(Call call) const -> decltype(call()) {
  while (lead_->held()) {
    auto outcome = call();
    if (outcome || reaction_to(outcome.error().code) != reaction::retry)
      return outcome;
    lead_->wait(retry_pause);
  }
  return lead_->lost();
}

result<coordinator_state> etcd_store::load() {
  const auto found = insist([this] { return client_.get(key_, try_time); });
  if (!found)
    return found.error();
  if (!*found)
    return coordinator_state{};
  auto what = decode((*found)->bytes);
  if (!what)
    return {errc::damaged,
            "the coordinator's state in etcd is damaged, or of another version: key " + key_};
  revision_ = (*found)->modified;
  return *std::move(what);
}

result<void> etcd_store::save(const coordinator_state& what) {
  const auto mine = lead_->condition();
  const etcd_transaction step{
    {mine, {key_, etcd_transaction::condition::modified, revision_}}, key_, encode(what)};
  const auto outcome = insist([&] { return client_.write(step, try_time); });
  if (!outcome)
    return outcome.error();
  if (outcome->written) {
    revision_ = outcome->revision;
    return {};
  }
  const auto leader = outcome->present.find(mine.key);
  const auto state = outcome->present.find(key_);
  const bool leads = leader != outcome->present.end() && leader->second.created == mine.revision;
  if (leads && state != outcome->present.end() && state->second.bytes == *step.bytes) {
    revision_ = state->second.modified; // Written by an earlier try, whose answer was lost.
    return {};
  }
  lead_->give_up();
  return {errc::fenced, "no longer leads: another coordinator took over"};
}

result<void> etcd_store::prepare(const etcd_address& etcd, bool keep_state) {
  const etcd_client client{etcd.endpoints};
  const auto leader = key_of(etcd, "leader");
  const etcd_transaction forget{
    {{leader, etcd_transaction::condition::created, 0}}, key_of(etcd, "state"), std::nullopt};
  const auto until = std::chrono::steady_clock::now() + leader_patience;
  while (true) {
    const auto present = client.get(leader, launcher_patience);
    if (!present)
      return present.error();
    if (!*present && keep_state)
      return forget_servers_in(client, etcd);
    if (!*present) {
      const auto outcome = client.write(forget, launcher_patience);
      if (!outcome)
        return outcome.error();
      if (outcome->written)
        return {};
    }
    if (std::chrono::steady_clock::now() > until)
      return {errc::in_use, "etcd says that the job '" + etcd.job + "' runs already"
                              + (*present ? ", led by " + (*present)->bytes : "")
                              + ": choose another name, etcd://.../NAME"};
    // The key changes in another process; `client` has no call that blocks until it does.
    ::poll(nullptr, 0, static_cast<int>(retry_pause.count()));
  }
}

result<void> etcd_store::mark_dead(const etcd_address& etcd, const std::string& who) {
  const etcd_client client{etcd.endpoints};
  const auto key = key_of(etcd, "leader");
  const auto leader = client.get(key, burial_time);
  if (!leader)
    return leader.error();
  if (!*leader || (*leader)->bytes != who)
    return {};
  const auto outcome = client.write(
    {{{key, etcd_transaction::condition::created, (*leader)->created}}, key, {}}, burial_time);
  return outcome ? result<void>{} : result<void>{outcome.error()};
}

} // namespace troupe::storage
