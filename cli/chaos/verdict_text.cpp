#include "cli/chaos/verdict_text.hpp"

#include "fmt/format.h"

#include <algorithm>

namespace troupe::chaos {

namespace {

std::string line(std::string_view what, const std::string& value) {
  return fmt::format("  {:34} {:>10}\n", what, value);
}

/// Rounds a count: a sum over chains' heads, divided by the chains, may have a fraction.
std::string number(double x) { return fmt::format("{:.0f}", x); }

/// Counts restores. In bsp the line of a lost chain, where there is one, precedes one of all
/// chains.
std::uint64_t restored(const run_facts& run) {
  const auto alone = run.count(event_kind::shard_restored) + run.count(event_kind::shard_recovered)
                     + run.count(event_kind::shard_restarted);
  return std::max(alone, run.count(event_kind::all_rolled_back));
}

const char* word_for(check_outcome verdict) {
  switch (verdict) {
  case check_outcome::holds: return "holds";
  case check_outcome::violated: return "VIOLATED";
  case check_outcome::not_judged: return "n/a because";
  }
  return "";
}

} // namespace

std::string times(std::uint64_t count) {
  return count == 1 ? "once" : fmt::format("{} times", count);
}

std::string counts_text(const run_facts& run) {
  std::string text = fmt::format("{} faults\n", run.faults.size());
  const auto counts = run.fault_counts();
  for (const auto kind : kinds_of(run.asked))
    text += line(name_of(kind), std::to_string(counts[static_cast<std::size_t>(kind)]));
  text += fmt::format("the job, {:.1f} s\n", run.ended_at);
  text += line("pushes applied", run.has_report ? number(run.applied) : "unknown");
  text += line("duplicates refused", run.has_report ? number(run.duplicates) : "unknown");
  text += line("members given up", std::to_string(run.count(event_kind::server_lost)
                                                  + run.count(event_kind::worker_lost)
                                                  + run.count(event_kind::actor_lost)));
  text += line("members back", std::to_string(run.count(event_kind::member_rejoined)));
  text += line("coordinators back", std::to_string(run.count(event_kind::coordinator_back)));
  text += line("shards restored", std::to_string(restored(run)));
  text += line("updates rolled back", std::to_string(run.rolled_back));
  text +=
    line("checkpoints committed", std::to_string(run.count(event_kind::checkpoint_committed)));
  text += line("checkpoints failed", std::to_string(run.count(event_kind::checkpoint_failed)));
  text += line("longest pause",
               run.has_report ? fmt::format("{:.0f} ms", run.longest_pause_ms) : "unknown");
  text += line("peak memory", fmt::format("{:.0f} MB", run.rss_mb.value));
  text += line("descriptors", fmt::format("{:.0f}", run.descriptors.value));
  return text;
}

std::string findings_text(const std::vector<check_result>& results) {
  std::string text;
  for (const auto& each : results)
    text += fmt::format("{:22} {:11} {}\n", each.checker, word_for(each.verdict), each.why);
  return text;
}

std::string violated(const std::vector<check_result>& results) {
  std::string names;
  for (const auto& each : results)
    if (each.verdict == check_outcome::violated)
      names += (names.empty() ? "" : ", ") + each.checker;
  return names;
}

} // namespace troupe::chaos
