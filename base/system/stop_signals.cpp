#include "base/system/stop_signals.hpp"

#include <algorithm>

namespace troupe {

bool blocks_stop_signals() {
  sigset_t blocked;
  sigprocmask(SIG_SETMASK, nullptr, &blocked);
  return std::ranges::all_of(stop_signals,
                             [&](int number) { return sigismember(&blocked, number) == 1; });
}

void survive_stop_signals() {
  sigset_t stops;
  sigemptyset(&stops);
  for (const int number : stop_signals) {
    struct sigaction how {};
    sigaction(number, nullptr, &how);
    if (how.sa_handler != SIG_IGN) {
      how.sa_handler = [](int) {};
      how.sa_flags = SA_RESTART;
      sigaction(number, &how, nullptr);
    }
    sigaddset(&stops, number);
  }
  sigprocmask(SIG_UNBLOCK, &stops, nullptr);
}

} // namespace troupe
