#include "cli/commands.hpp"

#include "actors/graph/options/help_text.hpp"
#include "base/command_line.hpp"
#include "base/exception_text.hpp"
#include "base/quote.hpp"
#include "base/system/standard_output.hpp"
#include "cli/certs.hpp"
#include "cli/chaos/chaos_command.hpp"
#include "cli/plan/plan_command.hpp"
#include "cli/record.hpp"
#include "cli/resize.hpp"
#include "cli/scrub.hpp"
#include "cli/sim.hpp"

#include "CLI/CLI.hpp"
#include "fmt/core.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

namespace troupe {

int run_commands(int argc, char** argv) {
  CLI::App app{"Tools for jobs of Troupe.", "troupe"};
  format_help(app);
  declare_version(app);
  app.require_subcommand(1);
  const std::vector<command> commands{certs_command(app),  add_command(app),   drain_command(app),
                                      record_command(app), scrub_command(app), sim_command(app),
                                      chaos_command(app),  plan_command(app)};
  try {
    const auto is_called = [&](const auto& each) { return each.words->get_name() == argv[1]; };
    if (argc > 1 && argv[1][0] != '-' && std::ranges::none_of(commands, is_called)) {
      std::vector<std::string> names;
      for (const auto& each : commands)
        names.push_back(each.words->get_name());
      throw CLI::ArgumentMismatch{"no command " + quote(argv[1]) + proposal(argv[1], names)};
    }
    require_values({argv, static_cast<std::size_t>(argc)});
    app.parse(argc, argv);
    for (const auto& each : commands) {
      if (!each.words->parsed())
        continue;
      if (const auto done = each.run(); !done) {
        fmt::print(stderr, "troupe {}: {}\n", each.words->get_name(), printable(done.error().text));
        return EXIT_FAILURE;
      }
    }
    if (const auto written = flush_standard_output(); !written) {
      fmt::print(stderr, "troupe: {}\n", written.error().text);
      return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& problem) {
    const auto chosen = app.get_subcommands();
    const auto words = chosen.empty() ? "troupe" : "troupe " + chosen.front()->get_name();
    fmt::print(stderr, "{0}: {1} (see {0} --help)\n", words,
               printable(problem_text(chosen.empty() ? app : *chosen.front(), problem)));
    return 2; // A bad command line is 2 in every program of Troupe.
  } catch (...) {
    fmt::print(stderr, "troupe: {}\n", printable(exception_text()));
    return EXIT_FAILURE;
  }
}

} // namespace troupe
