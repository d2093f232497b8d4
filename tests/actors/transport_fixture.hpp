// Two ends for tests of links: a transport that records its events, and a bare socket that
// misbehaves.
#pragma once

#include "actors/transport/frames/fragment.hpp"
#include "actors/transport/handshake.hpp"
#include "actors/transport/streams/socket.hpp"
#include "actors/transport/transport.hpp"
#include "serialization/wire.hpp"
#include "tests/serialization/frame_bytes.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace troupe::test {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

inline hello hello_of(std::uint64_t job = 7, std::uint64_t secret = 0) {
  return {wire::protocol_version, job, secret, {role::worker, 3, {9}}};
}

inline void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

inline std::vector<std::byte> frame_of(const message& what) {
  const wire::frame frame = wire::encode(what);
  std::vector<std::byte> flat = frame.head;
  for (const auto& part : frame.body)
    append(flat, part.bytes);
  return flat;
}

inline std::vector<std::byte> fragments_of(traffic_class traffic,
                                           std::span<const std::byte> bytes) {
  std::vector<std::byte> made;
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), detail::fragment_bytes_max));
    append(made,
           encode(detail::fragment_header{static_cast<std::uint32_t>(piece.size()), traffic}));
    append(made, piece);
    bytes = bytes.subspan(piece.size());
  }
  return made;
}

/// Returns a message's bytes on a link that carries no other message. A hello follows its preamble.
inline std::vector<std::byte> bytes_of(const message& what) {
  std::vector<std::byte> made;
  if (const auto* first = std::get_if<hello>(&what)) {
    append(made, encode(detail::preamble{first->version, first->secret}));
    hello without_secret = *first;
    without_secret.secret = 0;
    append(made, fragments_of(traffic_class::control, frame_of(without_secret)));
  } else {
    append(made, fragments_of(traffic_class_of(what), frame_of(what)));
  }
  return made;
}

/// A kind of connection that a link may use.
struct link_kind {
  const char* name;
  transport_options options;
};
inline std::vector<link_kind> link_kinds() {
  return {{"TCP", {.unix_sockets = false}}, {"Unix", {.arena = false}}, {"arena", {}}};
}

/// Returns numbers that tell positions and tensors apart.
inline std::shared_ptr<float> pattern(std::size_t count, std::uint32_t seed) {
  static buffer_pool pool;
  auto made = pool.floats(count);
  for (std::size_t i = 0; i < count; ++i)
    made.get()[i] = static_cast<float>((i * 2654435761u + seed) & 0xffffff);
  return made;
}

inline request_message push_of(std::uint64_t number, std::size_t count, std::uint32_t seed = 0) {
  push_request push;
  push.tables = {{2}};
  push.pieces = {{{{2}, 5, count}, pattern(count, seed)}};
  return {number, {std::move(push), {}}};
}

/// Waits until `holds` is true; returns false after 10 s.
template <class Condition>
bool wait_until(Condition holds) {
  const auto deadline = steady_clock::now() + 10s;
  while (!holds() && steady_clock::now() < deadline)
    std::this_thread::sleep_for(1ms);
  return holds();
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A transport and the record of its callbacks.
class side {
public:
  struct opening {
    link_id link;
    hello peer;
    std::string local;
  };

  explicit side(const hello& self = hello_of(), transport_options options = {})
      : links(self, recording_events(), options) {}

  endpoint listen() { return *links.listen({"127.0.0.1", 0}); }

  /// Waits until `holds`, called under the lock, is true. Returns false after 10 s.
  template <class Condition>
  bool wait(Condition holds) {
    std::unique_lock lock{mutex};
    return changed.wait_for(lock, 10s, holds);
  }
  bool wait_opened(std::size_t count = 1) {
    return wait([&] { return opened.size() >= count; });
  }
  bool wait_received(std::size_t count) {
    return wait([&] { return received.size() >= count; });
  }
  bool wait_lost(std::size_t count = 1) {
    return wait([&] { return lost.size() >= count; });
  }
  bool wait_rejected(std::size_t count = 1) {
    return wait([&] { return rejected.size() >= count; });
  }
  bool wait_hampered(std::size_t count) {
    return wait([&] { return hampered.size() >= count; });
  }
  link_id only_link() {
    std::scoped_lock lock{mutex};
    return opened.at(0).link;
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<opening> opened;
  std::vector<message> received;
  std::vector<failure> lost;
  std::vector<failure> rejected;
  std::vector<std::string> hampered;
  bool broken_promise = false; ///< A callback followed `lost`, or `lost` came twice.
  std::map<std::uint64_t, bool> ended;
  transport links; ///< Last member: its thread uses the others.

private:
  link_events recording_events() {
    link_events events;
    events.opened = [this](link_id link, const hello& peer, const std::string& local) {
      note(link, [&] { opened.push_back({link, peer, local}); });
    };
    events.received = [this](link_id link, message what) {
      note(link, [&] { received.push_back(std::move(what)); });
    };
    events.lost = [this](link_id link, const failure& why) {
      note(link, [&] {
        lost.push_back(why);
        ended[link.value] = true;
      });
    };
    events.rejected = [this](const std::string&, const failure& why) {
      std::scoped_lock lock{mutex};
      rejected.push_back(why);
      changed.notify_all();
    };
    events.hampered = [this](const std::string& why) {
      std::scoped_lock lock{mutex};
      hampered.push_back(why);
      changed.notify_all();
    };
    return events;
  }
  template <class Change>
  void note(link_id link, Change change) {
    std::scoped_lock lock{mutex};
    broken_promise = broken_promise || ended[link.value];
    change();
    changed.notify_all();
  }
};

/// A peer that does not keep to the protocol.
class bare_peer {
public:
  explicit bare_peer(const endpoint& where) {
    const auto to = detail::resolve(where);
    socket_ = troupe::descriptor{::socket(to->front().storage.ss_family, SOCK_STREAM, 0)};
    connected_ = ::connect(socket_.get(), to->front().get(), to->front().size_bytes) == 0;
  }
  bool connected() const { return connected_; }
  bool send(std::span<const std::byte> bytes) const {
    return ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL)
           == static_cast<ssize_t>(bytes.size());
  }
  bool send(const message& what) const { return send(bytes_of(what)); }
  /// Reads and drops bytes until the other side closes. Returns false after 10 s.
  bool wait_end() const {
    const auto deadline = steady_clock::now() + 10s;
    std::byte scratch[4096];
    while (steady_clock::now() < deadline)
      if (readable(100ms) && ::recv(socket_.get(), scratch, sizeof scratch, 0) <= 0)
        return true;
    return false;
  }
  /// Returns the bytes that have arrived so far.
  std::vector<std::byte> receive() const {
    std::vector<std::byte> bytes(1 << 16);
    const auto size = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    bytes.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
    return bytes;
  }
  bool readable(std::chrono::milliseconds patience) const {
    pollfd waited{socket_.get(), POLLIN, 0};
    return ::poll(&waited, 1, static_cast<int>(patience.count())) == 1;
  }
  int descriptor() const { return socket_.get(); }

private:
  troupe::descriptor socket_;
  bool connected_ = false;
};

/// Two transports and the link between them.
struct pair_of_sides {
  explicit pair_of_sides(transport_options options = {})
      : server(hello_of(), options), client(hello_of(), options),
        to_server(client.links.connect(server.listen())) {
    ready = client.wait_opened() && server.wait_opened();
    if (ready)
      to_client = server.only_link();
  }

  side server;
  side client;
  link_id to_server;
  link_id to_client;
  bool ready = false;
};

} // namespace troupe::test
