#include "cli/record.hpp"

#include "base/command_line.hpp"
#include "serialization/histogram.hpp"

#include "CLI/CLI.hpp"
#include "fmt/format.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace troupe {

namespace {

using storage::chain_history;
using storage::push_history;
using storage::trace_entry;

double seconds(std::uint64_t from_ns, std::uint64_t to_ns) {
  return (static_cast<double>(to_ns) - static_cast<double>(from_ns)) * 1e-9;
}

std::uint64_t staleness_of(const trace_entry& x) {
  const auto before = x.version - 1;
  return before > x.base_version ? before - x.base_version : 0;
}

std::uint64_t begin_of(const push_history& history) {
  auto begin = std::numeric_limits<std::uint64_t>::max();
  for (const auto& chain : history.chains)
    for (const auto* const all : {&chain.applied, &chain.read})
      for (const auto& x : *all)
        begin = std::min(begin, x.time_ns);
  return begin;
}

struct pause {
  std::uint64_t from_ns = 0;
  std::uint64_t to_ns = 0;
};

/// Returns the longest pause between two pushes, over all generations of a chain.
pause longest_pause(const push_history& history, shard_id shard) {
  std::vector<std::uint64_t> times;
  for (const auto& each : history.chains)
    if (each.shard == shard)
      for (const auto& x : each.applied)
        times.push_back(x.time_ns);
  std::ranges::sort(times);
  pause longest;
  for (std::size_t i = 1; i < times.size(); ++i)
    if (times[i] - times[i - 1] > longest.to_ns - longest.from_ns)
      longest = {times[i - 1], times[i]};
  return longest;
}

std::string chain_lines(const push_history& history) {
  std::string text;
  for (const auto& chain : history.chains) {
    text += fmt::format("shard {}, generation {}: {} pushes in {:.3f} s", chain.shard.value,
                        chain.generation.value, chain.applied.size(),
                        chain.applied.empty()
                          ? 0.0
                          : seconds(chain.applied.front().time_ns, chain.applied.back().time_ns));
    text += chain.base_checkpoint == 0
              ? "\n"
              : fmt::format(", from checkpoint {}\n", chain.base_checkpoint);
  }
  return text;
}

/// Reports missing batches: in a run that came to its end every chain has applied every batch.
std::string missing_lines(const push_history& history) {
  std::map<shard_id, std::set<batch_id>> applied;
  for (const auto& chain : history.chains) {
    auto& there = applied[chain.shard];
    for (const auto& x : chain.applied)
      there.insert(x.batch);
  }
  const auto batches = history.job.batches();
  std::string text;
  for (const auto& [chain, there] : applied)
    if (there.size() < batches)
      text += fmt::format("shard {}: {} of {} batches are missing: the run, or its record, ended "
                          "before them\n",
                          chain.value, batches - there.size(), batches);
  return text;
}

std::string pause_lines(const push_history& history) {
  std::set<shard_id> chains;
  for (const auto& each : history.chains)
    chains.insert(each.shard);
  const auto begin = begin_of(history);
  std::string text;
  for (const auto chain : chains) {
    const auto longest = longest_pause(history, chain);
    text += fmt::format("shard {}: longest pause {:.1f} ms, at {:.3f} s\n", chain.value,
                        1e3 * seconds(longest.from_ns, longest.to_ns),
                        longest.from_ns == 0 ? 0.0 : seconds(begin, longest.from_ns));
  }
  return text;
}

} // namespace

std::string record_summary(const push_history& history) {
  std::uint64_t pushes = 0;
  std::uint64_t read = 0;
  std::set<std::pair<worker_id, incarnation_id>> workers;
  histogram staleness;
  for (const auto& chain : history.chains) {
    pushes += chain.applied.size();
    read += chain.read.size();
    for (const auto& x : chain.applied) {
      workers.emplace(x.worker, x.incarnation);
      staleness.add(staleness_of(x));
    }
  }
  auto text = fmt::format("job '{}': {} batches, {} workers\n", history.job.name,
                          history.job.batches(), history.job.workers);
  text += chain_lines(history) + missing_lines(history);
  text += fmt::format("{} pushes of {} workers (one that was started again counts twice)\n", pushes,
                      workers.size());
  if (read > 0) // A batch was done twice: each chain applied one of its two gradients.
    text += fmt::format("{} pushes of batches done twice, which only other shards applied\n", read);
  text += fmt::format(
    "{} bytes in {} files, {:.1f} a push", history.size_bytes, history.files,
    pushes == 0 ? 0.0 : static_cast<double>(history.size_bytes) / static_cast<double>(pushes));
  text += history.torn_bytes == 0
            ? "\n"
            : fmt::format("; {} bytes at the end of a file are torn\n", history.torn_bytes);
  text += fmt::format("staleness in versions: mean {:.2f}, median {}, 90 % {}, 99 % {}, max {}\n",
                      staleness.mean(), staleness.quantile(0.5), staleness.quantile(0.9),
                      staleness.quantile(0.99), staleness.max());
  return text + pause_lines(history);
}

std::string record_lines(const push_history& history) {
  const auto begin = begin_of(history);
  std::string text = "seconds chain generation version slot worker batch clock base_version\n";
  for (const auto& chain : history.chains)
    for (const auto* const all : {&chain.applied, &chain.read})
      for (const auto& x : *all)
        text +=
          fmt::format("{:.6f} {} {} {} {} {} {} {} {}\n", seconds(begin, x.time_ns),
                      chain.shard.value, chain.generation.value,
                      x.event == storage::push_event::applied ? std::to_string(x.version) : "read",
                      x.slot, x.worker.value, x.batch.value, x.clock, x.base_version);
  return text;
}

command record_command(CLI::App& app) {
  struct options {
    std::filesystem::path directory;
    bool lines = false;
  };
  const auto given = std::make_shared<options>();
  auto* const words = app.add_subcommand("record", "Shows the trace of a run (--record DIR)");
  words->add_option("DIR", given->directory, "Directory of the record")
    ->check(path_fault)
    ->required();
  words->add_flag("--lines", given->lines, "Also every record, one a line");
  return {words, [given]() -> result<void> {
            const auto history = storage::read_push_history(given->directory);
            if (!history)
              return history.error();
            fmt::print("{}", record_summary(*history));
            if (given->lines)
              fmt::print("{}", record_lines(*history));
            return {};
          }};
}

} // namespace troupe
