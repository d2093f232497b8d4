#include "actors/graph/program.hpp"

#include "actors/graph/ranks/rank_backend.hpp"
#include "actors/graph/ranks/rank_process.hpp"
#include "actors/graph/launch/end_watch.hpp"
#include "actors/graph/launch/import.hpp"
#include "actors/graph/launch/launcher.hpp"
#include "actors/graph/launch/local_backend.hpp"
#include "actors/graph/launch/process_backend.hpp"
#include "actors/graph/launch/role_process.hpp"
#include "actors/graph/launch/run_setup.hpp"
#include "actors/graph/options/field_kinds.hpp"
#include "actors/graph/options/help_text.hpp"
#include "actors/graph/plan.hpp"
#include "actors/graph/replay/replay_run.hpp"
#include "actors/graph/run_failed.hpp"
#include "base/command_line.hpp"
#include "base/crc32c.hpp"
#include "base/exception_text.hpp"
#include "base/log.hpp"
#include "base/quote.hpp"
#include "base/system/classic_locale.hpp"
#include "base/system/descriptor.hpp"
#include "base/system/exit_guard.hpp"
#include "base/system/first_process.hpp"
#include "base/system/resource_limits.hpp"
#include "base/system/standard_output.hpp"
#include "base/system/stop_signals.hpp"
#include "base/user_code.hpp"

#include "CLI/CLI.hpp"
#include "fmt/format.h"

#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>

namespace troupe {

namespace {

int complain(const std::string& name, const std::string& what, int status) {
  const auto line = fmt::format("{}: {}\n", name, printable(with_limits(what)));
  std::fputs(line.c_str(), stderr); // This must not throw on a full disk.
  return status;
}

/// Calls the user's function, in which std::invalid_argument means an option's value.
graph described_by(const std::function<graph(const run_options&)>& describe,
                   const run_options& options) {
  const user_call here{{"describe()"}};
  try {
    return describe(options);
  } catch (const std::invalid_argument&) {
    throw run_failed{exception_text(), bad_command_line};
  }
}

/// Each member may open files: a link takes up to four, its socket and the mappings of both sides.
/// A store has dozens.
void allow_files(const run_options& options) {
  const auto members = options.mode() != run_mode::processes
                         ? 0
                         : options.servers.count + options.workers.count + options.workers.backups
                             + options.actors + options.standbys;
  required(allow_open_files(48 + 4 * std::uint64_t{members}));
}

/// Writes the text of --print-graph, --dot or --dry-run.
int show_only(const plan& what) {
  if (what.options.dry_run) {
    required(check_tensor_files(what.options, what.job), bad_command_line);
    require_outputs(what);
    required(check_run(what));
  }
  fmt::print("{}", what.options.dot ? to_dot(what) : to_text(what));
  if (what.options.dry_run)
    fmt::print("options, files and addresses are fine; nothing was started\n");
  return EXIT_SUCCESS;
}

/// Returns a function that writes the line about the end of this process. `child`: the value of
/// --child; empty for a launcher. A process of the job opens its log again, as code of the program
/// may have closed it, and this thread may hold the lock of the log itself.
last_line_writer last_line_of(const std::string& name, const std::string& child,
                              const run_options& options) {
  const auto who = parse_child(child);
  if (!who)
    return [name](const std::string& why) { complain(name, why, EXIT_FAILURE); };
  const auto as = process_of(who->self);
  return [as, file = log_path(options.run_directory, as)](const std::string& why) {
    const auto line = log_line(log_level::fatal, to_string(as), with_limits(why));
    const descriptor log{open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK)};
    [[maybe_unused]] const auto written =
      write(log ? log.get() : STDERR_FILENO, line.data(), line.size());
  };
}

backend_maker backend_of(const plan& what) {
  if (what.rules().has_ranks)
    return make_rank_backend;
  switch (what.options.mode()) {
  case run_mode::threads: return make_thread_backend;
  case run_mode::simulation: return make_simulated_backend;
  case run_mode::processes: break;
  }
  return make_process_backend;
}

/// Launches or replays the job, and returns the exit status. `command`: the words that the process
/// was started with.
int launch(const plan& what, const std::vector<std::string>& command, end_watch& end) {
  allow_files(what.options);
  if (what.options.replay_directory)
    return run_replay(what);
  return run_launcher(what, command, end, backend_of(what));
}

int with_output_written(const std::string& name, int status) {
  const auto written = flush_standard_output();
  return written ? status : complain(name, written.error().text, EXIT_FAILURE);
}

/// Returns the options of an app and of its groups.
std::vector<const CLI::Option*> all_options(const CLI::App& app) {
  auto all = app.get_options();
  for (const auto* group : app.get_subcommands([](const CLI::App*) { return true; }))
    std::ranges::copy(all_options(*group), std::back_inserter(all));
  return all;
}

/// Returns an option as a job keeps it: in UTF-8. A long value becomes its beginning and a
/// checksum.
own_option kept(const std::string& name, const std::string& value) {
  constexpr std::size_t shown_bytes = 200;
  auto text = escape_bytes(value);
  if (text.size() > own_option_bytes_max)
    text =
      fmt::format("{}... ({} bytes, checksum {:08x})", escape_bytes(value.substr(0, shown_bytes)),
                  value.size(), storage::detail::crc32c(std::as_bytes(std::span{value})));
  return {escape_bytes(name.substr(0, shown_bytes)), std::move(text)};
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

/// Returns whether this function is in the program's own file, not in a shared library, which may
/// be loaded at any time.
bool is_in_the_program() {
  const auto look = [](dl_phdr_info* program, std::size_t, void* is_found) {
    const auto own = reinterpret_cast<ElfW(Addr)>(&is_in_the_program) - program->dlpi_addr;
    *static_cast<bool*>(is_found) = std::any_of(
      program->dlpi_phdr, program->dlpi_phdr + program->dlpi_phnum, [own](const auto& part) {
        return part.p_type == PT_LOAD && own - part.p_vaddr < part.p_memsz;
      });
    return 1; // It comes first; the rest are libraries.
  };
  bool found = false;
  dl_iterate_phdr(look, &found);
  return found;
}

/// Runs before main() and before the constructors of the user's static objects, so that no code of
/// theirs starts programs that inherit blocked signals, or loads data in process 1.
[[gnu::constructor(101)]] void prepare_process(int argc, char** argv, char**) {
  const bool is_child = std::find(argv, argv + argc, std::string_view{"--child"}) != argv + argc;
  if (is_child && blocks_stop_signals())
    survive_stop_signals();
  else if (getpid() == 1 && is_in_the_program())
    play_process_1(argc, argv);
}

} // namespace

program::program(std::string name, std::string description)
    : program(std::move(name), std::move(description), {}) {}

program::program(std::string name, std::string description, const run_options& defaults)
    : name_(std::move(name)), options_(defaults),
      command_line_(std::make_unique<CLI::App>(std::move(description), name_)) {
  const classic_locale plain_numbers;
  format_help(*command_line_);
  declare_version(*command_line_);
  declare(*command_line_, options_);
  command_line_->add_option("--child", child_)->group(""); // Internal, so not in the help.
  for (const auto* option : all_options(*command_line_))
    common_options_.insert(option->get_name());
}

program::~program() = default;

void program::add(field row) {
  if (!row.option.starts_with('-'))
    return mistakes_.push_back(
      fmt::format("the program declares the option {}, which does not begin with --", row.option));
  if (auto fits = row.kind.check ? row.kind.check(options_) : result<void>{}; !fits)
    mistakes_.push_back(
      fmt::format("the program's default of {} {}", row.option, fits.error().text));
  const classic_locale plain_numbers;
  try {
    // CLI11 itself compares only the options of one group.
    for (const auto& one : CLI::detail::split(row.option, ','))
      if (command_line_->get_option_no_throw(one))
        throw CLI::OptionAlreadyAdded{one};
    own_values_[declare(*command_line_, row, options_)->get_name()] =
      [print = row.kind.print, this] { return print(options_); };
  } catch (const CLI::OptionAlreadyAdded&) {
    mistakes_.push_back(
      fmt::format("the program declares {}, which is an option already", row.option));
  } catch (const CLI::Error& problem) {
    mistakes_.push_back(fmt::format("the program declares {}: {}", row.option, problem.what()));
  }
}

std::vector<own_option> program::own_options() const {
  std::vector<own_option> own;
  for (const auto* option : all_options(*command_line_)) {
    const auto name = option->get_name();
    if (common_options_.contains(name))
      continue;
    const auto value = own_values_.find(name);
    own.push_back(kept(name, value != own_values_.end() ? value->second()
                             : option->count() == 0
                               ? option->get_default_str()
                               : fmt::format("{}", fmt::join(option->results(), ","))));
  }
  return own;
}

/// Returns the place of a variable of the program.
static auto at(auto& value) {
  auto get = [&value](auto&) -> auto& { return value; };
  return place{std::move(get), holder::run};
}

void program::option(const std::string& name, std::string& value, const std::string& help) {
  add({name,
       text(
         at(value), [](const std::string& word) { return result{word}; }, as_it_is),
       help});
}

void program::option(const std::string& name, std::uint64_t& value, const std::string& help,
                     std::uint64_t least, std::uint64_t greatest) {
  add({name, number(at(value), least, greatest), help});
}

void program::option(const std::string& name, double& value, const std::string& help, double least,
                     double greatest) {
  add({name, number(at(value), least, greatest), help});
}

void program::option(const std::string& name, std::string& value, const std::string& help,
                     const std::vector<std::string>& choices) {
  const auto choose = [choices](const std::string& word) -> result<std::string> {
    if (std::ranges::find(choices, word) != choices.end())
      return word;
    return {errc::invalid_argument,
            fmt::format("{} is none of {}", quote(word), fmt::join(choices, ", "))};
  };
  add({name, text(at(value), choose, as_it_is),
       fmt::format("{}: {}", help, fmt::join(choices, ", "))});
}

void program::flag(const std::string& name, bool& value, const std::string& help) {
  add({name, troupe::flag(at(value), true), help});
}

void program::function(const std::string& name, const function_spec& what) {
  if (!functions_.emplace(name, what).second)
    mistakes_.push_back(fmt::format("the program has two server functions '{}'", name));
}

CLI::App& program::command_line() { return *command_line_; }

int program::run(int argc, char** argv, const std::function<graph(const run_options&)>& describe) {
  fill_standard_descriptors();
  if (const auto enough = prepare_stacks(); !enough)
    return complain(name_, enough.error().text, EXIT_FAILURE);
  pthread_setname_np(pthread_self(), name_.substr(0, 15).c_str()); // Its file is named "exe".
  if (!mistakes_.empty())
    return complain(name_, mistakes_.front(), bad_command_line);
  std::optional<classic_locale> plain_numbers{std::in_place};
  try {
    // For the job's processes the launcher appends options, which must be parsed as options.
    if (std::find(argv, argv + argc, std::string_view{"--"}) != argv + argc)
      throw CLI::ArgumentMismatch{"-- is not used: there are options only"};
    const std::span words{argv, static_cast<std::size_t>(argc)};
    require_values(words);
    refuse_empty_words(*command_line_, words);
    command_line_->parse(argc, argv);
  } catch (const CLI::Success& help) {
    command_line_->exit(help);
    return with_output_written(name_, EXIT_SUCCESS);
  } catch (const CLI::ParseError& problem) {
    return complain(name_,
                    fmt::format("{} (see {} --help)", problem_text(*command_line_, problem), name_),
                    bad_command_line);
  } catch (...) { // From a function that the program gave to its command line.
    return complain(name_, exception_text(), EXIT_FAILURE);
  }
  options_.own = own_options();
  plain_numbers.reset();
  if (options_.own.size() > own_options_max)
    return complain(name_,
                    fmt::format("the program declares {} options of its own, and a job keeps at "
                                "most {}: put several values into one option",
                                options_.own.size(), own_options_max),
                    bad_command_line);
  const auto write_last_line = last_line_of(name_, child_, options_);
  end_where_resources_lack(write_last_line, EXIT_FAILURE);
  if (child_.empty()) // The launcher adds the limits to the last words of other processes.
    name_causes_of_abort();
  // Other processes keep the status: the launcher shows it, and takes no status for a good end.
  const exit_guard unfinished{child_.empty() ? EXIT_FAILURE : EXIT_SUCCESS, write_last_line};
  if (auto valid = validate_without_graph(options_); !valid)
    return complain(name_, valid.error().text, bad_command_line);
  const auto lowered = [&] {
    auto what = lower(name_, described_by(describe, options_), options_, functions_);
    return required(std::move(what), bad_command_line);
  };
  try {
    if (!child_.empty()) {
      allow_files(options_);
      const auto who = parse_child(child_);
      return who ? run_child(*who, options_, functions_, lowered, run_rank)
                 : complain(name_, who.error().text, bad_command_line);
    }
    end_watch end{name_};
    auto what = lowered();
    if (options_.dry_run || !(options_.print_graph || options_.dot))
      required(read_files(what), bad_command_line);
    if (options_.print_graph || options_.dot || options_.dry_run)
      return with_output_written(name_, show_only(what));
    return with_output_written(name_, launch(what, {argv, argv + argc}, end));
  } catch (const run_failed& why) {
    return complain(name_, why.what(), why.status);
  } catch (...) {
    return complain(name_, exception_text(), EXIT_FAILURE);
  }
}

} // namespace troupe
