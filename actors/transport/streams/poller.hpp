// Waits on one thread for ready descriptors (epoll) and for calls from other threads (eventfd).
#pragma once

#include "actors/transport/streams/socket.hpp"
#include "base/adaptive_spin.hpp"

#include <sys/epoll.h>

#include <chrono>
#include <cstdint>
#include <span>

namespace troupe::detail {

/// Thread-safe, except wait(). Level-triggered: events that were not handled are reported again.
class poller {
public:
  /// Key of wake() among the keys of descriptors.
  static constexpr std::uint64_t wake_key = 0;

  /// Throws std::system_error if the system has no descriptors left.
  poller();

  /// Watches for `interest`: EPOLLIN, EPOLLOUT. Errors and ends are always reported. Returns false
  /// if out of memory.
  bool add(int descriptor, std::uint64_t key, std::uint32_t interest);
  void change(int descriptor, std::uint64_t key, std::uint32_t interest);
  void remove(int descriptor);

  void wake();
  /// Fills `ready` and returns the number of events. Clears wake(). Spins before it sleeps where
  /// that pays.
  std::size_t wait(std::span<epoll_event> ready, std::chrono::nanoseconds timeout);

private:
  std::size_t poll(std::span<epoll_event> ready, int timeout_ms);

  descriptor epoll_;
  descriptor wake_;
  adaptive_spin spin_;
};

} // namespace troupe::detail
