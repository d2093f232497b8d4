// Names of hosts that take long to look up, alone and on their way to a link.
#include "actors/links/name_resolver.hpp"
#include "tests/actors/transport_fixture.hpp"

#include "doctest/doctest.h"

#include <array>
#include <atomic>
#include <future>
#include <thread>

using namespace troupe;
using namespace troupe::test;
using detail::name_resolver;

namespace {

/// A name server that answers each question when it is told to.
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

TEST_CASE("all_who_wait_for_a_name_get_the_answer_of_one_look_up") {
  slow_names names;
  name_resolver resolver{names.function()};
  std::array<std::promise<std::size_t>, 3> told;
  const auto ask = [&](std::size_t i, const std::string& name) {
    resolver.ask({name, 1}, [&told, i](const auto& found) { told[i].set_value(found->size()); });
  };
  ask(0, "one");
  REQUIRE(names.wait_asked(1));
  ask(1, "other");
  ask(2, "one");
  names.allow();
  CHECK(told[0].get_future().get() == 1);
  CHECK(told[2].get_future().get() == 1);
  names.allow();
  CHECK(told[1].get_future().get() == 1);
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
      {"slow.example", 1}); // On the transport's thread, as an actor of its lane does.
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
  client.links.close(link); // Also one that is closed meanwhile is forgotten.
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
