#include "base/system/stop_signals.hpp"

#include "doctest/doctest.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace stop_signals_test {

using namespace troupe;

namespace {

/// Runs `call` in a child process, and returns the child's wait status.
template <class Call>
int status_of(Call call) {
  const auto child = fork();
  if (child == 0)
    _exit(call() ? EXIT_SUCCESS : EXIT_FAILURE);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

void block_stop_signals() {
  sigset_t stops;
  sigemptyset(&stops);
  for (const int number : stop_signals)
    sigaddset(&stops, number);
  sigprocmask(SIG_BLOCK, &stops, nullptr);
}

} // namespace

TEST_CASE("a process survives stop signals also those that came while they were blocked") {
  CHECK(status_of([] {
          block_stop_signals();
          const bool blocked = blocks_stop_signals();
          raise(SIGTERM);
          survive_stop_signals();
          for (const int number : stop_signals)
            raise(number);
          return blocked && !blocks_stop_signals();
        })
        == 0);
}

TEST_CASE("a program that the process starts does not survive them") {
  CHECK(status_of([] {
          block_stop_signals();
          survive_stop_signals();
          const int status = std::system("exec sh -c 'kill -TERM $$; exit 0'");
          return WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
        })
        == 0);
}

TEST_CASE("a signal that was ignored before stays so") {
  CHECK(status_of([] {
          signal(SIGHUP, SIG_IGN);
          block_stop_signals();
          survive_stop_signals();
          return std::system("exec sh -c 'kill -HUP $$; exit 0'") == 0;
        })
        == 0);
}

} // namespace stop_signals_test
