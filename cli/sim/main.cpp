// The program `troupe_sim`, run by `troupe sim`, runs histories of a simulated cluster, one for
// each seed. It is built with planted mistakes (actors/protocol/mutation.hpp), one of which can be
// enabled at a time.
#include "actors/protocol/mutation.hpp"
#include "base/command_line.hpp"
#include "base/quote.hpp"
#include "cli/sim/chain_world.hpp"
#include "cli/sim/channel_world.hpp"
#include "cli/sim/gossip/gossip_world.hpp"
#include "cli/sim/histories.hpp"
#include "cli/sim/job_world.hpp"
#include "cli/sim/pipeline/pipeline_world.hpp"
#include "cli/sim/straggler_matrix.hpp"

#include "CLI/CLI.hpp"
#include "fmt/core.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace {

using namespace troupe;

enum class world_kind : std::uint8_t { all, chain, job, channel, gossip, pipeline };

struct sim_options {
  sim::history_options histories{.last = 5000,
                                 .threads = std::max(1u, std::thread::hardware_concurrency())};
  world_kind world = world_kind::all;
  bool trace = false;
  bool mutants = false;
  std::string mutant;
  bool stragglers = false;
  sim::straggler_trial trial;
};

void tell(const sim::failed_seed& failed, const std::string& mutant) {
  fmt::print("seed {}: {}\n  troupe sim --world {} --seeds {}{}{} --trace   shows how\n",
             failed.seed, failed.what, failed.world, failed.seed,
             mutant.empty() ? "" : " --mutant ", mutant);
}

/// Runs the histories. Returns true if there was no violation, and enough of everything.
template <class World>
bool check(const sim_options& options) {
  const auto begin = std::chrono::steady_clock::now();
  const auto all = sim::run_histories<World>(options.histories);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  fmt::print("{}: {} {} in {:.1f} s, {:.0f} a second; {} events\n", World::name, all.histories(),
             all.histories() == 1 ? "history" : "histories", took.count(),
             static_cast<double>(all.histories()) / took.count(), all.events());
  const bool enough = sim::show(all);
  if (all.failed)
    tell(*all.failed, options.mutant);
  else
    fmt::print("{}\n", enough ? "no violation" : "no violation, but too little happened");
  std::fflush(stdout);
  return enough && !all.failed;
}

bool is_asked(const sim_options& options, world_kind which) {
  return options.world == world_kind::all || options.world == which;
}

int check_worlds(const sim_options& options) {
  const bool chains = !is_asked(options, world_kind::chain) || check<sim::chain_world>(options);
  const bool channels =
    !is_asked(options, world_kind::channel) || check<sim::channel_world>(options);
  const bool gossip = !is_asked(options, world_kind::gossip) || check<sim::gossip_world>(options);
  const bool pipelines =
    !is_asked(options, world_kind::pipeline) || check<sim::pipeline_world>(options);
  const bool jobs = !is_asked(options, world_kind::job) || check<sim::job_world>(options);
  return chains && channels && gossip && pipelines && jobs ? EXIT_SUCCESS : EXIT_FAILURE;
}

int trace(const sim_options& options) {
  const auto seed = options.histories.first;
  const bool no_faults = options.histories.no_faults;
  const auto failed =
    options.world == world_kind::pipeline ? sim::trace_history<sim::pipeline_world>(seed, no_faults)
    : options.world == world_kind::chain  ? sim::trace_history<sim::chain_world>(seed, no_faults)
    : options.world == world_kind::channel ? sim::trace_history<sim::channel_world>(seed, no_faults)
    : options.world == world_kind::gossip  ? sim::trace_history<sim::gossip_world>(seed, no_faults)
                                           : sim::trace_history<sim::job_world>(seed, no_faults);
  fmt::print("seed {}: {}\n", seed, failed ? failed->what : "no violation");
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/// Returns whether a world that was asked for runs the mistaken code.
bool runs_in(const mutation_entry& each, const sim_options& options, world_kind which) {
  const auto runs = [&] {
    switch (each.in) {
    case mutation_world::chain: return which == world_kind::chain;
    case mutation_world::job: return which == world_kind::job;
    case mutation_world::both: return which == world_kind::chain || which == world_kind::job;
    case mutation_world::channel: return which == world_kind::channel;
    case mutation_world::gossip: return which == world_kind::gossip;
    case mutation_world::pipeline: return which == world_kind::pipeline;
    }
    return false;
  };
  return runs() && is_asked(options, which);
}

/// Tries a mistake in the worlds that know it.
std::optional<sim::failed_seed> try_mutant(const mutation_entry& each, const sim_options& options,
                                           const sim::history_options& histories) {
  std::optional<sim::failed_seed> failed;
  if (runs_in(each, options, world_kind::chain))
    failed = sim::run_histories<sim::chain_world>(histories).failed;
  if (runs_in(each, options, world_kind::channel))
    failed = sim::run_histories<sim::channel_world>(histories).failed;
  if (runs_in(each, options, world_kind::gossip))
    failed = sim::run_histories<sim::gossip_world>(histories).failed;
  if (runs_in(each, options, world_kind::pipeline))
    failed = sim::run_histories<sim::pipeline_world>(histories).failed;
  if (!failed && runs_in(each, options, world_kind::job))
    failed = sim::run_histories<sim::job_world>(histories).failed;
  return failed;
}

int try_mutants(const sim_options& options) {
  std::size_t all = 0, caught = 0, harmless = 0;
  for (const mutation_entry& each : mutations) {
    constexpr std::array worlds{world_kind::chain, world_kind::channel, world_kind::gossip,
                                world_kind::pipeline, world_kind::job};
    if (std::ranges::none_of(worlds, [&](auto which) { return runs_in(each, options, which); }))
      continue;
    ++all;
    planted = each.value;
    const bool is_harmless = !each.harmless_because.empty();
    auto chosen = options.histories;
    if (is_harmless) // A wrong argument is most likely noticed soon.
      chosen.last = chosen.first + (chosen.last - chosen.first) / 10;
    const auto failed = try_mutant(each, options, chosen);
    if (failed) {
      caught += is_harmless ? 0 : 1;
      fmt::print("{:28} {:7} {:>6}  {}{}\n", each.name, failed->world, failed->seed, failed->what,
                 is_harmless ? ", though it was said to be harmless" : "");
    } else if (is_harmless) {
      ++harmless;
      fmt::print("{:28} harmless: {}\n", each.name, each.harmless_because);
    } else {
      fmt::print("{:28} not caught up to seed {}\n", each.name, chosen.last);
    }
    std::fflush(stdout);
  }
  planted = mutation::none;
  fmt::print("{} mistakes: {} caught, {} harmless, {} not as they should be\n", all, caught,
             harmless, all - caught - harmless);
  return caught + harmless == all ? EXIT_SUCCESS : EXIT_FAILURE;
}

bool plant(const std::string& name) {
  const auto found = std::ranges::find(mutations, std::string_view{name}, &mutation_entry::name);
  if (found == mutations.end())
    return false;
  planted = found->value;
  return true;
}

template <class Number>
bool read_number(std::string_view digits, Number& to) {
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), to);
  return problem == std::errc{} && end == digits.data() + digits.size();
}

/// Parses "7" or "1..5000". Returns an error text, empty if it is good.
std::string read_seeds(const std::string& text, sim::history_options& options) {
  const auto dots = text.find("..");
  const std::string_view all{text};
  const bool good = dots == std::string::npos
                      ? read_number(all, options.first) && read_number(all, options.last)
                      : read_number(all.substr(0, dots), options.first)
                          && read_number(all.substr(dots + 2), options.last);
  if (!good)
    return "needs a number or FIRST..LAST";
  return options.first <= options.last ? "" : "the first seed is after the last";
}

/// Parses a world. Returns an error text, empty if it is good.
std::string read_world(const std::string& text, world_kind& to) {
  constexpr std::array<std::pair<std::string_view, world_kind>, 6> worlds{{
    {"chain", world_kind::chain},
    {"job", world_kind::job},
    {"channel", world_kind::channel},
    {"gossip", world_kind::gossip},
    {"pipeline", world_kind::pipeline},
    {"all", world_kind::all},
  }};
  const auto found = std::ranges::find(worlds, text, [](const auto& x) { return x.first; });
  if (found == worlds.end())
    return quote(text) + " is not chain, job, channel, gossip, pipeline or all";
  to = found->second;
  return "";
}

/// Checks a number of hours, as CLI::Range accepts nan.
std::string hours(const std::string& text) {
  double value = 0.0;
  const bool right = read_number(text, value) && value >= 1.0 && value <= 1e9;
  return right ? "" : quote(text) + " is not a number from 1 to 1e9";
}

void declare_stragglers(CLI::App& app, sim_options& options) {
  auto* const flag =
    app.add_flag("--stragglers", options.stragglers,
                 "Instead: fleets of workers that are slow in many ways, before the detector");
  app
    .add_option("--worker-hours", options.trial.healthy_hours, "With --stragglers: of healthy ones")
    ->needs(flag)
    ->check(hours)
    ->capture_default_str();
  auto* const oversensitive = app.add_flag_callback(
    "--oversensitive", [&] { options.trial.detector = sim::detector_kind::oversensitive; },
    "With --stragglers: a detector without tolerance, which has to be noticed");
  auto* const passive = app.add_flag_callback(
    "--passive", [&] { options.trial.detector = sim::detector_kind::passive; },
    "With --stragglers: a detector that uses no force, which has to be noticed");
  oversensitive->needs(flag)->excludes(passive);
  passive->needs(flag);
}

} // namespace

int main(int argc, char** argv) {
  sim_options options;
  CLI::App app{"Simulates clusters, each a function of its seed: processes, disks, clocks and "
               "network fail for\n"
               "a time; then the job has to end without a lost or doubled batch.",
               "troupe sim"};
  app
    .add_option_function<std::string>(
      "--seeds", [](const std::string&) {}, "One seed, or FIRST..LAST")
    ->check([&](const std::string& text) { return read_seeds(text, options.histories); })
    ->type_name("N|A..B")
    ->default_str("1..5000");
  app
    .add_option_function<std::string>(
      "--world", [](const std::string&) {},
      "chain: replicas and clients, as long as one likes; job: coordinator, servers and\n"
      "workers of a whole job; channel: actors of a program that send parcels to each other;\n"
      "gossip: peers that train without servers; pipeline: lines of parts of a model;\n"
      "all: one after the other")
    ->check([&](const std::string& text) { return read_world(text, options.world); })
    ->type_name("chain|job|channel|gossip|pipeline|all")
    ->default_str("all");
  app.add_option("--threads", options.histories.threads, "Histories at a time")
    ->check(CLI::Range(1u, 1024u).description("1..1024"))
    ->capture_default_str();
  app.add_flag("--no-faults", options.histories.no_faults,
               "Without faults: shows that their number is checked");
  app.add_flag("--calm", options.histories.no_faults)->group(""); // The older name.
  auto* const trace_flag = app.add_flag(
    "--trace", options.trace,
    "Print the events of the first seed, of the world job unless --world names another");
  auto* const all = app.add_flag("--mutants", options.mutants,
                                 "For each planted mistake, the first seed that notices it");
  all->excludes(trace_flag);
  app.add_option("--mutant", options.mutant, "Run with this planted mistake")->excludes(all);
  declare_stragglers(app, options);
  try {
    const std::span words{argv, static_cast<std::size_t>(argc)};
    require_values(words);
    refuse_empty_words(app, words);
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& problem) {
    fmt::print(stderr, "troupe sim: {} (see troupe sim --help)\n",
               printable(problem_text(app, problem)));
    return 2;
  }
  if (!options.mutant.empty() && !plant(options.mutant)) {
    fmt::print(stderr, "troupe sim: no mistake is called '{}' (see troupe sim --mutants)\n",
               options.mutant);
    return 2;
  }
  if (options.stragglers) {
    options.trial.threads = options.histories.threads;
    return sim::try_stragglers(options.trial) ? EXIT_SUCCESS : EXIT_FAILURE;
  }
  if (options.trace)
    return trace(options);
  return options.mutants ? try_mutants(options) : check_worlds(options);
}
