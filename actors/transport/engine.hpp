// Runs a transport's thread, which waits for all its sockets and drives their connections.
#pragma once

#include "actors/transport/connection.hpp"
#include "actors/transport/make_stream.hpp"
#include "actors/transport/name_resolver.hpp"
#include "actors/transport/streams/poller.hpp"
#include "actors/transport/streams/socket.hpp"
#include "actors/transport/transport.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

namespace troupe {

/// Thread safety: any thread may call public members, which only send or post(). Private members
/// without a note belong to the transport's thread.
class transport::engine {
public:
  engine(hello self, link_events events, transport_options options);
  ~engine();
  void stop();

  result<endpoint> serve(descriptor listener);
  link_id connect(const endpoint& where);
  std::size_t send(link_id link, const message& what);
  void close(link_id link);
  void wake() { context_.poll.wake(); }
  bool on_own_thread() const { return own_thread_ == std::this_thread::get_id(); }

private:
  using clock = detail::connection::clock;
  using connection_ptr = std::shared_ptr<detail::connection>;

  struct listener {
    descriptor socket;
    endpoint beside; ///< Its address, or that of the TCP socket beside it.
    clock::time_point paused_until = clock::time_point::max(); ///< max: it accepts.
  };

  // -- any thread --
  std::uint64_t next_key() { return last_key_.fetch_add(1) + 1; }
  connection_ptr find(std::uint64_t key) const;
  void insert(std::uint64_t key, connection_ptr made);
  /// Runs `what` on the transport's thread.
  void post(std::function<void()> what);
  /// Posts a member call on a link; skips it if the link is gone by then.
  void post_to(link_id link, std::function<void(detail::connection&, clock::time_point)> what);

  void add_listener(descriptor socket, const endpoint& beside);

  void run();
  clock::duration patience() const;
  void run_posted();
  void end_round();
  void dispatch(std::uint64_t key, std::uint32_t events);
  void accept_on(std::uint64_t key, listener& from);
  void on_accept(detail::accepted_stream accepted);
  void pause(std::uint64_t key, listener& which);
  void tell_lack(const std::string& why);
  /// Erases a finished link; called after every call on a connection.
  void tidy(std::uint64_t key, detail::connection& link);
  void check_times();
  std::vector<connection_ptr> all_links() const;

  detail::link_context context_;
  std::atomic<std::uint64_t> last_key_ = detail::poller::wake_key;
  std::atomic<bool> stopping_ = false;
  std::atomic<std::thread::id> own_thread_;

  mutable std::mutex links_mutex_;
  std::unordered_map<std::uint64_t, connection_ptr> links_; ///< Keyed by link id.

  std::mutex posted_mutex_;
  std::vector<std::function<void()>> posted_;

  std::vector<std::uint64_t> unread_;  ///< Keys to dispatch again without an event.
  std::vector<connection_ptr> corked_; ///< Links to flush at the end of the round.
  std::unordered_map<std::uint64_t, listener> listeners_;
  std::string lack_;         ///< Last text given to hampered().
  std::size_t accepted_ = 0; ///< Accepted connections in links_.
  clock::time_point next_check_ = clock::time_point::max();
  clock::duration check_interval_min_;

  detail::name_resolver names_; ///< Used by any thread.
  std::thread thread_;          ///< Last, because it uses all members above.
};

} // namespace troupe
