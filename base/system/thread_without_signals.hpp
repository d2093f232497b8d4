// Starts a thread that no signal interrupts. Signals are for the program's own threads.
#pragma once

#include "base/system/resource_limits.hpp"

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace troupe::detail {

/// Starts a thread. `name` is shown by system tools, at most 15 characters. If the system refuses
/// the thread, does as starting_threads().
template <class Function>
std::thread thread_without_signals(const char* name, Function body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    auto made = starting_threads([&] { return std::thread{std::move(body)}; });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_setname_np(made.native_handle(), name);
    return made;
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
}

} // namespace troupe::detail
