#include "cli/chaos/child_process.hpp"

#include "fmt/format.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace troupe::chaos {

namespace {

failure system_failure(const std::string& what) {
  return {errc::io_failed, what + ": " + std::strerror(errno)};
}

/// Runs in the child; makes only async-signal-safe calls.
[[noreturn]] void become(char* const* arguments, int input, int output, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) // The parent died before prctl().
    _exit(1);
  setsid(); // Ctrl-C then reaches chaos alone.
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execvp(arguments[0], arguments);
  _exit(127);
}

int status_from(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

/// Returns the pid. The child has copies of both descriptors.
result<pid_t> spawn(const std::vector<std::string>& words, int input, int output) {
  std::vector<char*> arguments;
  for (const auto& word : words)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const auto parent = getpid();
  const auto pid = fork();
  if (pid == 0)
    become(arguments.data(), input, output, parent);
  if (pid < 0)
    return system_failure("cannot start " + words.front());
  return pid;
}

} // namespace

result<child_process> child_process::start(const std::vector<std::string>& words,
                                           const std::filesystem::path& output) {
  int ends[2]; // No pipe: writing to an ended process must not raise a signal.
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return system_failure("cannot make a socket pair");
  const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) {
    auto why = system_failure("cannot write " + output.string());
    close(ends[0]);
    close(ends[1]);
    return why;
  }
  const auto pid = spawn(words, ends[0], file);
  close(file);
  close(ends[0]);
  if (!pid) {
    close(ends[1]);
    return pid.error();
  }
  return child_process{*pid, ends[1]};
}

child_process::child_process(child_process&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), input_(std::exchange(other.input_, -1)),
      status_(other.status_) {}

child_process::~child_process() {
  kill();
  if (input_ >= 0)
    close(input_);
}

std::optional<int> child_process::ended() {
  int status = 0;
  if (!status_ && pid_ != 0 && waitpid(pid_, &status, WNOHANG) == pid_)
    status_ = status_from(status);
  return status_;
}

void child_process::tell(const std::string& line) {
  // If the process has ended, ended() says so.
  [[maybe_unused]] const auto sent = send(input_, line.data(), line.size(), MSG_NOSIGNAL);
}

void child_process::kill() {
  if (pid_ == 0 || ended())
    return;
  ::kill(pid_, SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
  status_ = status_from(status);
}

result<void> run_tool(const std::vector<std::string>& words) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return system_failure("cannot make a pipe");
  const auto pid = spawn(words, STDIN_FILENO, ends[1]);
  close(ends[1]);
  std::string said;
  char some[512];
  for (ssize_t got = 0; pid && (got = read(ends[0], some, sizeof some)) > 0;)
    said.append(some, static_cast<std::size_t>(got));
  close(ends[0]);
  if (!pid)
    return pid.error();
  int status = 0;
  waitpid(*pid, &status, 0);
  if (status_from(status) == 0)
    return {};
  while (!said.empty() && said.back() == '\n')
    said.pop_back();
  return {errc::io_failed,
          fmt::format("{}: {}", fmt::join(words, " "), said.empty() ? "cannot be run" : said)};
}

} // namespace troupe::chaos
