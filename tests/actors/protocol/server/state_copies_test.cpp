#include "actors/protocol/server/state_copies.hpp"

#include "tests/actors/host_effect_lines.hpp"

#include "doctest/doctest.h"

#include <string>
#include <vector>

namespace troupe::state_copies_test {

namespace {

using namespace std::chrono_literals;
using lines = std::vector<std::string>;

member_id server(std::uint32_t index) { return {role::server, index, {10 + index}}; }

struct fixture {
  bool send_part(const member_id& to, std::uint64_t config, std::uint32_t part) {
    bool is_sent = false;
    told = test::lines_of([&](host_effects& effects) {
      is_sent = copies.send_part(to, {{config}, part, {}}, effects);
    });
    return is_sent;
  }
  void send(const member_id& to, std::uint64_t config) {
    told = test::lines_of([&](host_effects& effects) {
      copies.send(to, {{config}, 0, {}}, {{config}, 4, 0, {}}, effects);
    });
  }
  void supersede(std::uint64_t config) {
    told = test::lines_of([&](host_effects& effects) { copies.supersede({config}, effects); });
  }
  void joined(const member_id& from, std::uint64_t config) {
    told = test::lines_of([&](host_effects& effects) { copies.joined(from, {config}, effects); });
  }
  void ask(std::uint64_t config, time_point now) {
    told = test::lines_of([&](host_effects& effects) {
      copies.ask({server(1), {config}}, now, effects);
    });
  }

  state_copies copies{5s};
  lines told;
};

} // namespace

TEST_CASE("values are pinned once for a joiner, then parts of them are sent") {
  fixture f;
  CHECK_FALSE(f.send_part(server(1), 2, 0));
  f.send(server(1), 2);
  CHECK(f.told == lines{"pin and send part 0 to 1"});
  CHECK(f.send_part(server(1), 2, 3));
  CHECK(f.told == lines{"send part 3 to 1"});
  CHECK_FALSE(f.send_part(server(2), 2, 0));
  CHECK_FALSE(f.send_part(server(1), 3, 0));
}

TEST_CASE("a copy ends with the next configuration, and when its joiner has it") {
  fixture f;
  f.send(server(1), 2);
  f.supersede(2);
  CHECK(f.told.empty());
  f.supersede(3);
  CHECK(f.told == lines{"end copy"});
  f.supersede(4);
  CHECK(f.told.empty());
  f.send(server(1), 4);
  f.joined(server(2), 4);
  f.joined(server(1), 3);
  CHECK(f.told.empty());
  f.joined(server(1), 4);
  CHECK(f.told == lines{"end copy"});
  CHECK_FALSE(f.send_part(server(1), 4, 1));
}

TEST_CASE("a request that came too early is handed out once, in a later generation too") {
  fixture f;
  f.copies.keep_early(server(1), {{5}, 0, {}});
  f.copies.begin_generation();
  CHECK(f.copies.take_early().value().second.config == config_id{5});
  CHECK_FALSE(f.copies.take_early());
}

TEST_CASE("a copy is asked for again when no part has come for some time") {
  fixture f;
  f.ask(2, 1h);
  CHECK(f.told == lines{"ask copy 2"});
  CHECK(f.copies.awaits({2}));
  f.copies.advanced(1h + 3s);
  f.ask(2, 1h + 7s);
  CHECK(f.told.empty());
  f.ask(2, 1h + 8s);
  CHECK(f.told == lines{"ask copy 2"});
  f.ask(3, 1h + 8s);
  CHECK(f.told == lines{"ask copy 3"});
  CHECK_FALSE(f.copies.awaits({2}));
  f.copies.failed();
  f.ask(3, 1h + 8s);
  CHECK(f.told == lines{"ask copy 3"});
}

TEST_CASE("a whole copy is handed out once, after its save where it has one") {
  fixture f;
  f.ask(2, 1h);
  f.copies.whole({{2}, 4, 0, {}}, false);
  CHECK_FALSE(f.copies.awaits({2}));
  CHECK_FALSE(f.copies.saves());
  CHECK(f.copies.take().index == 4);
  CHECK_FALSE(f.copies.held());
  f.ask(3, 1h);
  f.copies.whole({{3}, 5, 0, {}}, true);
  CHECK(f.copies.saves());
  f.copies.saved();
  CHECK_FALSE(f.copies.saves());
  CHECK(f.copies.take().index == 5);
}

TEST_CASE("another generation forgets copies that are sent, asked for, held and saved") {
  fixture f;
  f.send(server(1), 2);
  f.ask(2, 1h);
  f.copies.whole({{2}, 4, 0, {}}, true);
  f.ask(3, 1h);
  f.copies.begin_generation();
  CHECK_FALSE(f.send_part(server(1), 2, 0));
  CHECK_FALSE(f.copies.held());
  CHECK_FALSE(f.copies.awaits({3}));
  CHECK_FALSE(f.copies.saves());
}

} // namespace troupe::state_copies_test
