// Tests names of hosts that take long to look up, alone and on their way to a link.
#include "actors/transport/name_resolver.hpp"
#include "tests/actors/transport_fixture.hpp"

#include "doctest/doctest.h"

#include <array>
#include <atomic>
#include <future>
#include <thread>

namespace name_resolver_test {

using namespace troupe;
using namespace troupe::test;
using detail::name_resolver;

namespace {

/// A name server that answers each question when the test allows it.
struct slow_names {
  explicit slow_names(const endpoint& meant = {"127.0.0.1", 1}) : answer(detail::resolve(meant)) {}

  name_resolver::addresses look_up() {
    std::unique_lock lock{mutex};
    ++asked;
    changed.notify_all();
    changed.wait_for(lock, 10s, [&] { return allowed > 0; });
    --allowed;
    return answer;
  }
  auto function() {
    return [this](const endpoint&) { return look_up(); };
  }
  void allow(int count = 1) {
    const std::scoped_lock lock{mutex};
    allowed += count;
    changed.notify_all();
  }
  bool wait_asked(int count) {
    std::unique_lock lock{mutex};
    return changed.wait_for(lock, 10s, [&] { return asked >= count; });
  }

  std::mutex mutex;
  std::condition_variable changed;
  int asked = 0;
  int allowed = 0;
  name_resolver::addresses answer;
};

transport_options options_with(slow_names& names) {
  transport_options options;
  options.resolve = names.function();
  return options;
}

} // namespace

TEST_CASE("a_number_is_no_name") {
  CHECK(detail::numeric_address({"127.0.0.1", 4000}));
  CHECK(detail::numeric_address({"::1", 4000}));
  CHECK_FALSE(detail::numeric_address({"localhost", 4000}));
  CHECK_FALSE(detail::numeric_address({"no.such.host.invalid", 4000}));
}

TEST_CASE("an_address_takes_a_port_in_both_families") {
  for (const char* host : {"127.0.0.1", "::1"}) {
    auto found = *detail::numeric_address({host, 1});
    detail::set_port(found.front(), 4000);
    CHECK(*detail::endpoint_of(found.front()) == endpoint{host, 4000});
  }
}

TEST_CASE("all_who_wait_for_a_name_get_the_answer_of_one_look_up_with_their_own_port") {
  slow_names names;
  name_resolver resolver{names.function()};
  std::array<std::promise<endpoint>, 4> told;
  const auto ask = [&](std::size_t i, const endpoint& where) {
    resolver.ask(where, [&told, i](const auto& found) {
      told[i].set_value(*detail::endpoint_of(found->front()));
    });
  };
  const auto answered = [&](std::size_t i) { return told[i].get_future().get(); };
  ask(0, {"one", 1});
  REQUIRE(names.wait_asked(1));
  ask(1, {"other", 4});
  ask(2, {"one", 2});
  ask(3, {"one", 1});
  names.allow();
  CHECK(answered(0) == endpoint{"127.0.0.1", 1});
  CHECK(answered(2) == endpoint{"127.0.0.1", 2});
  CHECK(answered(3) == endpoint{"127.0.0.1", 1});
  names.allow();
  CHECK(answered(1) == endpoint{"127.0.0.1", 4});
  CHECK(names.asked == 2);
}

TEST_CASE("a_name_that_is_not_known_is_looked_up_once_for_all_who_wait_and_again_for_later_ones") {
  slow_names names;
  names.answer = failure{errc::invalid_argument, "cannot resolve 'nowhere'"};
  name_resolver resolver{names.function()};
  std::array<std::promise<std::string>, 3> told;
  const auto ask = [&](std::size_t i, std::uint16_t port) {
    resolver.ask({"nowhere", port},
                 [&told, i](const auto& found) { told[i].set_value(found.error().text); });
  };
  ask(0, 1);
  REQUIRE(names.wait_asked(1));
  ask(1, 2);
  names.allow(2); // The second one lets a failing test end.
  for (std::size_t i : {0, 1})
    CHECK(told[i].get_future().get() == "cannot resolve 'nowhere'");
  CHECK(names.asked == 1);
  ask(2, 3);
  CHECK(told[2].get_future().get() == "cannot resolve 'nowhere'");
  CHECK(names.asked == 2);
}

TEST_CASE("a_resolver_that_stops_ends_its_thread_and_answers_nobody") {
  slow_names names;
  std::atomic<int> told = 0;
  name_resolver resolver{names.function()};
  resolver.stop();
  resolver.ask({"late", 1}, [&](const auto&) { ++told; });
  name_resolver other{names.function()};
  other.ask({"slow", 1}, [&](const auto&) { ++told; });
  REQUIRE(names.wait_asked(1));
  std::thread stopping{[&] { other.stop(); }};
  names.allow();
  stopping.join();
  CHECK(names.asked == 1);
}

TEST_CASE("a_name_that_takes_long_holds_up_no_other_link") {
  side server;
  const endpoint where = server.listen();
  slow_names names{where};
  std::promise<void> asked;
  std::atomic<int> opened = 0;
  std::unique_ptr<transport> client;
  link_events events;
  events.opened = [&](link_id, const hello&, const std::string&) {
    if (opened++ != 0)
      return;
    client->connect(
      {"slow.example", where.port}); // This runs on the transport's thread, as its actors do.
    asked.set_value();
  };
  client = std::make_unique<transport>(hello_of(), events, options_with(names));
  const link_id quick = client->connect(where);
  asked.get_future().get();
  REQUIRE(names.wait_asked(1));
  client->send(quick, push_of(1, 1000));
  CHECK(server.wait_received(1));
  CHECK(opened == 1);
  names.allow();
  CHECK(server.wait_opened(2));
  client.reset();
}

TEST_CASE("the_deadline_of_a_handshake_covers_the_look_up") {
  slow_names names;
  auto options = options_with(names);
  options.handshake_timeout = 50ms;
  side client{hello_of(), options};
  client.links.connect({"slow.example", 1});
  REQUIRE(client.wait_lost());
  CHECK(client.lost[0].code == errc::peer_lost);
  CHECK(client.lost[0].text == "slow.example:1 cannot be reached within 50 ms");
  const auto link = client.links.connect({"slow.example", 2});
  client.links.close(link); // A link that is closed meanwhile is forgotten too.
  REQUIRE(client.wait_lost(2));
  names.allow(2);
}

TEST_CASE("a_transport_that_ends_during_a_look_up_says_that_its_link_is_lost") {
  slow_names names;
  side client{hello_of(), options_with(names)};
  client.links.connect({"slow.example", 1});
  REQUIRE(names.wait_asked(1));
  std::thread stopping{[&] { client.links.stop(); }};
  CHECK(client.wait_lost());
  names.allow();
  stopping.join();
  client.links.connect({"slow.example", 1});
  CHECK(names.asked == 1);
}

} // namespace name_resolver_test
