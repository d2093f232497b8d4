#include "actors/graph/launch/supervisor.hpp"

#include "actors/graph/launch/child_command.hpp"
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

/// Ends with status 0 after a short life, in a row, that are too many.
constexpr int quick_ends_max = 6;

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

} // namespace

void reap_orphans(const std::set<pid_t>& own) {
  if (getpid() != 1)
    return;
  for (;;) {
    siginfo_t ended{};
    if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == 0
        || own.contains(ended.si_pid))
      return;
    waitpid(ended.si_pid, nullptr, 0);
  }
}

supervisor::supervisor(supervisor_options options)
    : options_(std::move(options)), out_of_memory_kills_(out_of_memory_kills()) {}

supervisor::~supervisor() { kill_all(); }

result<void> supervisor::start(process_name who, int inherited, time_point now) {
  auto& what = processes_[who];
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
  what.started_at = now;
  what.killed_at.reset();
  what.start_at.reset();
  return {};
}

std::vector<std::string> supervisor::notices(time_point now) {
  for (const auto& each : pipe_.read())
    notices_.take(each, now);
  auto lines = notices_.lines(now);
  std::ranges::move(std::exchange(told_, {}), std::back_inserter(lines));
  return lines;
}

std::vector<supervisor::loss> supervisor::tick(time_point now) {
  std::vector<loss> losses;
  for (auto& [who, what] : processes_) {
    int status = 0;
    if (what.pid != 0 && waitpid(what.pid, &status, WNOHANG) == what.pid)
      ended(who, what, status, now, losses);
    if (leaving_.contains(who))
      what.start_at.reset();
    if (what.start_at && *what.start_at <= now && !winding_down_)
      if (auto started = launch(who, what, now); !started)
        start_failed(who, what, started.error(), now);
  }
  std::set<pid_t> own;
  for (const auto& [unused, what] : processes_)
    own.insert(what.pid);
  reap_orphans(own);
  return losses;
}

void supervisor::ended(process_name who, process& what, int status, time_point now,
                       std::vector<loss>& losses) {
  const auto pid = std::exchange(what.pid, 0);
  notices_.forget(who);
  if (WIFEXITED(status) && WEXITSTATUS(status) == do_not_restart_status) {
    const auto name = to_string(who);
    const auto words = last_words(who);
    failed_ = failure{errc::job_failed, words.starts_with(name) ? words : name + ": " + words};
    return;
  }
  const bool deposed = WIFEXITED(status) && WEXITSTATUS(status) == deposed_status;
  const auto kills = out_of_memory_kills();
  const auto fresh_kills = kills - std::exchange(out_of_memory_kills_, kills);
  const auto how = WIFSIGNALED(status)
                     ? text_of_signal(WTERMSIG(status), what.killed_at.has_value(), fresh_kills)
                   : deposed ? last_words(who)
                             : "exit status " + std::to_string(WEXITSTATUS(status));
  const bool clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!clean)
    losses.push_back({{who.role, who.index, what.incarnation},
                      pid,
                      what.killed_at.value_or(now),
                      now,
                      how,
                      deposed});
  if (winding_down_ || leaving_.contains(who))
    return;
  if (!deposed && gives_up(who, what, status, now, how)) // A deposed one starts as a standby.
    return;
  set_pause(what);
  // A clean process was most likely told to end with the whole job; wind_down() then follows.
  what.start_at = now + (clean ? std::max(what.pause, options_.clean_end_pause) : what.pause);
}

/// Counts a failed start as a quick death: a resource such as memory may soon be free again.
void supervisor::start_failed(process_name who, process& what, const failure& why, time_point now) {
  what.start_at.reset();
  if (++what.quick_deaths >= rules_of(who.role).crashes_max) {
    end_restarts(who, what, to_string(who) + " cannot be started again: " + why.text);
    return;
  }
  set_pause(what);
  what.start_at = now + what.pause;
}

void supervisor::set_pause(process& what) const {
  what.pause = what.quick_deaths == 0
                 ? std::chrono::milliseconds{0}
                 : std::clamp(2 * what.pause, options_.pause_min, options_.pause_max);
}

/// Counts the deaths that were not requested. Returns whether there were too many.
bool supervisor::gives_up(process_name who, process& what, int status, time_point now,
                          const std::string& how) {
  // The coordinator ends processes with status 0, mostly with the whole job. SIGKILL comes from
  // outside. Other ends come from the process itself, which will repeat them.
  const bool clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  const bool quick = now - what.started_at < options_.quick_death && !what.killed_at;
  const auto rules = rules_of(who.role);
  if (clean) {
    what.quick_ends = quick ? what.quick_ends + 1 : 0;
  } else {
    what.quick_ends = 0;
    what.quick_deaths = quick ? what.quick_deaths + 1 : 0;
  }
  if (!clean && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
    what.crashes.push_back(now);
  std::erase_if(what.crashes, [&](time_point at) { return now - at > rules.window; });
  const auto deaths =
    clean ? static_cast<std::size_t>(what.quick_ends)
          : std::max<std::size_t>(static_cast<std::size_t>(what.quick_deaths), what.crashes.size());
  if (deaths < static_cast<std::size_t>(clean ? quick_ends_max : rules.crashes_max))
    return false;
  end_restarts(who, what,
               to_string(who) + " ended " + std::to_string(deaths) + " times in short order (" + how
                 + "): " + last_words(who));
  return true;
}

supervision supervisor::rules_of(role as) const {
  const auto found = options_.on_death.find(as);
  return found == options_.on_death.end() ? supervision{} : found->second;
}

/// Leaves the process out or, if that is not wanted or no process of its role is left, gives up.
void supervisor::end_restarts(process_name who, process& what, const std::string& why) {
  what.left_out = true;
  const bool others = std::ranges::any_of(
    processes_, [&](const auto& x) { return x.first.role == who.role && !x.second.left_out; });
  if (rules_of(who.role).then == outcome::leave_out && others)
    told_.push_back(why + "; the job goes on without it");
  else
    failed_ = failure{errc::job_failed, why};
}

std::string supervisor::last_words(process_name who) const {
  const auto path = log_path(options_.run_directory, who);
  // Without O_NONBLOCK, a pipe in the place of the log would wait for a writer.
  const descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat about {};
  std::string last;
  if (file && fstat(file.get(), &about) == 0 && S_ISREG(about.st_mode)) {
    std::string end(std::min<std::size_t>(static_cast<std::size_t>(about.st_size), last_bytes_max),
                    '\0');
    const auto from = about.st_size - static_cast<off_t>(end.size());
    end.resize(static_cast<std::size_t>(
      std::max<ssize_t>(pread(file.get(), end.data(), end.size(), from), 0)));
    std::istringstream lines{end};
    for (std::string line; std::getline(lines, line);)
      if (!line.empty())
        last = text_of_line(line);
  }
  return last.empty() ? "see " + path.string() : last;
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
