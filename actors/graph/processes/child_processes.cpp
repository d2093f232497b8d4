#include "actors/graph/processes/child_processes.hpp"

#include "actors/graph/processes/child_command.hpp"
#include "base/log.hpp"
#include "base/system/descriptor.hpp"
#include "base/system/draw_random.hpp"
#include "base/system/resource_limits.hpp"
#include "base/system/spawn.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <utility>

namespace troupe {

namespace {

/// Bytes at the end of a log in which the last line is looked for: more than a line has.
constexpr std::size_t last_bytes_max = 20 << 10;

/// The status of a child that other code of this process waited for. It is no status of waitpid(),
/// neither an exit nor a signal.
constexpr int taken_status = -1;

/// Returns the status of a child that has ended; nullopt: it runs.
std::optional<int> status_of_end(pid_t pid) {
  int status = 0;
  const auto found = waitpid(pid, &status, WNOHANG);
  if (found < 0 && errno == ECHILD)
    return taken_status;
  return found == pid ? std::optional{status} : std::nullopt;
}

} // namespace

child_processes::child_processes(child_options options)
    : options_(std::move(options)), out_of_memory_kills_(out_of_memory_kills()) {}

child_processes::~child_processes() { kill_all(); }

result<process_started> child_processes::start(process_name who, int inherited) {
  assert(!children_.contains(who));
  if (pipe_.writing_end() < 0)
    return {errc::io_failed, std::string{"cannot make a pipe: "} + std::strerror(EMFILE)};
  const auto path = log_path(options_.run_directory, who);
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  const descriptor log{
    open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644)};
  if (!log)
    return {errc::io_failed, "cannot write " + path.string() + ": " + std::strerror(errno)};
  struct stat about {};
  const off_t log_begin = fstat(log.get(), &about) == 0 ? about.st_size : 0;
  const incarnation_id incarnation{draw_random()};
  auto words = options_.command;
  const child_identity identity{{who.role, who.index, incarnation}, inherited, pipe_.writing_end()};
  for (auto& word : child_arguments(identity))
    words.push_back(std::move(word));
  words.insert(words.end(), {"--run-dir", options_.run_directory.string()});
  // Ctrl-C reaches the whole foreground group, and a service manager may end all processes of a job
  // at once; the launcher alone decides what it means.
  const auto pid =
    spawn(options_.executable, words,
          {.output = log.get(), .kept = {inherited, identity.notices}, .stubborn = true});
  if (!pid)
    return pid.error();
  children_.emplace(who, child{*pid, log_begin});
  return process_started{who, incarnation};
}

std::vector<session_event> child_processes::tick() {
  std::vector<std::pair<process_name, int>> ended;
  for (const auto& [who, what] : children_)
    if (const auto status = status_of_end(what.pid))
      ended.emplace_back(who, *status);
  std::vector<session_event> events;
  for (auto& each : pipe_.read()) // All that ended processes have written, too.
    std::visit([&](auto& line) { events.emplace_back(std::move(line)); }, each);
  for (const auto& [who, status] : ended) {
    const auto found = children_.extract(who);
    events.emplace_back(process_ended{who, end_of(who, found.mapped(), status)});
  }
  return events;
}

process_end child_processes::end_of(process_name who, const child& what, int status) {
  const auto kills = out_of_memory_kills();
  process_end end{.pid = what.pid,
                  .last_words = last_words(who, what),
                  .log = log_path(options_.run_directory, who).string(),
                  .limits = limits_suffix(resource::processor_time),
                  .lacked_memory = kills != std::exchange(out_of_memory_kills_, kills)};
  if (status == taken_status) {
    end.how = process_end::kind::unknown;
  } else if (WIFSIGNALED(status)) {
    end.how = process_end::kind::signalled;
    end.number = WTERMSIG(status);
  } else {
    end.number = WEXITSTATUS(status);
  }
  return end;
}

/// Returns the last line since its start that can be the reason of its end; empty: there is none.
std::string child_processes::last_words(process_name who, const child& what) const {
  const auto path = log_path(options_.run_directory, who);
  // Without O_NONBLOCK, a pipe in the place of the log would wait for a writer.
  const descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat about {};
  if (!file || fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode))
    return {};
  const off_t begin = about.st_size < what.log_begin ? 0 : what.log_begin; // A new file: rotated.
  std::string end(
    std::min<std::size_t>(static_cast<std::size_t>(about.st_size - begin), last_bytes_max), '\0');
  const auto from = about.st_size - static_cast<off_t>(end.size());
  end.resize(static_cast<std::size_t>(
    std::max<ssize_t>(pread(file.get(), end.data(), end.size(), from), 0)));
  std::string last;
  std::istringstream lines{end};
  for (std::string line; std::getline(lines, line);)
    if (!line.empty() && level_of_line(line).value_or(log_level::error) >= log_level::error)
      last = text_of_line(line);
  return with_limits(last);
}

void child_processes::kill(process_name who) {
  if (const auto pid = pid_of(who))
    ::kill(*pid, SIGKILL);
}

void child_processes::kill_all() {
  for (const auto& [unused, what] : children_)
    ::kill(what.pid, SIGKILL);
  for (const auto& [unused, what] : children_)
    waitpid(what.pid, nullptr, 0);
  children_.clear();
}

std::optional<pid_t> child_processes::pid_of(process_name who) const {
  const auto found = children_.find(who);
  return found == children_.end() ? std::nullopt : std::optional{found->second.pid};
}

} // namespace troupe
