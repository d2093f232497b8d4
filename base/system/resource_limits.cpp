#include "base/system/resource_limits.hpp"

#include "base/exception_text.hpp"
#include "base/user_code.hpp"

#include "fmt/format.h"

#include <sys/resource.h>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

namespace {

struct known_limit {
  decltype(RLIMIT_AS) number;
  resource what;
  const char* name; ///< The shell's name for it.
  rlim_t unit;      ///< The shell's unit, in units of the system.
};

constexpr std::array known_limits{
  known_limit{RLIMIT_AS, resource::memory, "ulimit -v", 1024},
  known_limit{RLIMIT_DATA, resource::memory, "ulimit -d", 1024},
  known_limit{RLIMIT_NPROC, resource::threads, "ulimit -u", 1},
  known_limit{RLIMIT_NOFILE, resource::files, "ulimit -n", 1},
  known_limit{RLIMIT_FSIZE, resource::file_size, "ulimit -f", 1024},
  known_limit{RLIMIT_STACK, resource::stack, "ulimit -s", 1024},
  known_limit{RLIMIT_CPU, resource::processor_time, "ulimit -t", 1},
};

/// A limit of control groups: its file in its own hierarchy (version 1) and in the common one.
struct cgroup_file {
  std::string controller;
  const char* first_version;
  const char* second_version;
};

/// Appends `root` + `path` and its parent directories, up to `root`.
void add_with_parents(const std::string& root, std::string path,
                      std::vector<std::string>& directories) {
  while (path.size() > 1) {
    directories.push_back(root + path);
    path.resize(path.rfind('/'));
  }
}

/// Returns the directories that may limit this process: its control group and the groups around it,
/// in the controller's own hierarchy and in the common one. Their roots are included, because a
/// container may see a root in place of its group.
std::vector<std::string> cgroup_directories(const std::string& controller) {
  std::ifstream groups{"/proc/self/cgroup"};
  std::vector<std::string> directories;
  for (std::string line; std::getline(groups, line);) {
    const auto at = line.find(":" + controller + ":");
    if (line.starts_with("0::"))
      add_with_parents("/sys/fs/cgroup", line.substr(3), directories);
    else if (at != std::string::npos)
      add_with_parents("/sys/fs/cgroup/" + controller, line.substr(at + controller.size() + 2),
                       directories);
  }
  directories.insert(directories.end(), {"/sys/fs/cgroup", "/sys/fs/cgroup/" + controller});
  return directories;
}

/// Returns the smallest limit on this process in these files.
std::optional<std::uint64_t> cgroup_limit(const cgroup_file& what) {
  std::optional<std::uint64_t> least;
  for (const auto& directory : cgroup_directories(what.controller))
    for (const char* name : {what.first_version, what.second_version}) {
      std::ifstream in{directory + "/" + name};
      constexpr std::uint64_t unlimited = 1ull << 60; // Version 1 writes nearly 2^63.
      if (std::uint64_t value = 0; in >> value && value < unlimited) // "max" is not a number.
        least = std::min(least.value_or(value), value);
    }
  return least;
}

/// The arguments of `end_where_resources_lack()`.
struct ending {
  last_line_writer write;
  int status = EXIT_FAILURE;
  std::unique_ptr<std::array<char, 65'536>> reserve; ///< Memory for the last line.
  /// Built beforehand: memory may be damaged or locked when a signal comes, or used up.
  std::string limits_at_abort, line_of_processor_time, line_of_no_memory;
};

ending& chosen_ending() {
  static ending chosen;
  return chosen;
}

std::atomic<bool> is_ending{false};

[[noreturn]] void end_process(const std::string& why) noexcept {
  auto& chosen = chosen_ending();
  chosen.write(why);
  _exit(chosen.status);
}

void write_line(std::string_view line) {
  [[maybe_unused]] const auto told = write(STDERR_FILENO, line.data(), line.size());
}

/// Lets the first thread write the line; other threads wait for the end. If the first thread fails
/// again here, it lacks the memory for its line, and writes one that was built beforehand.
void enter_ending() {
  thread_local bool is_mine = false;
  if (is_mine) {
    write_line(chosen_ending().line_of_no_memory);
    _exit(chosen_ending().status);
  }
  while (is_ending.exchange(true))
    pause();
  is_mine = true;
  chosen_ending().reserve.reset();
}

/// The handler of `new`.
void on_no_memory() {
  enter_ending();
  end_process("out of memory" + limits_suffix(resource::memory));
}

[[noreturn]] void end_without_thread() {
  enter_ending();
  end_process("cannot start a thread" + limits_suffix(resource::memory_or_threads));
}

/// Returns whether the current exception says that the system refused a thread.
bool is_lack_of_thread() {
  try {
    throw;
  } catch (const std::system_error& why) {
    return why.code() == std::errc::resource_unavailable_try_again;
  } catch (...) {
    return false;
  }
}

/// The result of the call that this thread makes for another one, see without_unwinding(); null:
/// there is none.
thread_local std::promise<void>* result_for_caller = nullptr;

std::atomic<std::terminate_handler> found_handler{nullptr};

/// The terminate handler: runs within the handler of an exception, or without an exception.
void on_terminate() {
  const bool has_exception = std::current_exception() != nullptr;
  if (has_exception && result_for_caller != nullptr) {
    result_for_caller->set_exception(std::current_exception());
    for (;;)
      pause();
  }
  if (!chosen_ending().write) {             // A run inside another program.
    thread_local bool is_passed_on = false; // The found handler may call this one again.
    if (const auto found = found_handler.load(); found && !std::exchange(is_passed_on, true))
      found();
    std::abort();
  }
  if (has_exception && is_lack_of_thread())
    end_without_thread();
  enter_ending();
  chosen_ending().write(has_exception
                          ? exception_text()
                          : "std::terminate was called without an exception: a thread was "
                            "destroyed while it ran, or a pure virtual function was called");
  signal(SIGABRT, SIG_DFL);
  std::abort();
}

void take_terminate_handler() {
  const auto found = std::set_terminate(on_terminate);
  if (found != on_terminate)
    found_handler = found;
}

/// Handles SIGABRT, before which a library may have written its own line. Makes only
/// async-signal-safe calls, as the next function.
void on_abort(int number) {
  const auto& limits = chosen_ending().limits_at_abort;
  std::array<char, 256> line{};
  std::size_t size = 0;
  const auto add = [&](std::string_view part) {
    size += part.copy(line.data() + size, line.size() - size);
  };
  if (const auto code = current_code()) {
    add("aborted in ");
    for (const auto part : parts_of(*code))
      add(part);
    add("; the line above may have the reason");
  } else if (!limits.empty()) {
    add("aborted, for the reason in the line above");
  }
  if (size > 0)
    for (const std::string_view part :
         {std::string_view{line.data(), size}, std::string_view{limits}, std::string_view{"\n"}})
      write_line(part);
  raise(number); // It is delivered after the return, with the default action: SA_RESETHAND.
}

void on_processor_time(int) {
  write_line(chosen_ending().line_of_processor_time);
  _exit(chosen_ending().status);
}

/// Sets a handler, which programs that this process starts do not inherit.
void handle(int number, void (*handler)(int), int flags) {
  struct sigaction how {};
  how.sa_handler = handler;
  how.sa_flags = flags;
  sigaction(number, &how, nullptr);
}

} // namespace

std::string limits_on(resource what) {
  std::vector<std::string> texts;
  const auto wanted = [what](resource kind) {
    const bool is_any = kind == resource::memory || kind == resource::threads;
    return what == kind || (what == resource::memory_or_threads && is_any);
  };
  for (const auto& known : known_limits) {
    rlimit limit{};
    if (!wanted(known.what) || getrlimit(known.number, &limit) != 0
        || limit.rlim_cur == RLIM_INFINITY)
      continue;
    // `end_where_resources_lack()` lowers this limit by 1, and children inherit it.
    const auto given = known.number == RLIMIT_CPU && limit.rlim_cur + 1 == limit.rlim_max
                         ? limit.rlim_max
                         : limit.rlim_cur;
    texts.push_back(fmt::format("{} {}", known.name, given / known.unit));
  }
  if (wanted(resource::memory))
    if (const auto bytes = cgroup_limit({"memory", "memory.limit_in_bytes", "memory.max"}))
      texts.push_back(fmt::format("cgroup's memory limit {} MiB", *bytes >> 20));
  if (wanted(resource::threads))
    if (const auto count = cgroup_limit({"pids", "pids.max", "pids.max"}))
      texts.push_back(fmt::format("cgroup's pids limit {}", *count));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string limits_suffix(resource what) {
  const auto limits = limits_on(what);
  return limits.empty() ? "" : "; limits: " + limits;
}

std::string with_limits(const std::string& text) {
  constexpr std::array causes{
    std::pair{EMFILE, resource::files}, std::pair{EAGAIN, resource::memory_or_threads},
    std::pair{ENOMEM, resource::memory}, std::pair{EFBIG, resource::file_size}};
  for (const auto& [number, what] : causes)
    if (text.ends_with(std::strerror(number)))
      return text + limits_suffix(what);
  return text;
}

result<void> allow_open_files(std::uint64_t count) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= count)
    return {};
  limit.rlim_cur = std::min<rlim_t>(count, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= count)
    return {};
  return {errc::io_failed, fmt::format("each process of this job needs {} open files", count)
                             + limits_suffix(resource::files)};
}

result<void> prepare_stacks() {
  constexpr rlim_t needed = 256 << 10; // Half of it was enough on x86-64.
  constexpr std::size_t usual = 2 << 20;
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= usual)
    return {};
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) == 0) {
    pthread_attr_setstacksize(&attributes, usual);
    pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
  }
  if (limit.rlim_cur >= needed)
    return {};
  return {errc::io_failed, fmt::format("each process needs a stack of {} KiB", needed >> 10)
                             + limits_suffix(resource::stack)};
}

std::uint64_t out_of_memory_kills() {
  std::vector<std::string> files;
  for (const auto& directory : cgroup_directories("memory"))
    for (const char* name : {"/memory.events", "/memory.oom_control"})
      files.push_back(directory + name);
  files.push_back("/proc/vmstat");
  for (const auto& file : files) {
    std::ifstream in{file};
    std::string name;
    for (std::uint64_t count = 0; in >> name >> count;)
      if (name == "oom_kill")
        return count;
  }
  return 0;
}

void end_where_resources_lack(last_line_writer write, int status) {
  auto& chosen = chosen_ending();
  chosen.write = std::move(write);
  chosen.status = status;
  chosen.reserve = std::make_unique<std::array<char, 65'536>>();
  chosen.line_of_no_memory = fmt::format("{}: out of memory{}\n", program_invocation_short_name,
                                         limits_suffix(resource::memory));
  std::set_new_handler(on_no_memory);
  take_terminate_handler();
  if (const auto limits = limits_suffix(resource::processor_time); !limits.empty()) {
    chosen.line_of_processor_time =
      fmt::format("{}: the processor time is used up{}\n", program_invocation_short_name, limits);
    handle(SIGXCPU, on_processor_time, SA_RESTART);
    rlimit limit{};
    if (getrlimit(RLIMIT_CPU, &limit) == 0 && limit.rlim_cur == limit.rlim_max
        && limit.rlim_cur > 1) {
      --limit.rlim_cur; // At the hard limit the system sends SIGKILL.
      setrlimit(RLIMIT_CPU, &limit);
    }
  }
  handle(
    SIGXFSZ, [](int) {}, SA_RESTART);
}

void name_causes_of_abort() {
  chosen_ending().limits_at_abort = limits_suffix(resource::memory_or_threads);
  handle(SIGABRT, on_abort, SA_RESETHAND);
}

void detail::call_without_unwinding(std::function<void()> call) {
  take_terminate_handler();
  const auto result = std::make_shared<std::promise<void>>();
  auto returned = result->get_future();
  auto caller = starting_threads([&] {
    return std::thread{[call = std::move(call), result] {
      result_for_caller = result.get();
      call();
      result->set_value();
    }};
  });
  starting_threads([&] {
    try {
      returned.get();
    } catch (...) {
      caller.detach(); // It waits for ever.
      throw;
    }
  });
  caller.join();
}

void end_without_thread(const std::system_error& why) {
  if (chosen_ending().write)
    end_without_thread();
  throw std::system_error{why.code(), "cannot start a thread"};
}

} // namespace troupe
