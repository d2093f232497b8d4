#include "actors/graph/processes/supervisor.hpp"

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
#include <cerrno>
#include <cstring>
#include <iterator>
#include <sstream>
#include <utility>

namespace troupe {

namespace {

/// Bytes at the end of a log in which the last line is looked for: more than a line has.
constexpr std::size_t last_bytes_max = 20 << 10;

/// Describes a death by a signal, and its likely cause where kill() was not called.
std::string text_of_signal(int number, bool planned, std::uint64_t out_of_memory) {
  auto text = "killed by signal " + std::to_string(number);
  if (number == SIGXCPU)
    return text + limits_suffix(resource::processor_time);
  if (number != SIGKILL || planned)
    return text;
  if (const auto limits = limits_suffix(resource::processor_time); !limits.empty())
    return text + " (perhaps out of processor time or memory" + limits + ")";
  return text + (out_of_memory > 0 ? " (out of memory)" : " (perhaps out of memory)");
}

/// The status of a child that other code of this process waited for. It is no status of waitpid(),
/// neither an exit nor a signal.
constexpr int taken_status = -1;

/// Returns the status of a child that has ended; nullopt: it runs, or `pid` is 0.
std::optional<int> status_of_end(pid_t pid) {
  int status = 0;
  if (pid == 0)
    return std::nullopt;
  const auto found = waitpid(pid, &status, WNOHANG);
  if (found < 0 && errno == ECHILD)
    return taken_status;
  return found == pid ? std::optional{status} : std::nullopt;
}

} // namespace

supervisor::supervisor(supervisor_options options)
    : options_(std::move(options)), out_of_memory_kills_(out_of_memory_kills()) {}

supervisor::~supervisor() { kill_all(); }

result<void> supervisor::start(process_name who, int inherited, time_point now) {
  if (pipe_.writing_end() < 0)
    return {errc::io_failed, std::string{"cannot make a pipe: "} + std::strerror(EMFILE)};
  const restart_rules rules{limits_of(who.role), options_.pauses};
  auto& what = processes_.try_emplace(who, rules).first->second;
  if (what.pid != 0)
    return {errc::invalid_argument, to_string(who) + " runs already"};
  what.inherited = inherited;
  return launch(who, what, now);
}

result<void> supervisor::launch(process_name who, process& what, time_point now) {
  const auto path = log_path(options_.run_directory, who);
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  const descriptor log{
    open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644)};
  if (!log)
    return {errc::io_failed, "cannot write " + path.string() + ": " + std::strerror(errno)};
  struct stat about {};
  what.log_begin = fstat(log.get(), &about) == 0 ? about.st_size : 0;
  what.incarnation = {draw_random()};
  auto words = options_.command;
  const child_identity child{
    {who.role, who.index, what.incarnation}, what.inherited, pipe_.writing_end()};
  for (auto& word : child_arguments(child))
    words.push_back(std::move(word));
  words.insert(words.end(), {"--run-dir", options_.run_directory.string()});
  // Ctrl-C reaches the whole foreground group, and a service manager may end all processes of a job
  // at once; the launcher alone decides what it means.
  const auto pid =
    spawn(options_.executable, words,
          {.output = log.get(), .kept = {child.inherited, child.notices}, .stubborn = true});
  if (!pid)
    return pid.error();
  what.pid = *pid;
  what.rules.started(now);
  what.killed_at.reset();
  what.start_at.reset();
  return {};
}

/// Reads all that ended processes have written.
void supervisor::read_notices(time_point now) {
  for (const auto& each : pipe_.read()) {
    const auto from = processes_.find(each.from);
    if (each.kind == notice_kind::waits)
      notices_.take(each, now);
    else if (from != processes_.end() && each.kind == notice_kind::works)
      from->second.rules.worked();
    else if (from != processes_.end())
      from->second.said = each;
  }
}

std::vector<std::string> supervisor::notices(time_point now) {
  read_notices(now);
  auto lines = notices_.lines(now);
  std::ranges::move(std::exchange(told_, {}), std::back_inserter(lines));
  return lines;
}

std::vector<supervisor::loss> supervisor::tick(time_point now) {
  std::vector<loss> losses;
  for (auto& [who, what] : processes_) {
    if (const auto status = status_of_end(what.pid))
      ended(who, what, *status, now, losses);
    if (leaving_.contains(who))
      what.start_at.reset();
    if (what.start_at && *what.start_at <= now && !winding_down_)
      if (auto started = launch(who, what, now); !started)
        start_failed(who, what, started.error(), now);
  }
  return losses;
}

void supervisor::ended(process_name who, process& what, int status, time_point now,
                       std::vector<loss>& losses) {
  read_notices(now); // It can write no more, so none of its notices comes after the next start.
  const auto pid = std::exchange(what.pid, 0);
  const auto said = std::exchange(what.said, std::nullopt);
  const auto was_said = [&](notice_kind kind) { return said && said->kind == kind; };
  notices_.forget(who);
  if (was_said(notice_kind::hopeless)) {
    const auto name = to_string(who);
    failed_ = failure{errc::job_failed,
                      said->text.starts_with(name) ? said->text : name + ": " + said->text};
    return;
  }
  const bool killed_by_9 = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  const auto cause = what.killed_at                     ? end_cause::killed
                     : was_said(notice_kind::deposed)   ? end_cause::deposed
                     : was_said(notice_kind::dismissed) ? end_cause::dismissed
                     : killed_by_9                      ? end_cause::sigkill
                                                        : end_cause::crash;
  const bool clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  const bool may_end = winding_down_ || leaving_.contains(who);
  const auto how = cause == end_cause::deposed ? said->text : text_of_end(what, status);
  const auto reason = reason_of_end(who, what, status);
  if (cause != end_cause::dismissed && !(clean && may_end)) {
    losses.push_back({{who.role, who.index, what.incarnation},
                      pid,
                      what.killed_at.value_or(now),
                      now,
                      how + (clean ? " although the job goes on" : "")
                        + (cause == end_cause::crash ? ": " + reason : ""),
                      cause == end_cause::deposed});
  }
  if (may_end)
    return;
  const auto next = what.rules.ended(cause, now);
  if (!next.too_often)
    what.start_at = now + next.pause;
  else
    end_restarts(who, what,
                 to_string(who) + " ended " + *next.too_often + " (" + how + "): " + reason);
}

/// Returns "exit status 1" or "killed by signal 9", with a likely cause.
std::string supervisor::text_of_end(const process& what, int status) {
  if (status == taken_status)
    return "its exit status is lost, as code of the launcher waits for all children or ignores "
           "SIGCHLD";
  const auto kills = out_of_memory_kills();
  const auto fresh_kills = kills - std::exchange(out_of_memory_kills_, kills);
  return WIFSIGNALED(status)
           ? text_of_signal(WTERMSIG(status), what.killed_at.has_value(), fresh_kills)
           : "exit status " + std::to_string(WEXITSTATUS(status));
}

/// Counts a failed start as an end without work: a resource such as memory may soon be free again.
void supervisor::start_failed(process_name who, process& what, const failure& why, time_point now) {
  what.start_at.reset();
  const auto next = what.rules.start_failed();
  if (!next.too_often)
    what.start_at = now + next.pause;
  else
    end_restarts(who, what, to_string(who) + " cannot be started again: " + why.text);
}

supervision supervisor::limits_of(role as) const {
  const auto found = options_.on_death.find(as);
  return found == options_.on_death.end() ? supervision{} : found->second;
}

/// Leaves the process out or, if that is not wanted or no process of its role is left, gives up.
void supervisor::end_restarts(process_name who, process& what, const std::string& why) {
  what.left_out = true;
  const bool others = std::ranges::any_of(
    processes_, [&](const auto& x) { return x.first.role == who.role && !x.second.left_out; });
  if (what.rules.then() == outcome::leave_out && others)
    told_.push_back(why + "; the job goes on without it");
  else
    failed_ = failure{errc::job_failed, why};
}

/// Returns the last words of a process that ended with this status, or the place to look. A signal
/// other than SIGABRT comes without words.
std::string supervisor::reason_of_end(process_name who, const process& what, int status) const {
  const bool has_words = !WIFSIGNALED(status) || WTERMSIG(status) == SIGABRT;
  const auto words = has_words ? last_words(who, what) : "";
  return words.empty() ? "see " + log_path(options_.run_directory, who).string() : words;
}

/// Returns the last line since its start that can be the reason of its end; empty: there is none.
std::string supervisor::last_words(process_name who, const process& what) const {
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

result<void> supervisor::kill(process_name who, time_point now) {
  const auto found = processes_.find(who);
  if (found == processes_.end() || found->second.pid == 0)
    return {errc::invalid_argument, to_string(who) + " does not run here"};
  found->second.killed_at = now;
  ::kill(found->second.pid, SIGKILL);
  return {};
}

bool supervisor::is_kept(process_name who) const {
  const auto found = processes_.find(who);
  return found != processes_.end() && (found->second.pid != 0 || found->second.start_at);
}

void supervisor::kill_all() {
  winding_down_ = true;
  for (auto& [unused, what] : processes_)
    if (what.pid != 0)
      ::kill(what.pid, SIGKILL);
  for (auto& [unused, what] : processes_)
    if (what.pid != 0) {
      waitpid(what.pid, nullptr, 0);
      what.pid = 0;
    }
}

std::size_t supervisor::running() const {
  return static_cast<std::size_t>(std::count_if(processes_.begin(), processes_.end(),
                                                [](const auto& x) { return x.second.pid != 0; }));
}

std::map<process_name, incarnation_id> supervisor::incarnations() const {
  std::map<process_name, incarnation_id> all;
  for (const auto& [who, what] : processes_)
    if (what.pid != 0)
      all.emplace(who, what.incarnation);
  return all;
}

std::optional<pid_t> supervisor::pid_of(process_name who) const {
  const auto found = processes_.find(who);
  if (found == processes_.end() || found->second.pid == 0)
    return std::nullopt;
  return found->second.pid;
}

} // namespace troupe
