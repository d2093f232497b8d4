// What one thread waits for: descriptors that are ready (epoll) and a call from another thread
// (eventfd).
#pragma once

#include "actors/transport/streams/socket.hpp"
#include "base/adaptive_spin.hpp"

#include <sys/epoll.h>

#include <chrono>
#include <cstdint>
#include <span>

namespace troupe::detail {

/// Thread-safe, but for wait(). Level-triggered: what was not dealt with is reported again.
class poller {
public:
  /// Key of a wake() among the keys of descriptors.
  static constexpr std::uint64_t wake_key = 0;

  /// Throws std::system_error where the system has no descriptors left.
  poller();

  /// `interest`: EPOLLIN, EPOLLOUT; errors and ends are always reported. False: out of memory.
  bool add(int descriptor, std::uint64_t key, std::uint32_t interest);
  void change(int descriptor, std::uint64_t key, std::uint32_t interest);
  void remove(int descriptor);

  void wake();
  /// Fills `ready` and returns how many. Clears wake(). Spins before it sleeps where that pays.
  std::size_t wait(std::span<epoll_event> ready, std::chrono::nanoseconds timeout);

private:
  std::size_t poll(std::span<epoll_event> ready, int timeout_ms);

  descriptor epoll_;
  descriptor wake_;
  adaptive_spin spin_;
};

} // namespace troupe::detail
