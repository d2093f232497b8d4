#include "bench/child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace troupe::bench {

namespace {

constexpr const char* part_option = "--part";
constexpr int line_descriptor = 3;

[[noreturn]] void fail_system(const char* what) {
  throw std::system_error{errno, std::system_category(), what};
}

[[noreturn]] void become(const json& part, const std::map<std::string, std::string>& environment,
                         int line, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) // The parent died before prctl().
    _exit(1);
  if (line == line_descriptor)
    fcntl(line, F_SETFD, 0);
  else if (dup2(line, line_descriptor) < 0)
    _exit(1);
  for (const auto& [name, value] : environment)
    setenv(name.c_str(), value.c_str(), 1);
  std::string option = part_option, text = part.dump(), program = "bench";
  char* words[] = {program.data(), option.data(), text.data(), nullptr};
  execv("/proc/self/exe", words);
  _exit(1);
}

double status_megabytes(pid_t process, std::string_view field) {
  std::ifstream status{"/proc/" + std::to_string(process) + "/status"};
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field))
      return std::stod(line.substr(field.size() + 1)) / 1024;
  return 0;
}

} // namespace

channel::~channel() { close(descriptor_); }

void channel::send(const json& what) {
  const auto line = what.dump() + "\n";
  std::string_view rest = line;
  while (!rest.empty()) {
    const auto sent = ::send(descriptor_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0)
      throw std::runtime_error{"a process of the benchmark is gone"};
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
}

json channel::receive() {
  for (std::size_t from = 0;;) {
    if (const auto end = unread_.find('\n', from); end != std::string::npos) {
      auto found = json::parse(unread_.begin(), unread_.begin() + static_cast<std::ptrdiff_t>(end));
      unread_.erase(0, end + 1);
      return found;
    }
    from = unread_.size();
    char some[65536];
    const auto got = recv(descriptor_, some, sizeof some, 0);
    if (got <= 0)
      throw std::runtime_error{"a process of the benchmark is gone"};
    unread_.append(some, static_cast<std::size_t>(got));
  }
}

child::line_ends::line_ends() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    fail_system("socketpair");
  ours = ends[0];
  theirs = ends[1];
}

child::child(const json& part, const std::map<std::string, std::string>& environment)
    : child(part, environment, line_ends{}) {}

child::child(const json& part, const std::map<std::string, std::string>& environment,
             line_ends ends)
    : line_(ends.ours) {
  const auto parent = getpid();
  pid_ = fork();
  if (pid_ == 0)
    become(part, environment, ends.theirs, parent);
  close(ends.theirs);
  if (pid_ < 0)
    fail_system("fork");
}

child::~child() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

json part_of(int argc, char** argv) {
  return argc == 3 && argv[1] == std::string_view{part_option} ? json::parse(argv[2]) : json{};
}

channel& parent_line() {
  static channel line{line_descriptor};
  return line;
}

double cpu_seconds(pid_t process) {
  clockid_t clock = 0;
  timespec now{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &now) != 0)
    return 0;
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double peak_megabytes(pid_t process) { return status_megabytes(process, "VmHWM:"); }

double resident_megabytes(pid_t process) { return status_megabytes(process, "VmRSS:"); }

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

} // namespace troupe::bench
