#include "actors/graph/program.hpp"

#include "actors/graph/allreduce/allreduce_launcher.hpp"
#include "actors/graph/allreduce/rank_process.hpp"
#include "actors/graph/launch/launcher.hpp"
#include "actors/graph/launch/role_process.hpp"
#include "actors/graph/options/help_text.hpp"
#include "actors/graph/replay/replay_run.hpp"
#include "actors/graph/run_failed.hpp"
#include "base/command_line.hpp"
#include "base/exception_text.hpp"
#include "base/log.hpp"
#include "base/quote.hpp"
#include "base/system/resource_limits.hpp"
#include "base/system/standard_output.hpp"

#include "CLI/CLI.hpp"
#include "fmt/core.h"

#include <fcntl.h>
#include <signal.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

namespace troupe {

namespace {

int complain(const std::string& name, const std::string& what, int status) {
  const auto line = fmt::format("{}: {}\n", name, printable(with_limits(what)));
  std::fputs(line.c_str(), stderr); // This must not throw on a full disk.
  return status;
}

/// Returns the name of the process with this value of --child; empty for a launcher.
std::string member_of(const std::string& child) {
  const auto who = parse_child(child);
  return who ? to_string(process_of(who->self)) : "";
}

/// Calls the user's function, in which std::invalid_argument means an option's value.
graph described_by(const std::function<graph(const run_options&)>& describe,
                   const run_options& options) {
  try {
    return describe(options);
  } catch (const std::invalid_argument& wrong) {
    throw run_failed{wrong.what(), bad_command_line};
  }
}

int with_output_written(const std::string& name, int status) {
  const auto written = flush_standard_output();
  return written ? status : complain(name, written.error().text, EXIT_FAILURE);
}

// Opens the standard streams that are closed. Otherwise the first files and sockets would become
// these streams, and output would go into them.
void fill_standard_descriptors() {
  int opened = 0;
  do
    opened = open("/dev/null", O_RDWR);
  while (opened >= 0 && opened <= STDERR_FILENO);
  if (opened >= 0)
    close(opened);
}

// Adds handlers to process 1 of a container, which ignores signals without one. Otherwise it could
// not be stopped while it reads its data.
void let_signals_end_process_1() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP})
    if (getpid() == 1 && signal(number, [](int which) { _exit(128 + which); }) == SIG_IGN)
      signal(number, SIG_IGN);
}

} // namespace

program::program(std::string name, std::string description)
    : name_(std::move(name)),
      command_line_(std::make_unique<CLI::App>(std::move(description), name_)) {
  format_help(*command_line_);
  declare(*command_line_, options_);
  command_line_->add_option("--child", child_)->group(""); // Internal, so not in the help.
}

program::~program() = default;

void program::option(const std::string& name, std::string& value, const std::string& help) {
  command_line_->add_option(name, value, help)->capture_default_str();
}

void program::flag(const std::string& name, bool& value, const std::string& help) {
  command_line_->add_flag(name, value, help);
}

CLI::App& program::command_line() { return *command_line_; }

int program::run(int argc, char** argv, const std::function<graph(const run_options&)>& describe) {
  fill_standard_descriptors();
  let_signals_end_process_1();
  if (const auto enough = prepare_stacks(); !enough)
    return complain(name_, enough.error().text, EXIT_FAILURE);
  pthread_setname_np(pthread_self(), name_.substr(0, 15).c_str()); // Its file is named "exe".
  try {
    // For the job's processes the launcher appends options, which must be parsed as options.
    if (std::find(argv, argv + argc, std::string_view{"--"}) != argv + argc)
      throw CLI::ArgumentMismatch{"-- is not used: there are options only"};
    command_line_->parse(argc, argv);
  } catch (const CLI::Success& help) {
    command_line_->exit(help);
    return with_output_written(name_, EXIT_SUCCESS);
  } catch (const CLI::ParseError& problem) {
    return complain(name_,
                    fmt::format("{} (see {} --help)", problem_text(*command_line_, problem), name_),
                    bad_command_line);
  }
  end_where_resources_lack(
    [name = name_, member = member_of(child_)](const std::string& why) {
      if (member.empty())
        complain(name, why, EXIT_FAILURE);
      else // Not through the log itself, whose lock this thread may hold.
        fmt::print(stderr, "{}", log_line(log_level::fatal, member, with_limits(why)));
    },
    EXIT_FAILURE);
  if (auto valid = validate(options_); !valid)
    return complain(name_, valid.error().text, bad_command_line);
  const auto build = [&] {
    auto described = described_by(describe, options_);
    if (auto valid = described.validate(); !valid)
      throw std::runtime_error{valid.error().text};
    return described;
  };
  // A link takes up to four files: its socket and the mappings of both sides. A store has dozens.
  const auto members =
    options_.mode() != run_mode::processes
      ? 0
      : options_.servers + options_.workers + options_.backup_workers + options_.standbys;
  if (auto allowed = allow_open_files(48 + 4 * std::uint64_t{members}); !allowed)
    return complain(name_, allowed.error().text, EXIT_FAILURE);
  try {
    if (!child_.empty()) {
      const auto who = parse_child(child_);
      return who ? run_child(*who, options_, build, options_.allreduce ? run_rank : rank_runner{})
                 : complain(name_, who.error().text, bad_command_line);
    }
    const auto described = build();
    const int status = options_.replay_directory ? run_replay(name_, options_, described)
                       : options_.allreduce
                         ? run_allreduce_launcher(name_, options_, described, {argv, argv + argc})
                         : run_launcher(name_, options_, described, {argv, argv + argc});
    return with_output_written(name_, status);
  } catch (const run_failed& why) {
    return complain(name_, why.what(), why.status);
  } catch (...) {
    return complain(name_, exception_text(), EXIT_FAILURE);
  }
}

} // namespace troupe
