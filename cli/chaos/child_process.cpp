#include "cli/chaos/child_process.hpp"

#include "base/system/spawn.hpp"

#include "fmt/format.h"

#include <fcntl.h>
#include <signal.h>
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

int status_from(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

} // namespace

result<child_process> child_process::start(const std::vector<std::string>& words,
                                           const std::filesystem::path& output) {
  int ends[2]; // No pipe: writing to an ended process must not raise a signal.
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return system_failure("cannot make a socket pair");
  const descriptor theirs{ends[0]};
  descriptor ours{ends[1]};
  const descriptor file{open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)};
  if (!file)
    return system_failure("cannot write " + output.string());
  const auto pid =
    spawn(words.front(), words, {.input = theirs.get(), .output = file.get(), .detached = true});
  if (!pid)
    return pid.error();
  return child_process{*pid, std::move(ours)};
}

child_process::child_process(child_process&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), input_(std::move(other.input_)), status_(other.status_) {}

child_process::~child_process() { kill(); }

std::optional<int> child_process::ended() {
  int status = 0;
  if (!status_ && pid_ != 0 && waitpid(pid_, &status, WNOHANG) == pid_)
    status_ = status_from(status);
  return status_;
}

void child_process::tell(const std::string& line) {
  // Where nobody reads any more, ended() says so.
  [[maybe_unused]] const auto sent = send(input_.get(), line.data(), line.size(), MSG_NOSIGNAL);
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
  const descriptor its_words{ends[0]};
  descriptor its_output{ends[1]};
  const auto pid = spawn(words.front(), words,
                         {.input = STDIN_FILENO, .output = its_output.get(), .detached = true});
  its_output.reset();
  std::string said;
  char some[512];
  for (ssize_t got = 0; pid && (got = read(its_words.get(), some, sizeof some)) > 0;)
    said.append(some, static_cast<std::size_t>(got));
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
