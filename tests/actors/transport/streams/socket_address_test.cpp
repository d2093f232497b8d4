#include "actors/transport/transport.hpp"

#include "doctest/doctest.h"

namespace socket_address_test {

using namespace troupe;

TEST_CASE("ports_are_a_range_or_one_of_1_to_65535") {
  CHECK(*parse_port_range("40000-40100") == port_range{40000, 40100});
  CHECK(*parse_port_range("7") == port_range{7, 7});
  CHECK(to_string(port_range{1, 65535}) == "1-65535");
  for (const auto* text : {"", "-", "7-", "-7", "0-7", "8-7", "7-65536", "7-8-9", "7 - 8", "x"})
    CHECK(parse_port_range(text).error().text
          == "'" + std::string{text}
               + "' is not a range of ports from 1 to 65535, such as 40000-40100");
}

TEST_CASE("an_endpoint_survives_printing_and_parsing") {
  for (const std::string text :
       {"127.0.0.1:4000", "[::1]:65535", "node-3.example:1", "0.0.0.0:0"}) {
    CAPTURE(text);
    const auto parsed = parse_endpoint(text);
    REQUIRE(parsed);
    CHECK(to_string(*parsed) == text);
  }
  CHECK(*parse_endpoint("[::1]:7") == endpoint{"::1", 7});
}

TEST_CASE("text_that_is_no_endpoint_is_refused") {
  for (const std::string text : {"", ":", "host", "host:", ":4000", "host:65536", "host:-1",
                                 "host: 1", "host:1x", "::1:4000", "[::1:4000", "[]:1", "a b:1"}) {
    CAPTURE(text);
    const auto parsed = parse_endpoint(text);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().code == errc::invalid_argument);
    CHECK(parsed.error().text.find("'" + text + "'") != std::string::npos);
  }
}

TEST_CASE("loopback_addresses_are_told_from_others") {
  for (const std::string host : {"127.0.0.1", "127.9.8.7", "::1", "localhost", "::ffff:127.0.0.1",
                                 "127.1", "0x7f.1", "2130706433", "LocalHost"})
    CHECK_MESSAGE(is_loopback({host, 1}), host);
  for (const std::string host :
       {"0.0.0.0", "128.0.0.1", "10.0.0.1", "::", "example.org", "127.org"})
    CHECK_MESSAGE(!is_loopback({host, 1}), host);
}

TEST_CASE("addresses_of_no_single_host_are_known_in_each_spelling") {
  for (const std::string host :
       {"0.0.0.0", "0", "0x0", "0.0", "::", "0::0", "0:0:0:0:0:0:0:0", "::ffff:0.0.0.0",
        "::ffff:0:0", "255.255.255.255", "224.0.0.1", "239.9.9.9", "ff02::1"})
    CHECK_MESSAGE(is_no_host({host, 1}), host);
  for (const std::string host : {"127.0.0.1", "0.0.0.1", "1.0.0.0", "::1", "::ffff:0.0.0.1",
                                 "localhost", "zero.example.org", ""})
    CHECK_MESSAGE(!is_no_host({host, 1}), host);
}

TEST_CASE("a_route_is_two_numeric_addresses") {
  const auto loopback = route_to({"localhost", 4000});
  REQUIRE(loopback);
  CHECK(loopback->there == endpoint{"127.0.0.1", 4000});
  CHECK(loopback->here == "127.0.0.1");
  if (const auto six = route_to({"::1", 4000})) { // Some hosts have no IPv6.
    CHECK(six->there == endpoint{"::1", 4000});
    CHECK(six->here == "::1");
  }
  const auto none = route_to({"", 4000});
  REQUIRE_FALSE(none);
  CHECK(none.error().code == errc::invalid_argument);
}

} // namespace socket_address_test
