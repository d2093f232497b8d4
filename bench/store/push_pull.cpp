// Measures pushes and pulls from end to end: workers' kvs in some processes, servers with SGD in
// others, next to ZeroMQ doing the same job. All contestants of a case run in turn within each
// round. Also measures a small pull behind a long queue and, with --freeze, a worker whose server
// hangs.
#include "bench/links/network_namespace.hpp"
#include "bench/machine_load.hpp"
#include "bench/options.hpp"
#include "bench/report.hpp"
#include "bench/store/store_processes.hpp"
#include "bench/store/transport_kinds.hpp"
#include "bench/temporary_directory.hpp"

#include "CLI/CLI.hpp"
#include "fmt/core.h"

#include <signal.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

using namespace troupe::bench;

namespace {

/// Below this size a rate of bytes says little.
constexpr std::size_t small_bytes = 4096;
/// Open requests of all workers together, in bytes; more would fill the memory.
constexpr std::size_t under_way_bytes_max = std::size_t{1} << 30;

struct options : common_options {
  std::vector<std::size_t> windows{1, 8, 64};
  std::uint32_t workers = 0, servers = 0; ///< 0: one of each, then two of each.
  std::size_t sparse_rows = 0;
  std::size_t queued_megabytes = 1024;
  int freeze_seconds = 0;
  std::size_t memory_cap_megabytes = 256;
  bool no_queue = false;
  bool any_load = false;
};

std::vector<store_contestant> all_contestants(const std::filesystem::path& certificates) {
  auto all = troupe_stores(certificates);
#ifdef TROUPE_BENCH_ZEROMQ
  std::ranges::move(zeromq_stores(), std::back_inserter(all));
#endif
  return all;
}

using contest = std::vector<std::pair<const store_contestant*, std::unique_ptr<store_processes>>>;

/// Starts the processes of all contestants of a case.
contest begin(const options& chosen, const std::vector<store_contestant>& all,
              const store_load& what) {
  contest made;
  for (const auto& who : all) {
    if (!chosen.wants(who.name) || what.servers > who.servers_max)
      continue;
    try {
      made.emplace_back(&who, std::make_unique<store_processes>(who, what));
    } catch (const std::exception& problem) {
      fmt::print(stderr, "left out: {}: {}\n", who.name, problem.what());
    }
  }
  return made;
}

// -- rates --------------------------------------------------------------------------------------

struct figures {
  std::vector<double> rates, cpu, trips; ///< Operations/s, CPU seconds of each, microseconds.
};

const char* name_of(operation what) {
  return what == operation::push ? "push" : what == operation::pull ? "pull" : "push+pull";
}

std::vector<double> scaled(std::vector<double> values, double factor) {
  for (double& x : values)
    x *= factor;
  return values;
}

row row_of(const store_contestant& who, const store_processes& processes, const store_load& what,
           operation kind, const figures& found, std::size_t rounds) {
  // Both ways count: pushed and pulled bytes.
  const auto bytes = static_cast<double>(what.bytes * (kind == operation::push_pull ? 2 : 1));
  row made;
  made.text("operation", "operation", name_of(kind))
    .text("contestant", "contestant", who.name)
    .hidden("bytes", what.bytes)
    .hidden("window", what.window)
    .hidden("workers", what.workers)
    .hidden("servers", what.servers)
    .hidden("rounds", rounds)
    .range("operations_s", "operations/s", spread_of(found.rates), 0);
  if (what.bytes < small_bytes)
    made.range("cpu_us", "CPU us each", spread_of(scaled(found.cpu, 1e6)), 2);
  else
    made.range("gb_s", "GB/s", spread_of(scaled(found.rates, 1e-9 * bytes)), 3)
      .range("cpu_s_gb", "CPU s/GB", spread_of(scaled(found.cpu, 1e9 / bytes)), 3);
  if (what.sparse_rows > 0)
    made.range("keys_s", "million keys/s",
               spread_of(scaled(found.rates, 1e-6 * bytes / (sparse_width * sizeof(float)))), 2);
  made.times("us", "us p50 / p99 / p99.9", percentiles_of(found.trips), 1)
    .number("clients_mb", "clients MB", processes.clients_megabytes(), 0)
    .number("servers_mb", "servers MB", processes.servers_megabytes(), 0);
  return made;
}

void measure_rates(const options& chosen, const std::vector<store_contestant>& all,
                   const store_load& what) {
  const double load = busy_processors();
  const auto entries = begin(chosen, all, what);
  const std::size_t bytes_a_run = std::size_t{chosen.full ? 512u : 16u} << 20;
  const std::size_t count =
    std::clamp<std::size_t>(bytes_a_run / what.bytes / what.workers, 4, chosen.full ? 10'000 : 400)
    + what.window;
  std::vector<row> rows;
  for (const auto kind : {operation::push, operation::pull, operation::push_pull}) {
    std::vector<figures> found(entries.size());
    for (const auto& [who, processes] : entries)
      processes->run(kind, std::max(count / 8, 2 * what.window)); // Warm-up.
    for (std::size_t round = 0; round < chosen.rounds; ++round)
      for (std::size_t i = 0; i < entries.size(); ++i) {
        const std::size_t turn = (i + round) % entries.size();
        const auto one = entries[turn].second->run(kind, count);
        const auto operations = static_cast<double>(count * what.workers);
        found[turn].rates.push_back(operations / one.seconds);
        found[turn].cpu.push_back(one.cpu_seconds / operations);
        for (const double seconds : one.trips)
          found[turn].trips.push_back(1e6 * seconds);
      }
    for (std::size_t i = 0; i < entries.size(); ++i)
      rows.push_back(
        row_of(*entries[i].first, *entries[i].second, what, kind, found[i], chosen.rounds));
  }
  print_case(fmt::format("{}, window {}, {} x {} processes; {} rounds of {}", size_text(what.bytes),
                         what.window, what.workers, what.servers, chosen.rounds, count),
             std::move(rows), chosen.json, load);
}

// -- a small pull behind a queue ----------------------------------------------------------------

void measure_queue(const options& chosen, const std::vector<store_contestant>& all) {
  const std::size_t pushed_bytes = std::min<std::size_t>(4, chosen.queued_megabytes) << 20;
  const std::size_t pushes = (chosen.queued_megabytes << 20) / pushed_bytes;
  const std::size_t pulls = chosen.full ? 10'000 : 400;
  const double load = busy_processors();
  const auto entries = begin(chosen, all, {pushed_bytes, 1, 1, 1, 0, 4 * pushed_bytes * pushes});
  std::vector<row> rows;
  for (const bool queued : {false, true}) {
    std::vector<std::vector<double>> found(entries.size());
    for (const auto& [who, processes] : entries)
      processes->probe(0, 100); // Warm-up.
    for (std::size_t round = 0; round < chosen.rounds; ++round)
      for (std::size_t i = 0; i < entries.size(); ++i) {
        const std::size_t turn = (i + round) % entries.size();
        for (const double seconds : entries[turn].second->probe(queued ? pushes : 0, pulls))
          found[turn].push_back(1e6 * seconds);
      }
    for (std::size_t i = 0; i < entries.size(); ++i) {
      row made;
      made.text("operation", "operation", queued ? "pull behind pushes" : "pull alone")
        .text("contestant", "contestant", entries[i].first->name)
        .hidden("queued_mb", queued ? chosen.queued_megabytes : 0)
        .hidden("rounds", chosen.rounds)
        .number("pulls", "pulls", static_cast<double>(found[i].size()), 0)
        .times("us", "us p50 / p99 / p99.9", percentiles_of(found[i]), 1)
        .number("clients_mb", "clients MB", entries[i].second->clients_megabytes(), 0);
      rows.push_back(std::move(made));
    }
  }
  print_case(
    fmt::format("4 B pulled while {} MB of pushes are queued, and while none are; {} rounds",
                chosen.queued_megabytes, chosen.rounds),
    std::move(rows), chosen.json, load);
}

// -- a server that hangs ------------------------------------------------------------------------

void freeze(const options& chosen, const store_contestant& who) {
  // 100 MB/s of new gradients.
  constexpr std::size_t pushed_bytes = 4 << 20;
  constexpr std::chrono::milliseconds interval{40};
  const double begin_freeze = 2, end_freeze = begin_freeze + chosen.freeze_seconds;
  store_processes processes{who, {pushed_bytes, 1, 1, 1, 0, chosen.memory_cap_megabytes << 20}};
  std::vector<row> rows;
  bool frozen = false;
  processes.flood(interval, std::chrono::seconds{chosen.freeze_seconds + 6}, [&](const json& line) {
    const double seconds = line.at("seconds");
    row made;
    made.text("contestant", "contestant", who.name)
      .number("seconds", "seconds", seconds, 0)
      .text("server", "server", frozen ? "frozen" : "runs")
      .number("resident_mb", "client MB", line.at("resident_mb"), 0)
      .number("made", "pushes", line.at("made"), 0)
      .number("acknowledged", "acknowledged", line.at("acknowledged"), 0)
      .number("refused", "refused", line.at("refused"), 0);
    rows.push_back(std::move(made));
    const bool wanted = seconds >= begin_freeze && seconds < end_freeze;
    if (wanted != std::exchange(frozen, wanted))
      kill(processes.server(0), wanted ? SIGSTOP : SIGCONT);
  });
  print(fmt::format("{}: 100 MB/s pushed while the server is frozen for {} s, memory cap {} MB",
                    who.name, chosen.freeze_seconds, chosen.memory_cap_megabytes),
        rows, chosen.json);
}

// -----------------------------------------------------------------------------------------------

void measure(const options& chosen, const std::vector<store_contestant>& all) {
  require_quiet_machine(chosen.any_load);
  if (!chosen.congestion.empty())
    enter_network_with(chosen.congestion);
#ifndef TROUPE_BENCH_ZEROMQ
  fmt::print(stderr, "left out: zeromq, zeromq-tuned: built without libzmq3-dev\n");
#endif
  if (chosen.freeze_seconds > 0) {
    for (const auto& who : all)
      if (chosen.wants(who.name))
        freeze(chosen, who);
    return;
  }
  auto sizes = chosen.sizes;
  if (sizes.empty() && chosen.sparse_rows > 0)
    sizes = {100'000 * sparse_width * sizeof(float)};
  if (sizes.empty())
    sizes = {4, 4 << 10, 64 << 10, 1 << 20, 4 << 20, 40 << 20};
  std::vector<std::pair<std::uint32_t, std::uint32_t>> shapes{{1, 1}, {2, 2}};
  if (chosen.workers > 0 || chosen.servers > 0)
    shapes = {{std::max(chosen.workers, 1u), std::max(chosen.servers, 1u)}};
  for (const auto& [workers, servers] : shapes)
    for (const std::size_t bytes : sizes)
      for (const std::size_t window : chosen.windows)
        if (window == 1 || bytes * window * workers <= under_way_bytes_max)
          measure_rates(chosen, all,
                        {bytes / 4 * 4, window, workers, servers, chosen.sparse_rows, 0});
  if (!chosen.no_queue && chosen.sparse_rows == 0)
    measure_queue(chosen, all);
}

} // namespace

int main(int argc, char** argv) {
  try {
    if (const auto part = part_of(argc, argv); !part.is_null())
      return play_store_part(part, all_contestants({}));
    const temporary_directory certificates{"push_pull"};
    write_certificates(certificates.path());
    const auto all = all_contestants(certificates.path());
    std::vector<std::string> names;
    std::string about = "How fast workers push to servers and pull from them.\n\nContestants:\n";
    for (const auto& x : all) {
      names.push_back(x.name);
      about += fmt::format("  {:<14}{}\n", x.name, x.about);
    }
    options chosen;
    CLI::App app{about, "push_pull"};
    declare(app, chosen, names);
    declare_any_load(app, chosen.any_load);
    app.add_option("--windows", chosen.windows, "Operations under way at a time")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
    app.add_option("--workers", chosen.workers, "Processes that push and pull")
      ->check(CLI::Range(1, 8));
    app.add_option("--servers", chosen.servers, "Processes that hold values")
      ->check(CLI::Range(1, 4));
    app
      .add_option("--sparse", chosen.sparse_rows,
                  "A sparse table of so many rows of 16 floats; each operation is on random ones,\n"
                  "100,000 unless --sizes says otherwise")
      ->check(CLI::Range(1000, 100'000'000));
    app.add_option("--queued", chosen.queued_megabytes, "MB of pushes that a small pull is behind")
      ->check(CLI::Range(1, 16 << 10))
      ->capture_default_str();
    app.add_flag("--no-queue", chosen.no_queue, "Leave that out");
    app
      .add_option("--freeze", chosen.freeze_seconds,
                  "Do nothing else: stop the server for so many seconds while a client pushes")
      ->check(CLI::Range(1, 600));
    app
      .add_option("--push-memory", chosen.memory_cap_megabytes,
                  "With --freeze: MB that may wait in the client")
      ->check(CLI::Range(1, 16 << 10))
      ->capture_default_str();
    if (const auto done = parse(app, argc, argv))
      return *done;
    measure(chosen, all);
    return 0;
  } catch (const std::exception& problem) {
    fmt::print(stderr, "push_pull: {}\n", problem.what());
    return 1;
  }
}
