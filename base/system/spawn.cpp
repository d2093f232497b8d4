#include "base/system/spawn.hpp"

#include "base/system/descriptor.hpp"
#include "base/system/resource_limits.hpp"
#include "base/system/stop_signals.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace troupe {

namespace {

// Runs in the child; only async-signal-safe calls. Writes errno to `error_pipe` if exec fails.
[[noreturn]] void become(const std::filesystem::path& executable, char* const* arguments,
                         const spawn_options& how, pid_t parent, int error_pipe) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) // It died before the line above.
    _exit(1);
  if (how.detached)
    setsid();
  sigset_t blocked;
  sigemptyset(&blocked);
  if (how.stubborn)
    for (const int number : stop_signals)
      sigaddset(&blocked, number);
  sigprocmask(SIG_SETMASK, &blocked, nullptr);
  dup2(how.output, STDOUT_FILENO);
  dup2(how.error >= 0 ? how.error : how.output, STDERR_FILENO);
  dup2(how.input >= 0 ? how.input : open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  for (const int kept : how.kept)
    if (kept >= 0)
      fcntl(kept, F_SETFD, 0);
  // Unlike execv(), execvp() takes a damaged program for a script.
  if (std::strchr(executable.c_str(), '/') != nullptr)
    execv(executable.c_str(), arguments);
  else
    execvp(executable.c_str(), arguments);
  const int why = errno;
  [[maybe_unused]] const auto told = write(error_pipe, &why, sizeof why);
  _exit(127);
}

failure cannot_start(const std::string& why) {
  return {errc::io_failed, "cannot start a process: " + why};
}

/// Returns why exec failed, once the other end of the pipe is closed; 0: it did not fail.
int errno_of_exec(const descriptor& pipe_end) {
  int why = 0;
  ssize_t got = 0;
  do
    got = read(pipe_end.get(), &why, sizeof why);
  while (got < 0 && errno == EINTR);
  return got == sizeof why ? why : 0;
}

} // namespace

result<pid_t> spawn(const std::filesystem::path& executable, const std::vector<std::string>& words,
                    const spawn_options& how) {
  std::vector<char*> arguments;
  for (const auto& word : words)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0)
    return cannot_start(std::strerror(errno));
  const descriptor exec_result{ends[0]};
  descriptor exec_pipe{ends[1]};
  const auto parent = getpid();
  // fork() runs the handlers of libraries, and that of OpenBLAS may wait without an end.
  const auto pid = _Fork();
  const int why = errno;
  if (pid == 0)
    become(executable, arguments.data(), how, parent, exec_pipe.get());
  if (pid < 0)
    return cannot_start(std::strerror(why) + limits_suffix(resource::memory_or_threads));
  exec_pipe.reset();
  if (const int problem = errno_of_exec(exec_result); problem != 0) {
    waitpid(pid, nullptr, 0);
    return cannot_start(executable.string() + ": " + std::strerror(problem));
  }
  return pid;
}

} // namespace troupe
