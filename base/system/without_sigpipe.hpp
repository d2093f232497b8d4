// Lets a write to a pipe or a socket without a reader fail, instead of ending the process.
#pragma once

#include <ctime>

#include <pthread.h>
#include <signal.h>

namespace troupe {

/// Blocks SIGPIPE in this thread for its own lifetime, and drops one that came meanwhile.
class without_sigpipe {
public:
  without_sigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~without_sigpipe() {
    if (sigismember(&before_, SIGPIPE) == 1)
      return;
    const timespec at_once{};
    sigtimedwait(&pipe_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  without_sigpipe(const without_sigpipe&) = delete;
  without_sigpipe& operator=(const without_sigpipe&) = delete;

private:
  sigset_t pipe_;
  sigset_t before_;
};

} // namespace troupe
