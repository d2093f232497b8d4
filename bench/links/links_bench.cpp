// Measures how fast a link carries payloads from one process to another, next to other ways and to
// a copy in memory. All contestants of a case run in turn within each round, each as two processes
// of its own. The receiver reads every byte, or takes a step of SGD with it.
#include "bench/child.hpp"
#include "bench/links/link_contest.hpp"
#include "bench/links/network_namespace.hpp"
#include "bench/machine_load.hpp"
#include "bench/options.hpp"
#include "bench/report.hpp"

#include "CLI/CLI.hpp"
#include "fmt/core.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <optional>

using namespace troupe::bench;

namespace {

constexpr std::size_t small_bytes = 4096;

struct options : common_options {
  std::vector<std::size_t> windows{1, 4};
  bool any_load = false;
};

std::vector<contestant> all_contestants() {
  std::vector<contestant> all;
  const auto add = [&](std::vector<contestant> more) {
    std::ranges::move(more, std::back_inserter(all));
  };
  add(limit_contestants());
  add(troupe_contestants());
  add(channel_contestants());
  add(memfd_contestants());
  add(raw_contestants());
  add(caf_contestants());
#ifdef TROUPE_BENCH_ZEROMQ
  add(zeromq_contestants());
#endif
  return all;
}

json to_json(const load& what) {
  return {{"bytes", what.bytes}, {"window", what.window}, {"sgd", what.kind == work::sgd}};
}

load load_of(const json& from) {
  return {from.at("bytes"), from.at("window"), from.at("sgd") ? work::sgd : work::sum};
}

// -- the children -------------------------------------------------------------------------------

[[noreturn]] void play_receiver(const contestant& who, const json& part) {
  const auto self = who.make_receiver(load_of(part.at("load")));
  parent_line().send({{"address", self->address()}});
  self->serve();
  _exit(0);
}

[[noreturn]] void play_sender(const contestant& who, const json& part) {
  const auto what = load_of(part.at("load"));
  const pid_t peer = part.at("peer");
  const auto self = who.make_sender(what, part.at("address"));
  parent_line().send({{"ready", true}});
  const auto cpu = [peer] { return cpu_seconds(getpid()) + (peer > 0 ? cpu_seconds(peer) : 0); };
  for (;;) {
    round_trips trips{parent_line().receive().at("count"), what.window};
    const double cpu_before = cpu(), before = seconds_now();
    self->run(trips);
    const double seconds = seconds_now() - before;
    parent_line().send(
      {{"seconds", seconds}, {"cpu", cpu() - cpu_before}, {"trips", trips.seconds()}});
  }
}

int play(const json& part) {
  const auto all = all_contestants();
  const auto who = std::ranges::find(all, part.at("name").get<std::string>(), &contestant::name);
  try {
    if (part.at("receives"))
      play_receiver(*who, part);
    play_sender(*who, part);
  } catch (const std::exception& problem) {
    parent_line().send({{"problem", problem.what()}});
  }
  return 0;
}

// -- one case -----------------------------------------------------------------------------------

/// The processes of a contestant.
class pair_of_processes {
public:
  pair_of_processes(const contestant& who, const load& what) {
    json part{{"name", who.name}, {"load", to_json(what)}, {"receives", true}};
    if (who.make_receiver) {
      receiver_.emplace(part, who.environment);
      part["address"] = answer(*receiver_).at("address");
      part["peer"] = receiver_->pid();
    } else {
      part["address"] = "";
      part["peer"] = 0;
    }
    part["receives"] = false;
    sender_.emplace(part, who.environment);
    answer(*sender_);
  }

  json run(std::size_t count) {
    sender_->line().send({{"count", count}});
    return answer(*sender_);
  }

  double sender_megabytes() const { return peak_megabytes(sender_->pid()); }
  double receiver_megabytes() const { return receiver_ ? peak_megabytes(receiver_->pid()) : 0; }

private:
  static json answer(child& from) {
    auto found = from.line().receive();
    if (const auto problem = found.find("problem"); problem != found.end())
      throw std::runtime_error{problem->get<std::string>()};
    return found;
  }

  std::optional<child> receiver_, sender_;
};

struct figures {
  std::vector<double> rates, cpu, trips; ///< GB/s, seconds a GB, microseconds.
};

void note(figures& of, const json& run, double gigabytes) {
  of.rates.push_back(gigabytes / run.at("seconds").get<double>());
  of.cpu.push_back(run.at("cpu").get<double>() / gigabytes);
  for (const double seconds : run.at("trips"))
    of.trips.push_back(1e6 * seconds);
}

std::vector<double> scaled(std::vector<double> values, double factor) {
  for (double& x : values)
    x *= factor;
  return values;
}

row row_of(const std::string& name, const load& what, const figures& found,
           const pair_of_processes& processes, std::size_t rounds) {
  const auto bytes = static_cast<double>(what.bytes);
  row made;
  made.text("contestant", "contestant", name)
    .hidden("bytes", what.bytes)
    .hidden("window", what.window)
    .hidden("work", what.kind == work::sgd ? "sgd" : "sum")
    .hidden("rounds", rounds);
  // A rate of bytes says little about small messages.
  if (what.bytes < small_bytes)
    made.range("messages_s", "messages/s", spread_of(scaled(found.rates, 1e9 / bytes)), 0)
      .range("cpu_us", "CPU us each", spread_of(scaled(found.cpu, 1e-3 * bytes)), 2);
  else
    made.range("gb_s", "GB/s", spread_of(found.rates), 3)
      .range("cpu_s_gb", "CPU s/GB", spread_of(found.cpu), 3);
  made.times("us", "us p50 / p99 / p99.9", percentiles_of(found.trips), 1)
    .number("sender_mb", "sender MB", processes.sender_megabytes(), 0)
    .number("receiver_mb", "receiver MB", processes.receiver_megabytes(), 0);
  return made;
}

void run_case(const options& chosen, const load& what, const std::vector<contestant>& all) {
  // Enough for about a second of each, and for a distribution of the times of small ones.
  const std::size_t bytes_a_run = std::size_t{chosen.full ? 1024u : 32u} << 20;
  const double load = busy_processors();
  const std::size_t count =
    std::clamp<std::size_t>(bytes_a_run / what.bytes, 6, chosen.full ? 20'000 : 500);
  struct entry {
    const contestant& who;
    std::unique_ptr<pair_of_processes> processes;
    figures found;
  };
  std::vector<entry> entries;
  for (const auto& who : all) {
    if (!chosen.wants(who.name))
      continue;
    try {
      auto processes = std::make_unique<pair_of_processes>(who, what);
      processes->run(std::max<std::size_t>(count / 8, 2 * what.window)); // Warm-up.
      entries.push_back({who, std::move(processes), {}});
    } catch (const std::exception& problem) {
      fmt::print(stderr, "left out: {}: {}\n", who.name, problem.what());
    }
  }
  for (std::size_t round = 0; round < chosen.rounds; ++round)
    for (std::size_t i = 0; i < entries.size(); ++i) {
      auto& x = entries[(i + round) % entries.size()]; // Varies the order of contestants.
      note(x.found, x.processes->run(count), 1e-9 * static_cast<double>(count * what.bytes));
    }
  std::vector<row> rows;
  for (const auto& x : entries)
    rows.push_back(row_of(x.who.name, what, x.found, *x.processes, chosen.rounds));
  print_case(fmt::format("{}, window {}, {}; {} rounds of {}", size_text(what.bytes), what.window,
                         what.kind == work::sgd ? "the receiver takes a step of SGD"
                                                : "the receiver adds up",
                         chosen.rounds, count),
             std::move(rows), chosen.json, load);
}

void measure(const options& chosen, const std::vector<contestant>& all) {
  require_quiet_machine(chosen.any_load);
  if (!chosen.congestion.empty())
    enter_network_with(chosen.congestion);
#ifndef TROUPE_BENCH_ZEROMQ
  fmt::print(stderr, "left out: zeromq, zeromq-tuned: built without libzmq3-dev\n");
#endif
  auto sizes = chosen.sizes;
  if (sizes.empty())
    sizes = {4, 4 << 10, 64 << 10, 1 << 20, 4 << 20, 40 << 20};
  for (const std::size_t bytes : sizes)
    for (const std::size_t window : chosen.windows)
      for (const work kind : {work::sum, work::sgd})
        if (bytes >= small_bytes
            || (window == 1 && kind == work::sum)) // Small ones: round trips alone.
          run_case(chosen, {bytes / 4 * 4, window, kind}, all);
}

} // namespace

int main(int argc, char** argv) {
  try {
    if (const auto part = part_of(argc, argv); !part.is_null())
      return play(part);
    const auto all = all_contestants();
    std::vector<std::string> names;
    std::string about = "How fast payloads go from one process to another.\n\nContestants:\n";
    for (const auto& x : all) {
      names.push_back(x.name);
      about += fmt::format("  {:<14}{}\n", x.name, x.about);
    }
    options chosen;
    CLI::App app{about, "links_bench"};
    declare(app, chosen, names);
    declare_any_load(app, chosen.any_load);
    app.add_option("--windows", chosen.windows, "Payloads under way at a time")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
    if (const auto done = parse(app, argc, argv))
      return *done;
    measure(chosen, all);
    return 0;
  } catch (const std::exception& problem) {
    fmt::print(stderr, "links_bench: {}\n", problem.what());
    return 1;
  }
}
