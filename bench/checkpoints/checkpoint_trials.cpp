// Tests whether checkpoints can be trusted. Each of many random damages must be noticed, and each
// restore on another number of servers must give the same bytes.
#include "bench/checkpoints/damage_trials.hpp"
#include "bench/checkpoints/restore_trials.hpp"
#include "bench/report.hpp"

#include "CLI/CLI.hpp"
#include "fmt/format.h"

#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace {

using namespace troupe::bench;

struct options {
  std::uint64_t count = 200;
  std::uint64_t seed = 1;
  std::uint32_t servers = 8;
  bool json = false;
};

double figure(std::uint64_t x) { return static_cast<double>(x); }

/// Prints the errors and returns the exit status.
int tell(const std::vector<std::string>& wrong) {
  constexpr std::size_t lines_max = 20;
  for (std::size_t i = 0; i < wrong.size() && i < lines_max; ++i)
    fmt::print(stderr, "WRONG: {}\n", wrong[i]);
  if (wrong.size() > lines_max)
    fmt::print(stderr, "WRONG: {} more\n", wrong.size() - lines_max);
  return wrong.empty() ? 0 : 1;
}

row row_of(const damage_figures& x) {
  return row{}
    .text("damage", "damage", x.kind)
    .number("damages", "damages", figure(x.damages), 0)
    .number("without_effect", "without effect", figure(x.without_effect), 0)
    .number("noticed", "noticed", figure(x.noticed), 0)
    .number("missed", "missed", figure(x.damages - x.without_effect - x.noticed), 0)
    .number("restored", "older one restored", figure(x.restored), 0)
    .number("refused_by_reader", "reader alone: refused", figure(x.refused_by_reader), 0)
    .number("harmless_to_reader", "right values", figure(x.harmless_to_reader), 0);
}

row row_of(const restore_figures& x) {
  return row{}
    .text("tables", "tables", x.tables)
    .number("servers", "servers", x.servers, 0)
    .number("files", "files", figure(x.files), 0)
    .number("megabytes", "MB", x.megabytes, 1)
    .number("restored", "restores", figure(x.restored), 0)
    .number("parameters", "same parameters", figure(x.parameters), 0)
    .number("states", "optimiser state", figure(x.states), 0)
    .number("marks", "marks", figure(x.applied), 0)
    .number("clocks", "clocks", figure(x.clocks), 0)
    .number("ends", "all at the end", figure(x.ends), 0);
}

int damage(const options& chosen) {
  const auto found = damage_checkpoints(chosen.count, chosen.seed);
  damage_figures all;
  all.kind = "all";
  std::vector<row> rows;
  for (const auto& x : found.kinds) {
    rows.push_back(row_of(x));
    all.damages += x.damages;
    all.without_effect += x.without_effect;
    all.noticed += x.noticed;
    all.restored += x.restored;
    all.refused_by_reader += x.refused_by_reader;
    all.harmless_to_reader += x.harmless_to_reader;
  }
  rows.push_back(row_of(all));
  print(fmt::format("Damages of {} checkpoints ({} files), seed {}; in {} trials no good one was "
                    "left",
                    found.checkpoints, found.files, chosen.seed, found.none_left),
        rows, chosen.json);
  return tell(found.wrong);
}

int restore(const options& chosen) {
  std::vector<row> rows;
  std::vector<std::string> wrong;
  for (const auto& x : restore_on_others(chosen.servers, chosen.seed)) {
    rows.push_back(row_of(x));
    wrong.insert(wrong.end(), x.wrong.begin(), x.wrong.end());
  }
  print(fmt::format("Checkpoints of 1 .. {0} servers restored on 1 .. {0}, seed {1}; in how many "
                    "all bytes were the same",
                    chosen.servers, chosen.seed),
        rows, chosen.json);
  return tell(wrong);
}

} // namespace

int main(int argc, char** argv) {
  try {
    options chosen;
    CLI::App app{"Damages checkpoints at random, and restores them on other numbers of servers.\n"
                 "Exits with 1 where a damage is not noticed or a restored byte differs.",
                 "checkpoint_trials"};
    app.add_option("--count", chosen.count, "Damages")->capture_default_str();
    app.add_option("--servers", chosen.servers, "Largest number of servers; 0: no restores")
      ->check(CLI::Range(0, 8))
      ->capture_default_str();
    app.add_option("--seed", chosen.seed, "Of damages and training")->capture_default_str();
    app.add_flag("--json", chosen.json, "Print one JSON object a line");
    CLI11_PARSE(app, argc, argv);
    int status = 0;
    if (chosen.count > 0)
      status |= damage(chosen);
    if (chosen.servers > 0)
      status |= restore(chosen);
    return status;
  } catch (const std::exception& problem) {
    fmt::print(stderr, "checkpoint_trials: {}\n", problem.what());
    return 1;
  }
}
