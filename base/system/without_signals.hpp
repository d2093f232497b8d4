// Keeps signals away from code that would end or begin anew because of them.
#pragma once

#include <ctime>
#include <initializer_list>

#include <pthread.h>
#include <signal.h>

namespace troupe {

/// Blocks signals in this thread for its own lifetime. With SIGPIPE, a write to a pipe or a socket
/// without a reader fails, and does not end the process.
class without_signals {
public:
  without_signals(std::initializer_list<int> numbers) {
    sigset_t blocked;
    sigemptyset(&blocked);
    for (const int number : numbers)
      sigaddset(&blocked, number);
    pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  ~without_signals() {
    if (sigismember(&before_, SIGPIPE) == 0) { // Drops one that came meanwhile.
      sigset_t pipe;
      sigemptyset(&pipe);
      sigaddset(&pipe, SIGPIPE);
      const timespec at_once{};
      sigtimedwait(&pipe, nullptr, &at_once);
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  without_signals(const without_signals&) = delete;
  without_signals& operator=(const without_signals&) = delete;

private:
  sigset_t before_;
};

} // namespace troupe
