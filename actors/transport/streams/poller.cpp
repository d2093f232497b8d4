#include "actors/transport/streams/poller.hpp"

#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace troupe::detail {

poller::poller()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!epoll_ || !wake_ || !add(wake_.get(), wake_key, EPOLLIN))
    throw std::system_error(errno, std::system_category(), "cannot poll descriptors");
}

bool poller::add(int descriptor, std::uint64_t key, std::uint32_t interest) {
  epoll_event event{};
  event.events = interest;
  event.data.u64 = key;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void poller::change(int descriptor, std::uint64_t key, std::uint32_t interest) {
  epoll_event event{};
  event.events = interest;
  event.data.u64 = key;
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &event);
}

void poller::remove(int descriptor) {
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
}

void poller::wake() {
  const std::uint64_t one = 1;
  // Fails only if the counter is full, and then the thread wakes up anyway.
  (void)!::write(wake_.get(), &one, sizeof one);
}

std::size_t poller::wait(std::span<epoll_event> ready, std::chrono::nanoseconds timeout) {
  using clock = std::chrono::steady_clock;
  if (timeout <= std::chrono::nanoseconds::zero())
    return poll(ready, 0);
  const auto begin = clock::now();
  const auto end_of_spin = begin + std::min(spin_.get(), timeout);
  std::size_t found = 0;
  auto now = begin;
  for (; found == 0 && now < end_of_spin; now = clock::now()) {
    found = poll(ready, 0);
    if (found == 0)
      ::sched_yield(); // Lets other runnable threads go first.
  }
  // Rounded up: waking a little early would only mean waiting again.
  if (const auto rest = std::chrono::ceil<std::chrono::milliseconds>(timeout - (now - begin));
      found == 0 && rest.count() > 0) {
    found = poll(ready, static_cast<int>(std::min<std::int64_t>(rest.count(), 3'600'000)));
    now = clock::now();
  }
  if (found != 0 || now - begin > adaptive_spin::short_wait)
    spin_.waited(now - begin);
  return found;
}

std::size_t poller::poll(std::span<epoll_event> ready, int timeout_ms) {
  const int count =
    ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), timeout_ms);
  if (count < 0 && errno != EINTR) // Without its files this thread would get no events.
    throw std::system_error{errno, std::generic_category(),
                            "code of the program closed files of this process"};
  const auto found = static_cast<std::size_t>(std::max(count, 0));
  for (const epoll_event& event : ready.first(found)) {
    std::uint64_t calls;
    if (event.data.u64 == wake_key)
      (void)!::read(wake_.get(), &calls, sizeof calls);
  }
  return found;
}

} // namespace troupe::detail
