// Tests messages between replicas over real sockets: replica_link on one side, gateway on the
// other.
#include "actors/graph/launch/actor_config.hpp"
#include "actors/roles/links/process_links.hpp"
#include "actors/transport/frames/traffic_class.hpp"
#include "serialization/wire.hpp"
#include "tests/actors/answering_kv.hpp"
#include "tests/actors/transport_fixture.hpp"
#include "tests/serialization/random_chains.hpp"

#include "caf/actor_system.hpp"
#include "caf/send.hpp"
#include "caf/typed_event_based_actor.hpp"
#include "doctest/doctest.h"

#include <thread>

namespace troupe::test::replica_link_test {

namespace {

const member_id sender{role::server, 0, {10}};
const member_id receiver{role::server, 1, {11}};
const member_id unknown_member{role::server, 2, {12}};
const member_id worker{role::worker, 0, {20}};

hello hello_from(const member_id& who) { return {wire::protocol_version, 7, 5, who}; }

replica_message news(std::uint64_t index, const member_id& from = sender) {
  return {{3}, from, committed_message{{8}, index}};
}

/// A process with a server; records the messages to its replicas.
class process {
public:
  explicit process(const member_id& who, bool has_replicas = true)
      : links_(std::make_unique<process_links>(system_, hello_from(who))) {
    const auto values = spawn_answering(system_, [](const request&) { return std::nullopt; });
    links_->serve_values(values, has_replicas ? spawn_replicas() : replica_sink{});
  }

  endpoint listen(const endpoint& where = {"127.0.0.1", 0}) { return *links_->listen(where); }
  replica_sink peer_at(const endpoint& where, const member_id& who = receiver) {
    return links_->to_replicas()({who, to_string(where)});
  }

  std::vector<replica_message> received() {
    const std::scoped_lock lock{mutex_};
    return received_;
  }
  bool wait_received(std::size_t count, std::chrono::milliseconds patience = 10s) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, patience, [&] { return received_.size() >= count; });
  }

private:
  replica_sink spawn_replicas() {
    return system_.spawn([this](replica_sink::pointer) -> replica_sink::behavior_type {
      return {[this](const replica_message& what) {
        const std::scoped_lock lock{mutex_};
        received_.push_back(what);
        changed_.notify_all();
      }};
    });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<replica_message> received_;
  actor_config config_;
  caf::actor_system system_{config_};
  std::unique_ptr<process_links> links_;
};

/// Sends `what` until a copy arrives, as replicas do: messages are lost when a link breaks. Returns
/// false after 500 tries.
bool send_until_received(const replica_sink& by, process& to, const replica_message& what) {
  const auto before = to.received().size();
  for (int i = 0; i < 500; ++i) {
    caf::anon_send(by, what);
    if (to.wait_received(before + 1, 20ms))
      return true;
  }
  return false;
}

/// A link whose sender claims to be `who` and sends `what`.
struct bare_link {
  bare_link(const endpoint& where, const member_id& who, const replica_message& what)
      : from(hello_from(who)) {
    const auto link = from.links.connect(where);
    REQUIRE(from.wait_opened());
    from.links.send(link, what);
  }
  side from;
};

} // namespace

TEST_CASE("what_a_server_sends_to_another_ones_replicas_arrives_there_in_order_of_its_class") {
  process there{receiver}, here{sender};
  const auto peer = here.peer_at(there.listen());
  random_source random{1};
  std::vector<replica_message> sent;
  for (std::size_t kind = 0; kind < replica_message_kinds; ++kind)
    for (int i = 0; i < 3; ++i) {
      sent.push_back(random_peer(random, kind));
      sent.back().from = sender;
      caf::anon_send(peer, sent.back());
    }
  REQUIRE(there.wait_received(sent.size())); // The first messages wait for the link.
  const auto arrived = there.received();
  for (const auto traffic : {traffic_class::urgent, traffic_class::bulk}) {
    const auto others = [&](const replica_message& x) { return traffic_class_of(x) != traffic; };
    auto a = sent, b = arrived;
    std::erase_if(a, others);
    std::erase_if(b, others);
    CHECK(!a.empty());
    CHECK(std::ranges::equal(a, b, [](const auto& x, const auto& y) { return same(x, y); }));
  }
}

TEST_CASE("entries_and_copies_let_what_is_small_overtake_them") {
  random_source random{2};
  const traffic_class expected[] = {traffic_class::bulk, traffic_class::urgent,
                                    traffic_class::urgent, traffic_class::urgent,
                                    traffic_class::bulk};
  for (std::size_t kind = 0; kind < replica_message_kinds; ++kind)
    CHECK(traffic_class_of(random_peer(random, kind)) == expected[kind]);
}

TEST_CASE("credit_overtakes_parcels_which_keep_their_order_behind_the_first_message") {
  CHECK(traffic_class_of(channel_message{channel_open{}}) == traffic_class::bulk);
  CHECK(traffic_class_of(channel_message{parcel_message{}}) == traffic_class::bulk);
  CHECK(traffic_class_of(channel_message{parcels_taken{}}) == traffic_class::urgent);
}

TEST_CASE("a_peer_that_was_lost_is_found_again_with_what_is_sent_next") {
  auto there = std::make_unique<process>(receiver);
  process here{sender};
  const auto where = there->listen();
  const auto peer = here.peer_at(where);
  REQUIRE(send_until_received(peer, *there, news(1)));
  there = std::make_unique<process>(receiver);
  there->listen(where);
  REQUIRE(send_until_received(peer, *there, news(2)));
  CHECK(std::get<committed_message>(there->received().at(0).what).index == 2);
}

TEST_CASE("another_incarnation_at_a_peers_address_gets_nothing") {
  process there{receiver}, here{sender};
  const auto where = there.listen();
  const auto successor = here.peer_at(where);
  const auto predecessor = here.peer_at(where, {receiver.role, receiver.index, {1}});
  for (std::uint64_t i = 0; i < 50; ++i) {
    caf::anon_send(predecessor, news(66));
    REQUIRE(send_until_received(successor, there, news(i)));
  }
  for (const auto& x : there.received())
    CHECK(std::get<committed_message>(x.what).index != 66);
}

TEST_CASE("who_sends_in_anothers_name_is_cut_off_and_not_believed") {
  process there{receiver};
  const auto where = there.listen();
  bare_link honest{where, sender, news(1)};
  REQUIRE(there.wait_received(1));
  bare_link liar{where, sender, news(2, unknown_member)};
  CHECK(liar.from.wait_lost());
  bare_link older{where, sender, news(3, {sender.role, sender.index, {9}})};
  CHECK(older.from.wait_lost());
  CHECK(there.received().size() == 1);
  CHECK(honest.from.wait([&] { return honest.from.lost.empty(); }));
}

TEST_CASE("who_is_no_server_has_nothing_to_say_to_replicas") {
  process there{receiver};
  bare_link other{there.listen(), worker, news(1, worker)};
  CHECK(other.from.wait_lost());
  CHECK(there.received().empty());
}

TEST_CASE("a_server_without_replicas_cuts_off_who_sends_to_them") {
  process there{receiver, false};
  bare_link other{there.listen(), sender, news(1)};
  CHECK(other.from.wait_lost());
}

TEST_CASE("an_address_that_is_none_loses_what_is_sent_and_harms_nobody") {
  process there{receiver}, here{sender};
  caf::anon_send(here.peer_at({"", 0}), news(1));
  caf::anon_send(here.peer_at(there.listen()), news(2));
  REQUIRE(there.wait_received(1));
  CHECK(std::get<committed_message>(there.received().at(0).what).index == 2);
}

} // namespace troupe::test::replica_link_test
