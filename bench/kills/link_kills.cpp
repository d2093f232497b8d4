// Kills processes with SIGKILL and checks links and their users: how soon the other end is told,
// whether each of its requests ends once, and what leaks. Also checks that each push to a shard is
// applied exactly once. Exits with 1 if anything was lost, doubled, stalled or leaked.
#include "bench/kills/kill_pushes.hpp"
#include "bench/kills/kill_rounds.hpp"
#include "bench/options.hpp"
#include "bench/report.hpp"
#include "bench/temporary_directory.hpp"

#include "CLI/CLI.hpp"
#include "fmt/core.h"

#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <random>
#include <system_error>

using namespace troupe::bench;
namespace fs = std::filesystem;

namespace {

struct options {
  std::size_t rounds = 63;
  std::uint64_t seed = std::random_device{}();
  bool json = false;
  std::vector<std::string> only;
};

/// Gives the program and its children a folder, and finds files that they leave behind.
class workplace {
public:
  workplace() : shared_before_(names_in("/dev/shm")) {
    fs::create_directory(certificates());
    fs::create_directory(here_.path() / "run");
    setenv("TMPDIR", (here_.path() / "run").c_str(), 1);
    fs::current_path(here_.path() / "run");
  }
  ~workplace() {
    std::error_code none;
    fs::current_path("/", none);
  }
  workplace(const workplace&) = delete;
  workplace& operator=(const workplace&) = delete;

  fs::path certificates() const { return here_.path() / "certificates"; }

  /// Returns the files left. Waits, as other programs may have files in /dev/shm for a moment.
  std::vector<std::string> files_left() const {
    std::vector<std::string> found;
    wait_until([&] {
      found.clear();
      for (const auto& name : names_in("/dev/shm"))
        if (!shared_before_.contains(name))
          found.push_back("/dev/shm/" + name);
      for (const auto& name : names_in(here_.path() / "run"))
        found.push_back(name);
      return found.empty();
    });
    return found;
  }

private:
  temporary_directory here_{"link_kills"};
  std::set<std::string> shared_before_;
};

// -- problems -----------------------------------------------------------------------------------

void judge(const std::string& whose, const endings& all, std::vector<std::string>& problems) {
  const auto expect_none = [&](std::uint64_t count, const char* what) {
    if (count > 0)
      problems.push_back(fmt::format("{}: {} {}", whose, count, what));
  };
  expect_none(all.stalled, "never ended");
  expect_none(all.doubled, "ended twice");
  expect_none(all.corrupt, "with other values than were sent");
  expect_none(all.astray, "told of what must not be");
  if (all.sent != all.answered + all.failed + all.stalled)
    problems.push_back(whose + ": the sum of how requests ended is not what was sent");
}

void judge(kill_figures& found) {
  judge("on links", found.links, found.problems);
  judge("of remotes", found.requests, found.problems);
  if (found.link_us.size() != found.rounds)
    found.problems.push_back("not every link was told to be lost");
  if (found.side == killed_side::server && found.last_us.size() != found.rounds)
    found.problems.push_back("not every remote failed its requests");
}

void judge(push_figures& found) {
  if (found.lost + found.doubled > 0)
    found.problems.push_back(fmt::format("{} pushes lost, {} doubled", found.lost, found.doubled));
}

int tell(const std::string& where, const std::vector<std::string>& problems) {
  for (const auto& each : problems)
    fmt::print(stderr, "WRONG: {}: {}\n", where, each);
  return problems.empty() ? 0 : 1;
}

// -- tables -------------------------------------------------------------------------------------

std::string change(double before, double after) {
  return fmt::format("{:.0f} > {:.0f}", before, after);
}

std::string change(std::size_t before, std::size_t after) {
  return fmt::format("{} > {}", before, after);
}

std::string delays(const std::vector<double>& us) {
  if (us.empty())
    return "-";
  const auto found = percentiles_of(us);
  return fmt::format("{:.0f} / {:.0f} / {:.0f}", found.p50, found.p99, spread_of(us).max);
}

row row_of(const kill_figures& x, std::uint64_t seed) {
  const auto told = percentiles_of(x.link_us), last = percentiles_of(x.last_us);
  row made;
  made.text("contestant", "link", x.kind)
    .text("killed", "killed", name_of(x.side))
    .hidden("seed", seed)
    .number("rounds", "rounds", static_cast<double>(x.rounds), 0)
    .text("us", "link lost us", delays(x.link_us))
    .text("last_us", "requests failed us", delays(x.last_us))
    .hidden("us_p50", told.p50)
    .hidden("us_p99", told.p99)
    .hidden("us_max", spread_of(x.link_us).max)
    .hidden("last_us_p50", last.p50)
    .hidden("last_us_p99", last.p99)
    .hidden("last_us_max", spread_of(x.last_us).max);
  auto all = x.links;
  all += x.requests;
  made.number("sent", "requests", static_cast<double>(all.sent), 0)
    .number("answered", "answered", static_cast<double>(all.answered), 0)
    .number("failed", "failed", static_cast<double>(all.failed), 0)
    .number("stuck", "stuck", static_cast<double>(all.stalled), 0)
    .number("doubled", "doubled", static_cast<double>(all.doubled), 0)
    .number("corrupt", "corrupt", static_cast<double>(all.corrupt), 0)
    .text("descriptors", "descriptors", change(x.before.descriptors, x.after.descriptors))
    .text("threads", "threads", change(x.before.threads, x.after.threads))
    .text("actors", "actors", change(x.before.actors, x.after.actors))
    .text("arenas", "arenas", change(x.before.arenas, x.after.arenas))
    .hidden("resident_mb_before", x.before.resident_mb)
    .hidden("resident_mb", x.after.resident_mb)
    .text("resident", "RSS MB", change(x.before.resident_mb, x.after.resident_mb))
    .text("shared", "of it shared", change(x.before.shared_mb, x.after.shared_mb));
  return made;
}

row row_of(const push_figures& x, std::uint64_t seed) {
  row made;
  made.text("contestant", "link", x.kind)
    .hidden("seed", seed)
    .number("kills", "clients killed", static_cast<double>(x.kills), 0)
    .number("client_cuts", "cut by clients", static_cast<double>(x.client_cuts), 0)
    .number("server_cuts", "cut by servers", static_cast<double>(x.server_cuts), 0)
    .number("pushes", "batches", static_cast<double>(x.pushes), 0)
    .number("messages_s", "batches/s", static_cast<double>(x.pushes) / x.seconds, 0)
    .number("repeated", "pushes that had been applied", static_cast<double>(x.repeated), 0)
    .number("lost", "lost", static_cast<double>(x.lost), 0)
    .number("doubled", "doubled", static_cast<double>(x.doubled), 0);
  return made;
}

// -----------------------------------------------------------------------------------------------

int measure(const options& chosen) {
  const workplace here;
  write_certificates(here.certificates());
  const kill_plan plan{chosen.rounds, chosen.seed, here.certificates()};
  const auto wanted = [&](const link_kind& kind) {
    return chosen.only.empty() || std::ranges::find(chosen.only, kind.name) != chosen.only.end();
  };
  int status = 0;
  std::vector<row> rows, push_rows;
  for (const auto& kind : link_kinds()) {
    if (!wanted(kind))
      continue;
    for (auto& found : kill_rounds(kind, plan)) {
      judge(found);
      status |= tell(fmt::format("{}, {} killed", kind.name, name_of(found.side)), found.problems);
      rows.push_back(row_of(found, chosen.seed));
    }
    auto pushed = break_pushes(kind, plan);
    judge(pushed);
    status |= tell(kind.name + ", pushes", pushed.problems);
    push_rows.push_back(row_of(pushed, chosen.seed));
  }
  print(
    fmt::format("One side killed {} times while requests of 4 B to 4 MB flow both ways; what the "
                "other is told; seed {}",
                chosen.rounds, chosen.seed),
    rows, chosen.json);
  print("Two clients push to two shards while clients are killed and connections cut", push_rows,
        chosen.json);
  const auto left = here.files_left();
  for (const auto& name : left)
    fmt::print(stderr, "WRONG: a file is left: {}\n", name);
  if (!chosen.json)
    fmt::print("\nfiles left: {}\n", left.size());
  return left.empty() ? status : 1;
}

} // namespace

int main(int argc, char** argv) {
  try {
    if (const auto part = part_of(argc, argv); !part.is_null()) {
      if (part.at("part") == "killed")
        play_killed_part(part);
      return play_push_part(part);
    }
    std::vector<std::string> names;
    std::string about = "Kills processes at random moments and looks at those that stay: when they "
                        "are told,\nwhether each request ends once, what leaks.\n\nLinks:\n";
    for (const auto& kind : link_kinds()) {
      names.push_back(kind.name);
      about += fmt::format("  {:<8}{}\n", kind.name, kind.about);
    }
    options chosen;
    CLI::App app{about, "link_kills"};
    app.add_option("--rounds", chosen.rounds, "Kills for each kind of link and side")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
    app.add_option("--seed", chosen.seed, "Of the moments, sizes and choices; drawn without it");
    app.add_option("--only", chosen.only, "Try these kinds of links alone (repeatable)")
      ->check(CLI::IsMember(names));
    app.add_flag("--json", chosen.json, "Print one JSON object a line");
    if (const auto done = parse(app, argc, argv))
      return *done;
    return measure(chosen);
  } catch (const std::exception& problem) {
    fmt::print(stderr, "link_kills: {}\n", problem.what());
    return 1;
  }
}
