#include "cli/plan/plan_command.hpp"

#include "actors/protocol/pipeline/micro_order.hpp"
#include "base/command_line.hpp"
#include "base/system/output_file.hpp"
#include "cli/plan/pipeline.hpp"
#include "cli/plan/sizing.hpp"
#include "cli/plan/svg.hpp"
#include "cli/plan/topology_file.hpp"
#include "cli/plan/units.hpp"
#include "kernels/schedules/presets.hpp"

#include "CLI/CLI.hpp"
#include "fmt/format.h"
#include "fmt/ranges.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>

namespace troupe {

namespace {

using kernels::routing;
using kernels::strategy_plan;
using planning::show_bytes;
using planning::show_seconds;

struct options {
  std::string topology;
  double bytes = 0;
  kernels::planner_options planner;
  std::filesystem::path svg;
  planning::server_needs needs{.network_per_second = 10e9 / 8, .disk_per_second = 500e6};
  bool asks_for_servers = false;
  planning::pipeline_needs line;
};

double busy_share(const strategy_plan& x) { return 100 * x.cost.busiest_seconds / x.cost.seconds; }

std::string row(const routing& ways, const strategy_plan& x, bool is_chosen) {
  const char mark = is_chosen ? '*' : ' ';
  if (!x.missing.empty())
    return fmt::format("{} {:<42} none: {}\n", mark, x.name, x.missing);
  return fmt::format("{} {:<42} {:>9} {:>9} {:>8}  {:>8} {} ({:.0f} %)\n", mark, x.name,
                     show_seconds(x.whole_seconds), show_seconds(x.cost.seconds),
                     show_bytes(x.chunk_bytes), show_bytes(x.cost.busiest_bytes),
                     ways.resource_name(x.cost.busiest), busy_share(x));
}

/// Compares the best plan with the others.
std::string comparison(const std::vector<strategy_plan>& plans, const strategy_plan& best) {
  const strategy_plan* next = nullptr;
  std::vector<std::string> equals;
  for (const auto& each : plans) {
    if (&each == &best || !each.missing.empty())
      continue;
    if (each.cost.seconds <= 1.02 * best.cost.seconds)
      equals.push_back(each.name);
    else if (next == nullptr || each.cost.seconds < next->cost.seconds)
      next = &each;
  }
  std::string text;
  if (!equals.empty())
    text = fmt::format("{}: as fast within 2 %, no fewer steps; ", fmt::join(equals, ", "));
  if (next != nullptr)
    text +=
      fmt::format("{}: {:.3g} times as long", next->name, next->cost.seconds / best.cost.seconds);
  return text;
}

std::string limit(const routing& ways, const strategy_plan& best) {
  const auto link = ways.resource_name(best.cost.busiest);
  if (busy_share(best) >= 80)
    return fmt::format("bandwidth is the limit: {} is in use {:.0f} % of the time", link,
                       busy_share(best));
  return fmt::format(
    "latency and waiting are the limit: the busiest, {}, is in use {:.0f} % of the "
    "time",
    link, busy_share(best));
}

result<void> write_drawing(const options& given, const routing& ways, const strategy_plan& best) {
  return write_outputs({{given.svg, planning::drawing(ways, best, given.bytes)}});
}

result<void> run(options& given) {
  if (!given.line.parts.empty()) {
    const auto text = planning::pipeline_text(given.line);
    if (!text)
      return text.error();
    fmt::print("{}", *text);
    return {};
  }
  if (given.topology.empty() && !given.asks_for_servers)
    return {errc::invalid_argument,
            "no plan was asked for: give --topology (strategies on it), --workers "
            "(sizes of a parameter server) or both, or --parts (a pipeline)"};
  if (!given.svg.empty() && given.topology.empty())
    return {errc::invalid_argument, "--svg draws a topology: give --topology"};
  if (given.needs.replicas > given.needs.servers)
    return {errc::invalid_argument, fmt::format("{} replicas need as many servers: --servers {}",
                                                given.needs.replicas, given.needs.replicas)};
  if (!given.topology.empty()) {
    auto net = planning::find_topology(given.topology);
    if (!net)
      return net.error();
    const routing ways(std::move(*net));
    const auto plans = kernels::plan_all_reduce(ways, given.bytes, given.planner);
    if (!given.svg.empty())
      if (const auto done = write_drawing(given, ways, plans[choose(plans)]); !done)
        return done.error();
    fmt::print("{}", plan_text(ways, given.bytes, plans));
  }
  if (given.asks_for_servers) {
    given.needs.parameter_bytes = given.bytes;
    fmt::print("{}{}", given.topology.empty() ? "" : "\n", planning::sizing_text(given.needs));
  }
  return {};
}

/// Adds an option whose text is parsed by `parse`.
template <class T>
CLI::Option* add_parsed(CLI::App& words, const char* name, T& value,
                        result<T> (*parse)(const std::string&), const std::string& help,
                        const char* form, const char* group) {
  return words
    .add_option_function<std::string>(
      name,
      [name, &value, parse](const std::string& text) {
        auto parsed = parse(text);
        if (!parsed)
          throw CLI::ValidationError(fmt::format("{}: {}", name, parsed.error().text));
        value = *std::move(parsed);
      },
      help)
    ->type_name(form)
    ->group(group);
}

void add_sizing_words(CLI::App& words, options& given) {
  constexpr auto group = "Parameter servers (with --workers)";
  constexpr auto most = 1'000'000u;
  const auto add_count = [&](const char* name, std::uint32_t& value, std::uint32_t least,
                             const char* help) {
    return words.add_option(name, value, help)
      ->check(CLI::Range(least, most).description(""))
      ->capture_default_str()
      ->type_name("N")
      ->group(group);
  };
  words
    .add_option_function<std::uint32_t>(
      "--workers",
      [&given](std::uint32_t count) {
        given.needs.workers = count;
        given.asks_for_servers = true;
      },
      "Also sizes a parameter server for this many workers")
    ->check(CLI::Range(1u, most).description(""))
    ->type_name("N")
    ->group(group);
  add_count("--servers", given.needs.servers, 1, "Servers that share the parameters");
  add_parsed(words, "--step", given.needs.step_seconds, planning::parse_seconds,
             "Time of a worker's computation for a batch [100ms]", "TIME", group);
  add_parsed(words, "--network", given.needs.network_per_second, planning::parse_rate,
             "Rate of each worker and server, or of each link between two parts, in each direction "
             "(default: 10Gbit/s; with --parts, links take no time)",
             "RATE", group);
  add_parsed(words, "--disk", given.needs.disk_per_second, planning::parse_rate,
             "At which a server reads a checkpoint [500MB/s]", "RATE", group);
  const auto add_ratio = [&](const char* name, double& value, const char* help) {
    words.add_option(name, value, help)
      ->check(CLI::Range(1.0, 1e6).description(""))
      ->check(CLI::Validator(
        [](const std::string& text) { // CLI::Range accepts nan.
          return std::isnan(std::strtod(text.c_str(), nullptr)) ? text + " is not a number" : "";
        },
        ""))
      ->capture_default_str()
      ->type_name("RATIO")
      ->group(group);
  };
  add_ratio("--compress", given.needs.compress, "How many times smaller pushed gradients are");
  add_count("--state", given.needs.state_per_weight, 0,
            "Numbers that the optimizer keeps for each parameter (adam: 2)");
  add_count("--replicas", given.needs.replicas, 1, "Servers that hold each parameter");
  add_count("--checkpoints", given.needs.checkpoints, 1, "Checkpoints kept on disk");
  add_ratio("--slowest", given.needs.slowest, "Step of the slowest worker, in steps of the others");
  auto* const workers = words.get_option("--workers");
  for (auto* const each : words.get_options())
    if (each->get_group() == group && each != workers && each->get_name() != "--network")
      each->needs(workers);
}

void add_pipeline_words(CLI::App& words, options& given) {
  constexpr auto group = "Pipelines (with --parts)";
  auto* const parts = add_parsed(words, "--parts", given.line.parts, planning::parse_parts,
                                 "Predicts a pipeline: times of forward and backward of each part "
                                 "for a whole batch, as 20ms/40ms,25ms/50ms",
                                 "TIMES", group);
  const auto add_count = [&](const char* name, std::uint32_t& value, const char* help) {
    return words.add_option(name, value, help)
      ->check(CLI::Range(1u, planning::pipeline_samples_max).description(""))
      ->type_name("N")
      ->group(group);
  };
  auto* const batch = add_count("--batch", given.line.samples, "Samples of a batch");
  auto* const micros =
    add_count("--micro-batches", given.line.micros, "Stretches in which a batch passes the parts");
  auto* const order = add_parsed(
    words, "--pipeline-order", given.line.schedule.order, parse_micro_order,
    "Which computation of a part comes first: 1f1b or fill-drain [1f1b]", "ORDER", group);
  auto* const ahead =
    words
      .add_option("--pipeline-ahead", given.line.schedule.ahead,
                  "1f1b: micro-batches that a part computes ahead for each link below it")
      ->check(CLI::Range(0u, 1000u).description(""))
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
  auto* const sizes =
    add_parsed(words, "--activations", given.line.activation_bytes, planning::parse_activations,
               "Size of a batch's activations at each cut between two parts, as 256KB; or one for "
               "each cut, as 256KB,64KB",
               "SIZES", group);
  for (auto* const each : {batch, micros, order, ahead, sizes})
    each->needs(parts);
  parts->needs(batch)->needs(micros);
  for (const auto* const each : {"--topology", "--bytes", "--chunk-min", "--svg", "--workers"})
    parts->excludes(words.get_option(each));
}

/// Refuses options that do not fit each other, which CLI11 cannot tell.
void check_together(const CLI::App& words, options& given) {
  const bool has_parts = !given.line.parts.empty();
  const bool has_network = words.count("--network") > 0;
  if (!has_parts && words.count("--bytes") == 0)
    throw CLI::RequiredError("--bytes");
  if (has_network && !has_parts && !given.asks_for_servers)
    throw CLI::RequiresError("--network", "--workers or --parts");
  if (!has_parts)
    return;
  if (given.line.schedule.order == micro_order::fill_drain && words.count("--pipeline-ahead") > 0)
    throw CLI::ValidationError("--pipeline-ahead: fill-drain has no part that is ahead");
  given.line.network_per_second = has_network ? given.needs.network_per_second : 0;
  if (const auto fits = planning::check(given.line); !fits)
    throw CLI::ValidationError(fits.error().text);
}

} // namespace

std::string plan_text(const routing& ways, double bytes, const std::vector<strategy_plan>& plans) {
  const auto& net = ways.net();
  const auto& best = plans[choose(plans)];
  auto text = fmt::format("{}: {}\nall-reduce of {} on {} devices\n\n", net.name,
                          net.note.empty() ? fmt::format("{} links", net.links.size()) : net.note,
                          show_bytes(bytes), ways.devices());
  text += fmt::format("  {:<42} {:>9} {:>9} {:>8}  {:>8} {}\n", "strategy", "whole", "time",
                      "chunk", "bytes", "over the busiest link (in use)");
  for (const auto& each : plans)
    text += row(ways, each, &each == &best);
  text += fmt::format("\nchoice: {}, {}, in chunks of {}\n", best.name,
                      show_seconds(best.cost.seconds), show_bytes(best.chunk_bytes));
  text += "why:    " + comparison(plans, best) + "\n        " + limit(ways, best) + "\n";
  return text
         + "whole: without pipelining; time: with the best chunk size. Nothing else uses the "
           "links.\n";
}

command plan_command(CLI::App& app) {
  const auto given = std::make_shared<options>();
  auto* const words = app.add_subcommand(
    "plan", "Picks the aggregation strategy for a topology, sizes servers, and predicts pipelines");
  words
    ->add_option("--topology", given->topology,
                 fmt::format("{}, machine (this one, measured now), or a file "
                             "(docs/reference/topology.md)",
                             fmt::join(kernels::preset_names(), ", ")))
    ->check(path_fault)
    ->type_name("NAME|FILE");
  add_parsed(*words, "--bytes", given->bytes, planning::parse_bytes,
             "Size of the gradient, as 160MB or 64KiB; needed without --parts", "SIZE", "Options");
  add_parsed(*words, "--chunk-min", given->planner.chunk_bytes_min, planning::parse_bytes,
             "Smallest chunk that is tried [64KiB]", "SIZE", "Options");
  words->add_option("--svg", given->svg, "Draws topology and timeline of the choice")
    ->check(path_fault)
    ->type_name("FILE");
  add_sizing_words(*words, *given);
  add_pipeline_words(*words, *given);
  words->callback([words, given] { check_together(*words, *given); });
  return {words, [given] { return run(*given); }};
}

} // namespace troupe
