#include "base/system/resource_limits.hpp"

#include "base/user_code.hpp"

#include "doctest/doctest.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

namespace resource_limits_test {

using namespace troupe;

namespace {

constexpr int chosen_status = 17;

struct ending {
  int status = -1; ///< As of waitpid().
  std::string said;
};

/// Runs `call` in a child process that ends where resources lack.
ending end_of(const std::function<void()>& call) {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const auto child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    for (const int number : {SIGABRT, SIGXFSZ}) // doctest handles them.
      signal(number, SIG_DFL);
    rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    end_where_resources_lack(
      [](const std::string& why) { std::fprintf(stderr, "last: %s\n", why.c_str()); },
      chosen_status);
    call();
    _exit(EXIT_SUCCESS);
  }
  close(ends[1]);
  ending made;
  char some[1024];
  for (ssize_t got = 0; (got = read(ends[0], some, sizeof some)) > 0;)
    made.said.append(some, static_cast<std::size_t>(got));
  close(ends[0]);
  REQUIRE(waitpid(child, &made.status, 0) == child);
  return made;
}

/// Runs `call` in a child process, and returns its status as of waitpid().
int status_of_child(const std::function<void()>& call) {
  const auto child = fork();
  if (child == 0) {
    call();
    _exit(EXIT_SUCCESS);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

bool aborted(const ending& made) {
  return WIFSIGNALED(made.status) && WTERMSIG(made.status) == SIGABRT;
}

[[noreturn]] void lack_a_thread() { throw std::system_error{EAGAIN, std::generic_category()}; }

} // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("threads are started by the system's own function") {
  // Sanitizers of compilers replace it, and fail if a program replaces it as well.
  Dl_info about{};
  REQUIRE(dladdr(dlsym(RTLD_DEFAULT, "pthread_create"), &about) != 0);
  CHECK(std::string{about.dli_fname}.find("libc.so") != std::string::npos);
}
#endif

TEST_CASE("an exception that is not caught has its line and the process aborts") {
  const auto made = end_of([] { std::thread{[] { throw std::runtime_error{"no"}; }}.join(); });
  CHECK(made.said == "last: no\n");
  CHECK(aborted(made));
}

TEST_CASE("an abort keeps its own line and the signal") {
  const auto made = end_of([] {
    std::fputs("x.cpp:1: Assertion failed.\n", stderr);
    std::abort();
  });
  CHECK(made.said == "x.cpp:1: Assertion failed.\n");
  CHECK(aborted(made));
}

TEST_CASE("limits are named after the line before an abort and the signal stays") {
  const auto made = end_of([] {
    rlimit limit{};
    getrlimit(RLIMIT_NPROC, &limit);
    limit.rlim_cur = 12'345;
    setrlimit(RLIMIT_NPROC, &limit);
    name_causes_of_abort();
    std::fputs("the library's line\n", stderr);
    std::abort();
  });
  CHECK(made.said.starts_with("the library's line\naborted, for the reason in the line above; "));
  CHECK(made.said.find("ulimit -u 12345") != std::string::npos);
  CHECK(aborted(made));
}

TEST_CASE("an abort in the program's code names the call") {
  const auto made = end_of([] {
    name_causes_of_abort();
    const user_call here{{"push function", "noise", "worker 1"}};
    std::abort();
  });
  CHECK(made.said.starts_with(
    "aborted in worker 1's push function 'noise'; the line above may have the reason"));
  CHECK(made.said.ends_with("\n"));
  CHECK(aborted(made));
}

TEST_CASE("a process without the memory for its last line has one that was built beforehand") {
  const auto use_too_much = [] {
    volatile std::size_t bytes = std::size_t{1} << 62; // The compiler refuses a known size.
    [[maybe_unused]] void* volatile kept = ::operator new(bytes); // It drops an unused call.
  };
  const auto made = end_of([&] {
    end_where_resources_lack([&](const std::string&) { use_too_much(); }, chosen_status);
    use_too_much();
  });
  CHECK(WEXITSTATUS(made.status) == chosen_status);
  CHECK(made.said.find(": out of memory") != std::string::npos);
}

TEST_CASE("a thread that cannot start ends the process with its status") {
  const auto calls = {
    std::function<void()>{[] { starting_threads([] { lack_a_thread(); }); }},
    std::function<void()>{[] {
      // The destructor would run if the stack were unwound.
      struct waits_for_ever {
        ~waits_for_ever() { pause(); }
      };
      without_unwinding([]() -> int {
        const waits_for_ever hangs;
        lack_a_thread();
      });
    }},
    std::function<void()>{[] { std::thread{[] { lack_a_thread(); }}.join(); }},
  };
  for (const auto& call : calls) {
    const auto made = end_of(call);
    CHECK(made.said.starts_with("last: cannot start a thread"));
    CHECK(WIFEXITED(made.status));
    CHECK(WEXITSTATUS(made.status) == chosen_status);
  }
}

TEST_CASE("without a chosen end an exception comes back before any destructor of the call") {
  static std::atomic<bool> is_unwound{false};
  struct unwound {
    ~unwound() { is_unwound = true; }
  };
  CHECK_THROWS_WITH(without_unwinding([]() -> int {
                      const unwound library;
                      lack_a_thread();
                    }),
                    "cannot start a thread: Resource temporarily unavailable");
  CHECK_THROWS_WITH(without_unwinding([]() -> int {
                      const unwound library;
                      throw std::runtime_error{"no"};
                    }),
                    "no");
  CHECK_FALSE(is_unwound);
}

TEST_CASE("a handler of std::terminate that was there before is still called") {
  const auto made = status_of_child([] {
    std::set_terminate([] { _exit(chosen_status); });
    without_unwinding([] { return 7; });
    std::thread{[] { throw std::runtime_error{"no"}; }}.join();
  });
  CHECK(WIFEXITED(made));
  CHECK(WEXITSTATUS(made) == chosen_status);
}

TEST_CASE("without a chosen end a lack of threads is an exception with a reason") {
  CHECK_THROWS_WITH(starting_threads([] { lack_a_thread(); }),
                    "cannot start a thread: Resource temporarily unavailable");
  CHECK(starting_threads([] { return 7; }) == 7);
  CHECK(without_unwinding([] { return 7; }) == 7);
}

TEST_CASE("a file beyond the limit is an error and programs that are started have the signal") {
  const auto made = end_of([] {
    const int status = std::system("exec sh -c 'kill -XFSZ $$; exit 0'");
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGXFSZ)
      _exit(1);
    rlimit limit{100, 100};
    setrlimit(RLIMIT_FSIZE, &limit);
    const int file = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    char many[200] = {};
    if (write(file, many, 100) != 100 || write(file, many, 100) != -1 || errno != EFBIG)
      _exit(2);
  });
  CHECK(made.status == 0);
}

} // namespace resource_limits_test
