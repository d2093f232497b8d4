#include "serialization/job_event.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace troupe {

namespace {

/// `sentence`: {field} stands for the field's value; {field:noun} for a count with its noun, as in
/// "1 batch"; {field:time} for seconds. What is in [brackets] is left out where one of its fields
/// is missing.
struct kind_description {
  event_kind kind;
  std::string_view name, sentence;
};

constexpr std::array<kind_description, event_kinds> kinds{{
  {event_kind::note, "note", "{text}"},
  {event_kind::coordinator_restarted, "coordinator_restarted",
   "the coordinator restarted (term {term})"},
  {event_kind::member_of_other_job, "member_of_other_job",
   "{member} belongs to another job and is ignored"},
  {event_kind::member_inconsistent, "member_inconsistent",
   "{member} reports shards or batches that the job does not have and is ignored"},
  {event_kind::launcher_failed, "launcher_failed", "a joined launcher gave up: {reason}"},
  {event_kind::member_joined, "member_joined", "{member} joined"},
  {event_kind::member_rejoined, "member_rejoined", "{member} rejoined"},
  {event_kind::members_missing, "members_missing", "the job waits for {members}"},
  {event_kind::training_started, "training_started", "training with {workers:worker}"},
  {event_kind::batches_applied, "batches_applied", "all {batches} batches are applied"},
  {event_kind::stop_requested, "stop_requested", "stopping on request"},
  {event_kind::job_failed, "job_failed", "the job failed: {reason}"},
  {event_kind::worker_lost, "worker_lost", "{member} lost ({reason}): {batches:batch} reassigned"},
  {event_kind::server_lost, "server_lost", "{member} lost ({reason})"},
  {event_kind::checkpoint_committed, "checkpoint_committed", "checkpoint {checkpoint} committed"},
  {event_kind::checkpoint_failed, "checkpoint_failed", "checkpoint {checkpoint} failed: {reason}"},
  {event_kind::checkpoint_damaged, "checkpoint_damaged", "{reason}; it will not be used"},
  {event_kind::checkpoint_unreadable, "checkpoint_unreadable", "{reason}"},
  {event_kind::checkpoint_skipped, "checkpoint_skipped", "checkpoint skipped: {reason}"},
  {event_kind::checkpoint_search_failed, "checkpoint_search_failed", "{reason}; trying again"},
  {event_kind::no_checkpoint, "no_checkpoint", "no checkpoint yet: restarting from initial values"},
  {event_kind::reading_logs, "reading_logs", "no checkpoint yet: servers read their logs"},
  {event_kind::restore_failed, "restore_failed",
   "{member} cannot restore, trying an older checkpoint: {reason}"},
  {event_kind::shard_recovered, "shard_recovered", "shard {shard} recovered[ from {member}'s log]"},
  {event_kind::shard_restored, "shard_restored",
   "shard {shard} restored from checkpoint {checkpoint}: {updates:update} rolled back"},
  {event_kind::shard_restarted, "shard_restarted",
   "shard {shard} restarted from initial values: {updates:update} rolled back"},
  {event_kind::all_rolled_back, "all_rolled_back",
   "all shards rolled back to clock {clock} (generation {generation})"},
  {event_kind::batches_recomputed, "batches_recomputed", "{batches:batch} will be recomputed"},
  {event_kind::batches_missing, "batches_missing",
   "{batches:batch} that finished are missing on a server and will be recomputed"},
  {event_kind::server_added, "server_added", "{member} is added"},
  {event_kind::server_placed, "server_placed", "{member} holds {shards:shard}"},
  {event_kind::server_idle, "server_idle", "{member} holds no shard, as there are not enough"},
  {event_kind::server_draining, "server_draining", "draining {member}"},
  {event_kind::server_drained, "server_drained", "drained {member}"},
  {event_kind::drain_cancelled, "drain_cancelled", "{member} stays"},
  {event_kind::server_removed, "server_removed", "{member} removed from its shards: {reason}"},
  {event_kind::servers_disconnected, "servers_disconnected",
   "{member} and {other} cannot reach each other: shard {shard} continues without {member}"},
  {event_kind::worker_warned, "worker_warned", "{member} is slow, it is watched; {figures}"},
  {event_kind::worker_rebalanced, "worker_rebalanced",
   "{member} is slow, a part of its work is reassigned; {figures}"},
  {event_kind::worker_demoted, "worker_demoted",
   "{member} is slow, its updates are not waited for; {figures}"},
  {event_kind::worker_evicted, "worker_evicted",
   "{member} evicted for {seconds:time}[, with its host {host}]: it stayed {reason}; {figures}"},
  {event_kind::worker_held, "worker_held",
   "{member} has to wait {seconds:time}: its host {host} is held back"},
  {event_kind::worker_readmitted, "worker_readmitted", "{member} readmitted: {reason}"},
  {event_kind::worker_healthy, "worker_healthy",
   "{member} healthy again: not slow for {seconds:time}"},
  {event_kind::worker_stalled, "worker_stalled",
   "{member} is stalled: it reports, but has finished no step for {seconds:time}; {figures}"},
  {event_kind::worker_resumed, "worker_resumed", "{member} is not stalled any more; {figures}"},
  {event_kind::cluster_slow, "cluster_slow",
   "the cluster is slow, no worker is at fault: {reason}"},
  {event_kind::cluster_healthy, "cluster_healthy",
   "the cluster is not slow any more: workers are compared again"},
  {event_kind::run_started, "run_started", ""},
  {event_kind::run_ended, "run_ended", ""},
  {event_kind::progress, "progress", ""},
  {event_kind::evaluated, "evaluated", ""},
  {event_kind::evaluation_failed, "evaluation_failed", "no evaluation: {reason}"},
  {event_kind::evaluation_not_finite, "evaluation_not_finite",
   "test {measure} is {value}: {reason}"},
  {event_kind::process_ended, "process_ended", "the process of {member} ended: {reason}"},
  {event_kind::process_hung, "process_hung", "{member} hangs: killing it"},
  {event_kind::kill_injected, "kill_injected", "killing {member}"},
  {event_kind::kill_missed, "kill_missed",
   "--kill: {member} was not killed: the run ended first (planned after {seconds} s of training)"},
  {event_kind::process_waits, "process_waits", "{text}"},
  {event_kind::coordinator_silent, "coordinator_silent",
   "no word from the coordinator at {address} for 5 s"},
  {event_kind::coordinator_answers, "coordinator_answers", "the coordinator answers again"},
  {event_kind::coordinator_hung, "coordinator_hung", "the coordinator hangs: killing it"},
  {event_kind::coordinator_back, "coordinator_back", "coordinator back"},
  {event_kind::stopping, "stopping", "stopping; press Ctrl-C again to stop at once"},
  {event_kind::actor_lost, "actor_lost", "{member} lost ({reason})"},
  {event_kind::actor_unstopped, "actor_unstopped",
   "{member} has not stopped within {seconds:time}: the job ends without it"},
}};

consteval bool is_in_order() {
  for (std::size_t i = 0; i < kinds.size(); ++i)
    if (kinds[i].kind != static_cast<event_kind>(i))
      return false;
  return true;
}
static_assert(is_in_order());

const kind_description& description_of(event_kind kind) {
  return kinds.at(static_cast<std::size_t>(kind));
}

double as_double(const event_value& value) {
  if (const auto* count = std::get_if<std::uint64_t>(&value))
    return static_cast<double>(*count);
  const auto* number = std::get_if<double>(&value);
  return number ? *number : 0.0;
}

std::string plain_text(const event_value& value) {
  if (const auto* text = std::get_if<std::string>(&value))
    return *text;
  if (const auto* count = std::get_if<std::uint64_t>(&value))
    return std::to_string(*count);
  char text[32] = {};
  const auto [end, unused] =
    std::to_chars(text, text + sizeof text, as_double(value), std::chars_format::general, 4);
  return {text, end};
}

/// "1 batch", "2 batches", "0 shards".
std::string count_text(const event_value& value, std::string_view noun) {
  auto text = plain_text(value) + " " + std::string{noun};
  if (as_double(value) != 1.0)
    text += noun.ends_with("ch") ? "es" : "s";
  return text;
}

/// `place`: what stands in braces. Nullopt: the event has no such field.
std::optional<std::string> fill(std::string_view place, const job_event& what) {
  const auto colon = std::min(place.find(':'), place.size());
  const auto* const value = what.find(place.substr(0, colon));
  if (value == nullptr)
    return std::nullopt;
  if (colon == place.size())
    return plain_text(*value);
  const auto form = place.substr(colon + 1);
  return form == "time" ? time_text(as_double(*value)) : count_text(*value, form);
}

/// Nullopt: a field is missing and `optional` is set.
std::optional<std::string> render(std::string_view sentence, const job_event& what, bool optional) {
  std::string text;
  while (!sentence.empty()) {
    const char first = sentence.front();
    const auto end = first == '{' ? sentence.find('}') : first == '[' ? sentence.find(']') : 0;
    const auto inside = sentence.substr(1, end > 0 ? end - 1 : 0);
    if (first == '{') {
      const auto value = fill(inside, what);
      if (!value && optional)
        return std::nullopt;
      text += value.value_or("?");
    } else if (first == '[') {
      text += render(inside, what, true).value_or("");
    } else {
      text += first;
    }
    sentence.remove_prefix(end + 1);
  }
  return text;
}

} // namespace

const event_value* job_event::find(std::string_view name) const {
  const auto found = std::ranges::find(fields, name, &event_field::name);
  return found == fields.end() ? nullptr : &found->value;
}

std::string_view job_event::text(std::string_view name) const {
  const auto* const value = find(name);
  const auto* const text = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text == nullptr ? std::string_view{} : *text;
}

std::uint64_t job_event::number(std::string_view name) const {
  const auto* const value = find(name);
  const auto* const count = value == nullptr ? nullptr : std::get_if<std::uint64_t>(value);
  return count == nullptr ? 0 : *count;
}

std::string time_text(double seconds) {
  return seconds < 10.0 ? std::to_string(std::llround(seconds * 1e3)) + " ms"
                        : std::to_string(std::llround(seconds)) + " s";
}

job_event note_of(std::string text) { return {event_kind::note, {{"text", std::move(text)}}}; }

std::string_view name_of(event_kind kind) { return description_of(kind).name; }

std::optional<event_kind> event_kind_of(std::string_view name) {
  const auto found = std::ranges::find(kinds, name, &kind_description::name);
  return found == kinds.end() ? std::nullopt : std::optional{found->kind};
}

std::string text_of(const job_event& what) {
  return *render(description_of(what.kind).sentence, what, false);
}

} // namespace troupe
