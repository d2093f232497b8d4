// Resolves host names on a thread of its own, because that may take many seconds.
#pragma once

#include "actors/transport/streams/socket_address.hpp"
#include "base/error.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace troupe::detail {

/// Thread-safe. Resolves one name at a time. All questions about the same name, with any port, get
/// the same answer, so that repeated questions do not lengthen the queue.
class name_resolver {
public:
  using addresses = result<std::vector<socket_address>>;
  using answer = std::function<void(const addresses&)>;

  /// `look_up` blocks; it is detail::resolve, except in tests.
  explicit name_resolver(std::function<addresses(const endpoint&)> look_up);
  ~name_resolver() { stop(); }
  name_resolver(const name_resolver&) = delete;
  name_resolver& operator=(const name_resolver&) = delete;

  /// Calls `tell` on the resolver's thread, which starts with the first question. Throws
  /// std::system_error if the system has no threads left.
  void ask(const endpoint& where, answer tell);
  /// Stops answering. Waits for the end of a look-up, which cannot be cut short. Not inside an
  /// answer; idempotent.
  void stop();

private:
  struct question {
    endpoint where;
    answer tell;
  };

  void run();
  std::vector<question> take(const std::string& host);

  const std::function<addresses(const endpoint&)> look_up_;
  std::mutex mutex_; ///< Guards the members below; not held during a look-up.
  std::condition_variable changed_;
  bool stopping_ = false;
  std::deque<question> waiting_;
  std::thread thread_;
};

} // namespace troupe::detail
