#include "cli/chaos/verdict_text.hpp"

#include "fmt/format.h"

#include <algorithm>

namespace troupe::chaos {

namespace {

std::string line(std::string_view what, const std::string& value) {
  return fmt::format("  {:34} {:>10}\n", what, value);
}

/// Counts of chains' heads divided by the chains may have a fraction.
std::string number(double x) { return fmt::format("{:.0f}", x); }

/// In bsp the line of the chain that was lost, where there is one, precedes one of all chains.
std::uint64_t restored(const run_facts& run) {
  const auto alone = run.count(" restored from checkpoint ") + run.count(" what its server kept")
                     + run.count("started over: ");
  return std::max(alone, run.count("go on from clock"));
}

const char* word_for(evaluation_message verdict) {
  switch (verdict) {
  case evaluation_message::holds: return "holds";
  case evaluation_message::violated: return "VIOLATED";
  case evaluation_message::not_judged: return "n/a because";
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
  text +=
    line("members given up", std::to_string(run.count(" lost (") + run.count("go to others")));
  text += line("members back", std::to_string(run.count(" rejoined")));
  text += line("coordinators back", std::to_string(run.count("coordinator back")));
  text += line("chains restored", std::to_string(restored(run)));
  text += line("updates rolled back", std::to_string(run.rolled_back));
  text += line("checkpoints committed", std::to_string(run.checkpoints(" committed")));
  text += line("checkpoints failed", std::to_string(run.checkpoints(" failed: ")));
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
    if (each.verdict == evaluation_message::violated)
      names += (names.empty() ? "" : ", ") + each.checker;
  return names;
}

} // namespace troupe::chaos
