// Starts a thread with a name. It blocks no signals, because it may run user code, and programs
// that user code starts would inherit the block. So calls of the system may return EINTR in it.
#pragma once

#include "base/system/resource_limits.hpp"

#include <pthread.h>

#include <thread>
#include <utility>

namespace troupe::detail {

/// Starts a thread. `name` is shown by system tools, at most 15 characters. If the system refuses
/// the thread, does as starting_threads().
template <class Function>
std::thread named_thread(const char* name, Function body) {
  auto made = starting_threads([&] { return std::thread{std::move(body)}; });
  pthread_setname_np(made.native_handle(), name);
  return made;
}

} // namespace troupe::detail
