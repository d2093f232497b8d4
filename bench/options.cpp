#include "bench/options.hpp"

#include "CLI/CLI.hpp"
#include "fmt/core.h"

#include <cstdio>

namespace troupe::bench {

std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& problem) {
    fmt::print(stderr, "{}: {} (see {} --help)\n", app.get_name(), problem.what(), app.get_name());
    return 2;
  }
}

void declare(CLI::App& app, common_options& options, const std::vector<std::string>& names) {
  app.add_option("--rounds", options.rounds, "Rounds; in each every contestant runs once")
    ->check(CLI::Range(std::size_t{1}, std::size_t{1000}))
    ->capture_default_str();
  app.add_flag("--full", options.full, "Run long enough for steady figures");
  app.add_flag("--json", options.json, "Print one JSON object a line");
  app.add_option("--only", options.only, "Measure these contestants alone (repeatable)")
    ->check(CLI::IsMember(names));
  app.add_option("--sizes", options.sizes, "Bytes of a payload, such as 4,4096")
    ->delimiter(',')
    ->check(CLI::Range(std::size_t{4}, std::size_t{1} << 28));
  app.add_option("--congestion", options.congestion,
                 "TCP congestion control of everything, in a network namespace of its own");
}

} // namespace troupe::bench
