// Tests links between processes of one host: their choice of socket, and hostile peers.
#include "actors/transport/frames/arena_writer.hpp"
#include "actors/transport/frames/fragment_reader.hpp"
#include "actors/transport/streams/unix_stream.hpp"
#include "tests/actors/transport_fixture.hpp"

#include "doctest/doctest.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <fstream>
#include <thread>

namespace unix_link_test {

using namespace troupe;
using namespace troupe::test;

namespace {

std::size_t entries(const char* folder) {
  std::size_t count = 0;
  DIR* const opened = opendir(folder);
  while (readdir(opened) != nullptr)
    ++count;
  closedir(opened);
  return count;
}

/// Returns how many arenas this process has mapped, for writing and for reading.
std::size_t arenas_mapped() {
  std::ifstream maps{"/proc/self/maps"};
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);)
    count += contains(line, "troupe-arena");
  return count;
}

/// Returns the KiB of resident shared memory of this process.
std::size_t shared_kib() {
  std::ifstream status{"/proc/self/status"};
  for (std::string word; status >> word;)
    if (std::size_t found = 0; word == "RssShmem:" && status >> found)
      return found;
  return 0;
}

/// A peer that breaks the protocol on the Unix socket beside a TCP listener.
class bare_unix_peer {
public:
  explicit bare_unix_peer(const endpoint& beside)
      : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const auto to = detail::unix_address(beside);
    connected_ = ::connect(socket_.get(), to.get(), to.size_bytes) == 0;
  }
  bool connected() const { return connected_; }
  bool send(std::span<const std::byte> bytes, const std::vector<int>& passed = {}) const {
    std::vector<std::byte> control(CMSG_SPACE(passed.size() * sizeof(int)));
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (!passed.empty()) {
      header.msg_control = control.data();
      header.msg_controllen = control.size();
      cmsghdr* const rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(passed.size() * sizeof(int));
      std::memcpy(CMSG_DATA(rights), passed.data(), passed.size() * sizeof(int));
    }
    return ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  /// Returns whether the other side reports that it has mapped this side's arena, before it falls
  /// silent.
  bool arena_was_mapped(std::chrono::milliseconds silence) const {
    buffer_pool pool;
    detail::fragment_reader reader{pool};
    reader.admit(nullptr);
    std::size_t skip = detail::preamble_bytes;
    pollfd waited{socket_.get(), POLLIN, 0};
    while (::poll(&waited, 1, static_cast<int>(silence.count())) == 1) {
      std::array<std::byte, 65536> bytes;
      const ssize_t size = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
      if (size <= 0)
        return false;
      std::span<const std::byte> rest{bytes.data(), static_cast<std::size_t>(size)};
      const std::size_t skipped = std::min(skip, rest.size());
      skip -= skipped;
      for (rest = rest.subspan(skipped); !rest.empty();) {
        const auto taken = reader.take(rest);
        if (!taken)
          return false;
        rest = rest.subspan(*taken);
        if (reader.complete())
          (void)reader.decode();
      }
      if (reader.take_arena_mapped())
        return true;
    }
    return false;
  }

private:
  descriptor socket_;
  bool connected_ = false;
};

/// Returns a push whose values are said to be in a slot.
std::vector<std::byte> push_in_slot(std::uint32_t slot, std::size_t count) {
  const wire::frame made = wire::encode(push_of(1, count));
  std::vector<std::byte> head = made.head;
  std::memcpy(head.data() + detail::slot_number_offset, &slot, sizeof slot);
  return fragments_of(traffic_class::bulk, head);
}

descriptor sealed_memory(std::size_t size_bytes) {
  descriptor made{::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  REQUIRE(::ftruncate(made.get(), static_cast<off_t>(size_bytes)) == 0);
  REQUIRE(::fcntl(made.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
  return made;
}

struct pipe_pair {
  pipe_pair() {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    from = descriptor{ends[0]};
    to = descriptor{ends[1]};
  }
  std::uint16_t read() const {
    std::uint16_t port = 0;
    (void)!::read(from.get(), &port, sizeof port);
    return port;
  }
  void write(std::uint16_t port) const { (void)!::write(to.get(), &port, sizeof port); }

  descriptor from, to;
};

/// A process that answers each push with another push.
class echo {
public:
  template <class Meet>
  explicit echo(Meet meet) : process(::fork()) {
    if (process != 0)
      return;
    transport* self = nullptr;
    std::atomic<bool> set = false;
    link_events events;
    events.received = [&](link_id link, const message&) {
      while (!set)
        std::this_thread::yield();
      self->send(link, push_of(3, 100'000));
    };
    transport links{hello_of(), events};
    self = &links;
    set = true;
    meet(links, tell);
    ::pause();
    ::_exit(0);
  }
  ~echo() {
    ::kill(process, SIGKILL);
    ::waitpid(process, nullptr, 0);
  }

  const pipe_pair tell; ///< Made before the fork.
  const pid_t process;
};

void kill_in_mid_transfer(const echo& child, side& here, link_id link, int round) {
  const request_message push = push_of(1, 300'000);
  for (std::size_t i = 1; i <= 20; ++i) {
    here.links.send(link, push);
    REQUIRE(here.wait_received(i / 2));
  }
  for (int i = 0; i < round * 20; ++i)
    here.links.send(link, push);
  ::kill(child.process, SIGKILL);
  for (int i = 0; i < 20; ++i)
    here.links.send(link, push);
  REQUIRE(here.wait_lost());
  CHECK_FALSE(contains(here.lost[0].text, "said nothing")); // The end is seen, not the silence.
  // Arrived messages stay readable.
  const auto sent = pattern(100'000, 0);
  for (const message& each : here.received)
    CHECK(only_request(each).what.push->pieces[0].values.get()[99'999] == sent.get()[99'999]);
}

} // namespace

TEST_CASE("processes_of_one_host_meet_over_the_unix_socket_and_others_over_tcp") {
  struct way {
    bool server, client;
    std::string listen, connect;
    bool unix_expected;
  };
  for (const way& each : {way{true, true, "127.0.0.1", "127.0.0.1", true},
                          way{true, true, "0.0.0.0", "127.0.0.1", true},
                          way{true, true, "127.0.0.1", "localhost", true},
                          way{true, false, "127.0.0.1", "127.0.0.1", false},
                          way{false, true, "127.0.0.1", "127.0.0.1", false}}) {
    CAPTURE(each.listen);
    CAPTURE(each.connect);
    side server{hello_of(), {.unix_sockets = each.server}};
    side client{hello_of(), {.unix_sockets = each.client}};
    const auto where = server.links.listen({each.listen, 0});
    REQUIRE(where);
    client.links.connect({each.connect, where->port});
    REQUIRE(client.wait_opened());
    CHECK(client.opened[0].local.empty() == each.unix_expected);
  }
}

TEST_CASE("a_taken_name_is_no_error_and_its_owner_no_obstacle") {
  side first;
  const endpoint where = first.listen();
  const descriptor again = detail::open_unix_listener(where);
  CHECK_FALSE(again);
  // Another socket has the name of a TCP listener, but does not serve it.
  const auto made = make_listener({"127.0.0.1", 0});
  REQUIRE(made);
  const endpoint other = *local_endpoint(*made);
  const descriptor squatter = detail::open_unix_listener(other);
  REQUIRE(squatter);
  side server;
  REQUIRE(server.links.listen_on(*made));
  side client{hello_of(), {.unix_sockets = false}};
  client.links.connect(other);
  CHECK(client.wait_opened());
}

TEST_CASE("an_arena_that_was_passed_is_mapped_and_read") {
  side server;
  const bare_unix_peer peer{server.listen()};
  REQUIRE(peer.connected());
  const auto memory = sealed_memory(std::size_t{1} << 20);
  const auto values = pattern(5000, 0);
  REQUIRE(::pwrite(memory.get(), values.get(), 20'000, 40 * detail::granule_bytes) == 20'000);
  REQUIRE(peer.send(bytes_of(hello_of()), {memory.get()}));
  CHECK(peer.arena_was_mapped(10s));
  REQUIRE(peer.send(push_in_slot(40, 5000)));
  REQUIRE(server.wait_received(1));
  const auto& got = only_request(server.received[0]).what.push->pieces.at(0);
  CHECK(std::equal(values.get(), values.get() + 5000, got.values.get()));
  std::uint32_t word = 1;
  REQUIRE(::pwrite(memory.get(), &word, sizeof word, 40 * sizeof word) == sizeof word);
  server.received.clear();
  REQUIRE(::pread(memory.get(), &word, sizeof word, 40 * sizeof word) == sizeof word);
  CHECK(word == 0);
}

TEST_CASE("slots_that_are_none_end_the_link") {
  const std::size_t mapped = arenas_mapped();
  for (const std::uint32_t slot : {1u, 255u, 256u, 0xffffffffu}) {
    CAPTURE(slot);
    side server;
    const bare_unix_peer peer{server.listen()};
    const auto memory = sealed_memory(std::size_t{1} << 20);
    REQUIRE(peer.send(bytes_of(hello_of()), {memory.get()}));
    REQUIRE(peer.send(push_in_slot(slot, slot == 1 ? 1 << 20 : 5000)));
    REQUIRE(server.wait_lost());
    CHECK(server.lost[0].code == errc::malformed);
    CHECK(server.received.empty());
  }
  CHECK(arenas_mapped() == mapped);
}

TEST_CASE("descriptors_that_are_no_arena_are_closed_and_the_link_does_without") {
  { side warm_up; }
  const std::size_t before = entries("/proc/self/fd");
  int pipe_ends[2];
  REQUIRE(::pipe(pipe_ends) == 0);
  const descriptor reading{pipe_ends[0]}, writing{pipe_ends[1]};
  const descriptor folder{::open("/", O_RDONLY | O_DIRECTORY)};
  const descriptor unsealed{::memfd_create("test", MFD_ALLOW_SEALING)};
  const auto memory = sealed_memory(std::size_t{1} << 20), small = sealed_memory(8192),
             odd = sealed_memory((std::size_t{1} << 20) + 1);
  REQUIRE(::ftruncate(unsealed.get(), 1 << 20) == 0);
  const std::size_t descriptors = entries("/proc/self/fd");
  const std::vector<std::vector<int>> wrong{
    {},
    {reading.get()},
    {writing.get()},
    {folder.get()},
    {unsealed.get()},
    {small.get()},
    {odd.get()},
    {memory.get(), memory.get()},
    std::vector<int>(200, memory.get()),
  };
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    CAPTURE(i);
    side server;
    const bare_unix_peer peer{server.listen()};
    REQUIRE(peer.send(bytes_of(hello_of()), wrong[i]));
    REQUIRE(server.wait_opened());
    CHECK_FALSE(peer.arena_was_mapped(200ms));
    // More descriptors come with every message.
    for (std::uint64_t j = 0; j < 20; ++j)
      REQUIRE(peer.send(bytes_of(reply_message{j, {push_reply{}, {}}}),
                        {memory.get(), memory.get(), folder.get()}));
    REQUIRE(server.wait_received(20));
    // Open descriptors: epoll, eventfd, two listeners, both ends of the link, its own arena.
    CHECK(entries("/proc/self/fd") <= descriptors + 7);
    REQUIRE(peer.send(push_in_slot(40, 5000)));
    REQUIRE(server.wait_lost());
    CHECK(server.lost[0].code == errc::malformed);
  }
  CHECK(entries("/proc/self/fd") == descriptors);
  CHECK(before < descriptors);
}

TEST_CASE("a_stranger_leaves_no_descriptor_behind") {
  side server{hello_of(7, 12345)};
  const endpoint where = server.listen();
  const auto memory = sealed_memory(std::size_t{1} << 20);
  const std::size_t descriptors = entries("/proc/self/fd");
  for (int i = 0; i < 50; ++i) {
    const bare_unix_peer peer{where};
    const auto first = i % 2 == 0 ? bytes_of(hello_of(7, 1)) : std::vector<std::byte>(50);
    REQUIRE(peer.send(first, {memory.get()}));
  }
  REQUIRE(server.wait_rejected(50));
  CHECK(wait_until([&] { return entries("/proc/self/fd") == descriptors; }));
}

TEST_CASE("neither_descriptors_nor_threads_nor_arenas_leak_over_many_links") {
  side server;
  const endpoint where = server.listen();
  { pair_of_sides warm_up; }
  const std::size_t descriptors = entries("/proc/self/fd"), threads = entries("/proc/self/task"),
                    mapped = arenas_mapped();
  for (std::size_t i = 1; i <= 200; ++i) {
    side client;
    const link_id link = client.links.connect(where);
    REQUIRE(client.wait_opened());
    client.links.send(link, push_of(1, 10'000));
    client.links.send(link, push_of(2, 10'000));
    REQUIRE(server.wait_received(2 * i));
    if (i % 2 == 0)
      client.links.close(link);
    else
      server.links.close(server.opened.at(i - 1).link);
    REQUIRE(server.wait_lost(i));
    REQUIRE(client.wait_lost());
  }
  server.received.clear();
  // A joined thread stays in the list for a moment.
  CHECK(wait_until([&] { return entries("/proc/self/fd") <= descriptors; }));
  CHECK(wait_until([&] { return entries("/proc/self/task") <= threads; }));
  CHECK(wait_until([&] { return arenas_mapped() <= mapped; }));
}

TEST_CASE("an_acceptor_that_is_killed_in_mid_transfer_leaves_nothing_behind") {
  { side warm_up; }
  const std::size_t descriptors = entries("/proc/self/fd"), mapped = arenas_mapped();
  for (int round = 0; round < 10; ++round) {
    CAPTURE(round);
    const echo child{[](transport& links, const pipe_pair& tell) {
      tell.write(links.listen({"127.0.0.1", 0})->port);
    }};
    side client;
    const link_id link = client.links.connect({"127.0.0.1", child.tell.read()});
    REQUIRE(client.wait_opened());
    kill_in_mid_transfer(child, client, link, round);
  }
  CHECK(arenas_mapped() == mapped);
  CHECK(entries("/proc/self/fd") == descriptors);
}

TEST_CASE("a_connector_that_is_killed_in_mid_transfer_leaves_nothing_behind") {
  { side warm_up; }
  const std::size_t descriptors = entries("/proc/self/fd"), mapped = arenas_mapped();
  for (int round = 0; round < 10; ++round) {
    CAPTURE(round);
    const echo child{[](transport& links, const pipe_pair& tell) {
      links.connect({"127.0.0.1", tell.read()});
    }};
    side server;
    child.tell.write(server.listen().port);
    REQUIRE(server.wait_opened());
    kill_in_mid_transfer(child, server, server.only_link(), round);
  }
  CHECK(arenas_mapped() == mapped);
  CHECK(entries("/proc/self/fd") == descriptors);
}

TEST_CASE("an_idle_link_gives_the_memory_of_its_arena_back") {
  pair_of_sides ends{{.silence_timeout = 3000ms}};
  REQUIRE(ends.ready);
  const std::size_t before = shared_kib();
  for (std::size_t round = 1; round <= 2; ++round) {
    ends.client.links.send(ends.to_server, push_of(round, std::size_t{8} << 20));
    REQUIRE(ends.server.wait_received(1));
    CHECK(shared_kib() > before + (std::size_t{30} << 10));
    {
      const std::scoped_lock lock{ends.server.mutex};
      ends.server.received.clear();
    }
    CHECK(wait_until([&] { return shared_kib() < before + (std::size_t{4} << 10); }));
  }
  CHECK(ends.client.lost.empty());
}

} // namespace unix_link_test
