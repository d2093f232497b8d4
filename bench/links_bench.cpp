// How fast a link carries pushes between two processes, against a plain loop of sendmsg and recv on
// one socket in the same run. `--full` takes long enough for steady figures; `--congestion NAME`
// sets TCP's congestion control for both; `--json` prints one object a line.
#include "actors/links/endpoint.hpp"
#include "actors/links/socket.hpp"
#include "actors/links/transport.hpp"
#include "serialization/wire.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <semaphore>
#include <string>
#include <string_view>
#include <vector>

using namespace troupe;
using clock_type = std::chrono::steady_clock;

namespace {

constexpr std::size_t repetitions = 5;
constexpr std::size_t window = 4; ///< Pushes that wait for their receipts.

struct settings {
  bool full = false;
  bool json = false;
  std::string congestion_control;
};

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::exit(1);
}

double seconds_since(clock_type::time_point begin) {
  return std::chrono::duration<double>(clock_type::now() - begin).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

/// Runs `body` in a process of its own that ends with this one.
template <class Body>
void spawn(Body body) {
  if (::fork() != 0)
    return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  body();
  ::_exit(0);
}

// -- the plain loop ---------------------------------------------------------------------------

/// What goes before the values, and comes back as the receipt.
struct raw_header {
  std::uint64_t bytes = 0;
  std::uint64_t request = 0;
};

bool receive_all(int socket, void* to, std::size_t size) {
  auto* at = static_cast<char*>(to);
  while (size != 0) {
    const ssize_t got = ::recv(socket, at, size, 0);
    if (got <= 0)
      return false;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

void send_all(int socket, std::array<iovec, 2> parts) {
  std::size_t first = 0;
  while (first < parts.size()) {
    msghdr header{};
    header.msg_iov = parts.data() + first;
    header.msg_iovlen = parts.size() - first;
    ssize_t sent = ::sendmsg(socket, &header, MSG_NOSIGNAL);
    if (sent < 0)
      give_up("sendmsg");
    while (first < parts.size() && sent >= static_cast<ssize_t>(parts[first].iov_len))
      sent -= static_cast<ssize_t>(parts[first++].iov_len);
    if (first < parts.size()) {
      parts[first].iov_base = static_cast<char*>(parts[first].iov_base) + sent;
      parts[first].iov_len -= static_cast<std::size_t>(sent);
    }
  }
}

void raw_server(int listener, std::size_t bytes_max, const settings& chosen) {
  pollfd waited{listener, POLLIN, 0};
  ::poll(&waited, 1, -1);
  const int socket = ::accept4(listener, nullptr, nullptr, 0);
  const detail::stream_socket owned{detail::descriptor{socket}};
  owned.tune({{}, chosen.congestion_control});
  std::vector<char> values(bytes_max);
  raw_header header;
  while (receive_all(socket, &header, sizeof header)
         && receive_all(socket, values.data(), header.bytes))
    send_all(socket, {{{&header, sizeof header}, {nullptr, 0}}});
}

class raw_client {
public:
  raw_client(const endpoint& where, const settings& chosen) {
    const auto to = detail::resolve(where);
    const int made = ::socket(to->front().storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(made, to->front().get(), to->front().size_bytes) != 0)
      give_up("connect");
    socket_ = detail::stream_socket{detail::descriptor{made}};
    socket_.tune({{}, chosen.congestion_control});
  }

  double run(float* values, std::size_t bytes, std::size_t count, std::size_t in_flight) {
    const auto begin = clock_type::now();
    raw_header header{bytes, 0}, receipt;
    for (std::size_t i = 0; i < count + in_flight; ++i) {
      if (i >= in_flight && !receive_all(socket_.poll_descriptor(), &receipt, sizeof receipt))
        give_up("recv");
      if (i < count)
        send_all(socket_.poll_descriptor(), {{{&header, sizeof header}, {values, bytes}}});
    }
    return seconds_since(begin);
  }

private:
  detail::stream_socket socket_;
};

// -- the link ---------------------------------------------------------------------------------

hello bench_hello() { return {wire::protocol_version, 1, 0, {}}; }

transport_options bench_options(const settings& chosen) {
  transport_options options;
  options.congestion_control = chosen.congestion_control;
  return options;
}

void link_server(int listener, const settings& chosen) {
  transport* self = nullptr;
  link_events events;
  events.received = [&self](link_id link, message what) {
    self->send(link, reply_message{std::get<request_message>(what).number, {receipt{}, {}}});
  };
  transport links{bench_hello(), events, bench_options(chosen)};
  self = &links;
  if (!links.listen_on(listener))
    give_up("listen_on");
  ::pause();
}

class link_client {
public:
  link_client(const endpoint& where, const settings& chosen)
      : links_(bench_hello(), events(), bench_options(chosen)), link_(links_.connect(where)) {
    opened_.acquire();
  }

  ~link_client() { done_ = true; }

  double run(const std::shared_ptr<float>& values, std::size_t bytes, std::size_t count,
             std::size_t in_flight) {
    const std::size_t floats = bytes / sizeof(float);
    const auto begin = clock_type::now();
    for (std::size_t i = 0; i < count + in_flight; ++i) {
      if (i >= in_flight)
        receipts_.acquire();
      if (i >= count)
        continue;
      update push;
      push.tables = {{0}};
      push.pieces = {{{{0}, 0, floats}, values}};
      links_.send(link_, request_message{i, {std::move(push), {}}});
    }
    return seconds_since(begin);
  }

private:
  link_events events() {
    link_events made;
    made.opened = [this](link_id, const hello&, const std::string&) { opened_.release(); };
    made.received = [this](link_id, const message&) { receipts_.release(); };
    made.lost = [this](link_id, const failure& why) {
      if (done_)
        return;
      std::fprintf(stderr, "link lost: %s\n", why.text.c_str());
      ::_exit(1);
    };
    return made;
  }

  std::counting_semaphore<> opened_{0};
  std::counting_semaphore<> receipts_{0};
  std::atomic<bool> done_ = false;
  transport links_;
  link_id link_;
};

// -- report -----------------------------------------------------------------------------------

/// Seconds of one message.
struct figures {
  std::vector<double> raw, link;
};

void print(const settings& chosen, const char* what, std::size_t bytes, const figures& took) {
  const double raw = median(took.raw), link = median(took.link);
  const auto rate = [bytes](double seconds) { return 1e-9 * static_cast<double>(bytes) / seconds; };
  if (chosen.json)
    std::printf("{\"case\": \"%s\", \"bytes\": %zu, \"link_us\": %.2f, \"link_us_min\": %.2f, "
                "\"link_us_max\": %.2f, \"raw_us\": %.2f, \"link_gb_s\": %.4f, \"raw_gb_s\": %.4f, "
                "\"ratio\": %.3f}\n",
                what, bytes, 1e6 * link,
                1e6 * *std::min_element(took.link.begin(), took.link.end()),
                1e6 * *std::max_element(took.link.begin(), took.link.end()), 1e6 * raw, rate(link),
                rate(raw), raw / link);
  else
    std::printf("%-10s %9zu B  link %9.1f us %7.3f GB/s   raw %9.1f us %7.3f GB/s   ratio %.2f\n",
                what, bytes, 1e6 * link, rate(link), 1e6 * raw, rate(raw), raw / link);
  std::fflush(stdout);
}

settings parse(int argc, char** argv) {
  settings chosen;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--full") {
      chosen.full = true;
    } else if (word == "--json") {
      chosen.json = true;
    } else if (word == "--congestion" && i + 1 < argc) {
      chosen.congestion_control = argv[++i];
    } else {
      std::fprintf(stderr, "usage: links_bench [--full] [--json] [--congestion NAME]\n");
      std::exit(1);
    }
  }
  return chosen;
}

} // namespace

int main(int argc, char** argv) {
  const settings chosen = parse(argc, argv);
  std::vector<std::size_t> sizes{4, 4 << 10, 64 << 10, 1 << 20, 4 << 20};
  if (chosen.full)
    sizes.push_back(std::size_t{40} << 20);
  const std::size_t bytes_max = sizes.back();
  const std::size_t bytes_a_run = std::size_t{chosen.full ? 1024u : 24u} << 20;
  const std::size_t messages_max = chosen.full ? 20'000 : 500;

  const auto raw_listener = make_listener({"127.0.0.1", 0});
  const auto link_listener = make_listener({"127.0.0.1", 0});
  if (!raw_listener || !link_listener)
    give_up("listen");
  // Both servers are forked before this process has threads.
  spawn([&] { raw_server(*raw_listener, bytes_max, chosen); });
  spawn([&] { link_server(*link_listener, chosen); });
  raw_client raw{*local_endpoint(*raw_listener), chosen};
  link_client link{*local_endpoint(*link_listener), chosen};

  buffer_pool pool;
  const auto values = pool.floats(bytes_max / sizeof(float));
  std::fill_n(values.get(), bytes_max / sizeof(float), 1.0f);
  const auto measure = [&](const char* what, std::size_t bytes, std::size_t in_flight) {
    const std::size_t count = std::clamp<std::size_t>(bytes_a_run / bytes, 6, messages_max);
    figures took;
    raw.run(values.get(), bytes, in_flight, in_flight);
    link.run(values, bytes, in_flight, in_flight);
    for (std::size_t i = 0; i < repetitions; ++i) {
      const auto each = static_cast<double>(count);
      took.raw.push_back(raw.run(values.get(), bytes, count, in_flight) / each);
      took.link.push_back(link.run(values, bytes, count, in_flight) / each);
    }
    print(chosen, what, bytes, took);
  };
  measure("round trip", 4, 1);
  for (const std::size_t bytes : sizes)
    measure("window 4", bytes, window);
}
