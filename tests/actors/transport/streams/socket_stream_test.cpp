// Tests how much of a TCP stream waits in the kernel.
#include "actors/transport/streams/socket_stream.hpp"

#include "doctest/doctest.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <vector>

namespace socket_stream_test {

using namespace troupe;
using namespace troupe::detail;

TEST_CASE("the_kernel_queues_little_that_it_cannot_send") {
  const auto listener = open_listener({"127.0.0.1", 0});
  REQUIRE(listener);
  const auto where = resolve(*local_endpoint(listener->get()));
  int error = 0;
  const auto sender = socket_stream::connect(where->front(), {}, error);
  REQUIRE(sender);
  pollfd waited{listener->get(), POLLIN, 0};
  REQUIRE(::poll(&waited, 1, 10'000) == 1);
  const descriptor silent{::accept(listener->get(), nullptr, nullptr)};
  REQUIRE(*sender->establish());
  const int socket = sender->poll_descriptor();
  int limit = 0;
  socklen_t size = sizeof limit;
  REQUIRE(::getsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &limit, &size) == 0);
  CHECK(limit == 1 << 20);
  std::vector<char> bulk(std::size_t{32} << 20);
  iovec part{bulk.data(), bulk.size()};
  while (sender->write({&part, 1}).how == transfer::status::moved)
    ;
  int unsent = 0;
  REQUIRE(::ioctl(socket, SIOCOUTQNSD, &unsent) == 0);
  CHECK(unsent > 0);
  CHECK(unsent <= limit + (128 << 10)); // The kernel checks before it takes a piece, not after.
}

} // namespace socket_stream_test
