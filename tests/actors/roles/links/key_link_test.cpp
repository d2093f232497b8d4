// Tests keys of sparse tables over real links: sent once, named afterwards, and never trusted.
#include "actors/graph/launch/actor_config.hpp"
#include "actors/roles/links/process_links.hpp"
#include "tests/actors/answering_kv.hpp"
#include "tests/actors/transport_fixture.hpp"

#include "caf/actor_system.hpp"
#include "caf/scoped_actor.hpp"
#include "caf/typed_event_based_actor.hpp"
#include "doctest/doctest.h"

#include <numeric>

namespace key_link_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

const member_id server_0{role::server, 0, {10}};

row_keys keys_from(std::uint64_t first, std::size_t count) {
  const auto keys = std::make_shared<std::vector<std::uint64_t>>(count);
  std::iota(keys->begin(), keys->end(), first);
  return {{0}, 1, count, {keys, keys->data()}};
}

/// Answers pulls: row k has the value k.
kv_service spawn_rows(caf::actor_system& system) {
  return test::spawn_answering(system, [](const request& what) {
    pull_reply answer;
    for (const row_keys& asked : what.pull->rows) {
      auto floats = buffer_pool{}.floats(asked.count);
      std::ranges::copy(asked.span(), floats.get());
      answer.rows.push_back({{asked.table, 1, asked.count, nullptr}, floats});
    }
    return reply{{}, std::move(answer)};
  });
}

struct process {
  explicit process(const member_id& who, const send_limits& limits = {})
      : links(std::make_unique<process_links>(system, hello{wire::protocol_version, 7, 5, who},
                                              log_sink{}, transport_options{}, limits)) {}
  actor_config config;
  caf::actor_system system{config};
  std::unique_ptr<process_links> links;
};

struct server_process : process {
  explicit server_process(const endpoint& where = {"127.0.0.1", 0}) : process(server_0) {
    links->serve_values(spawn_rows(system));
    address = *links->listen(where);
  }
  endpoint address;
};

struct client_process : process {
  explicit client_process(const endpoint& server, bool with_key_cache = true)
      : process({role::worker, 3, {20}}, {.key_cache = with_key_cache}),
        remote(links->to_servers()({server_0, to_string(server)})) {}

  /// Pulls the rows; returns whether their values are those of the keys.
  bool pull(const row_keys& asked, bool latest = false) {
    bool right = false;
    caf::scoped_actor self{system};
    self->request(remote, 10s, request{{}, pull_request{{}, latest, {}, {asked}}})
      .receive(
        [&](const reply& answer) {
          const auto& rows = answer.pulled->rows.at(0);
          right = std::equal(rows.values.get(), rows.values.get() + rows.where.floats(),
                             asked.keys.get());
        },
        [](const caf::error&) {});
    return right;
  }

  std::uint64_t sent_by(const row_keys& asked, bool latest = false) {
    const auto before = links->traffic().sent_bytes;
    CHECK(pull(asked, latest));
    return links->traffic().sent_bytes - before;
  }

  kv remote;
};

} // namespace

TEST_CASE("keys_cross_a_link_once_and_the_traffic_shows_it") {
  server_process server;
  client_process client{server.address}, other{server.address, false};
  const auto keys = keys_from(1000, 500);
  CHECK(client.sent_by(keys) > 4000);
  CHECK(client.sent_by(keys) < 300);
  CHECK(client.sent_by(keys_from(1000, 500)) < 300);
  CHECK(client.sent_by(keys, true) > 4000); // It may overtake, so it brings the keys.
  CHECK(client.sent_by(keys) < 300);
  const auto received = client.links->traffic().received_bytes;
  CHECK(received > 5 * 2000);
  CHECK(received < 5 * 2300);
  CHECK(other.sent_by(keys) > 4000);
  CHECK(other.sent_by(keys) > 4000);
}

TEST_CASE("a_new_link_begins_without_keys") {
  auto server = std::make_unique<server_process>();
  const auto address = server->address;
  client_process client{address};
  const auto keys = keys_from(0, 500);
  CHECK(client.pull(keys));
  CHECK(client.sent_by(keys) < 300);
  server.reset();
  server = std::make_unique<server_process>(address);
  // The first pull may still fail with the old link.
  const auto before = client.links->traffic().sent_bytes;
  CHECK((client.pull(keys) || client.pull(keys)));
  CHECK(client.links->traffic().sent_bytes - before > 4000);
  CHECK(client.sent_by(keys) < 300);
}

TEST_CASE("a_slot_that_was_never_filled_ends_the_link_and_no_other") {
  server_process server;
  client_process client{server.address};
  const auto keys = keys_from(0, 500);
  CHECK(client.pull(keys));
  test::side hostile{{wire::protocol_version, 7, 5, {role::worker, 4, {21}}}};
  const auto link = hostile.links.connect(server.address);
  auto asked = keys;
  asked.keys = nullptr;
  hostile.links.send(
    link,
    request_message{1, {{}, pull_request{{}, false, {}, {asked}}}, {{key_use::how::named, 0}}, {}});
  REQUIRE(hostile.wait_lost());
  CHECK(hostile.lost[0].code == errc::malformed);
  CHECK(test::contains(hostile.lost[0].text, "no keys in slot 0"));
  CHECK(client.sent_by(keys) < 300);
}

} // namespace key_link_test
