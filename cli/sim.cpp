#include "cli/sim.hpp"

#include "CLI/CLI.hpp"

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <unistd.h>

namespace troupe {

namespace {

/// Replaces this process by troupe_sim; returns only where that fails.
failure become(const std::vector<std::string>& arguments) {
  std::error_code problem;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", problem).parent_path();
  const std::string program = (here / "troupe_sim").string();
  std::vector<char*> words{const_cast<char*>(program.c_str())};
  for (const std::string& each : arguments)
    words.push_back(const_cast<char*>(each.c_str()));
  words.push_back(nullptr);
  ::execv(program.c_str(), words.data());
  return {errc::io_failed, "cannot run " + program + ": " + std::system_category().message(errno)
                             + "; install it beside troupe"};
}

} // namespace

command sim_command(CLI::App& app) {
  auto* const words =
    app.add_subcommand("sim", "Tries replication in simulated clusters that fail");
  words->prefix_command(); // The rest belongs to troupe_sim, --help too.
  words->set_help_flag();
  return {words, [words]() -> result<void> { return become(words->remaining()); }};
}

} // namespace troupe
