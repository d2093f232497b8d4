// Looks up the names of hosts on a thread of its own, as that may take many seconds.
#pragma once

#include "actors/transport/streams/endpoint.hpp"
#include "base/error.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace troupe::detail {

/// Thread-safe. One name after the other; all who wait for the same one, with whatever port, get
/// the same answer, so that who asks again and again does not wait longer and longer.
class name_resolver {
public:
  using addresses = result<std::vector<socket_address>>;
  using answer = std::function<void(const addresses&)>;

  /// `look_up`: blocks; detail::resolve, but for tests.
  explicit name_resolver(std::function<addresses(const endpoint&)> look_up);
  ~name_resolver() { stop(); }
  name_resolver(const name_resolver&) = delete;
  name_resolver& operator=(const name_resolver&) = delete;

  /// `tell` is called on the resolver's thread, which starts with the first question. Throws
  /// std::system_error where the system has no threads left.
  void ask(const endpoint& where, answer tell);
  /// Answers nobody any more. Waits for the end of a look-up, which cannot be cut short. Not inside
  /// an answer; idempotent.
  void stop();

private:
  struct question {
    endpoint where;
    answer tell;
  };

  void run();
  std::vector<question> take(const std::string& host);

  const std::function<addresses(const endpoint&)> look_up_;
  std::mutex mutex_; ///< Of what follows; not held during a look-up.
  std::condition_variable changed_;
  bool stopping_ = false;
  std::deque<question> waiting_;
  std::thread thread_;
};

} // namespace troupe::detail
