#include "actors/protocol/chain.hpp"

#include "doctest/doctest.h"

#include <string>
#include <variant>
#include <vector>

namespace troupe::chain_test {

namespace {

using namespace std::chrono_literals;
using lines = std::vector<std::string>;

/// Returns start `start` of server `index`.
member_id server(std::uint32_t index, std::uint64_t start = 1) {
  return {role::server, index, {start}};
}

chain_config config(std::uint64_t config, std::vector<std::uint32_t> members,
                    std::optional<std::uint32_t> joiner = std::nullopt) {
  chain_config made{{config}, {}, {}, {}};
  for (const std::uint32_t each : members)
    made.members.push_back(server(each));
  if (joiner)
    made.joiner = server(*joiner);
  return made;
}

std::string text_of(const append_effect& x) {
  return "append " + std::to_string(x.what.index) + " to " + std::to_string(x.to.index)
         + (x.what.committed > 0 ? " final " + std::to_string(x.what.committed) : "");
}
std::string text_of(const chain_message_effect& x) {
  const std::string to = " to " + std::to_string(x.to.index);
  if (const auto* committed = std::get_if<committed_message>(&x.what))
    return "committed " + std::to_string(committed->index) + to;
  return "joined " + std::to_string(std::get<joined_message>(x.what).last) + to;
}
std::string text_of(const commit_effect& x) { return "commit " + std::to_string(x.index); }
std::string text_of(const truncate_effect& x) { return "truncate " + std::to_string(x.last); }
std::string text_of(const release_effect& x) { return "release " + std::to_string(x.index); }
std::string text_of(const request_copy_effect& x) {
  return "ask " + std::to_string(x.from.index) + " for a copy";
}

/// A replica, and its effects as lines of text.
struct replica {
  explicit replica(std::uint32_t index, std::uint64_t committed = 0, bool complete = true,
                   chain_options options = {})
      : decide(server(index), {}, committed, complete, options) {}

  lines activate(const chain_config& next) {
    decide.activate(next, now, effects);
    return take();
  }
  lines append() {
    decide.append(now, effects);
    return take();
  }
  template <class Message>
  lines receive(std::uint32_t from, const Message& what) {
    decide.receive(server(from), what, now, effects);
    return take();
  }
  lines tick(time_point pause) {
    now += pause;
    decide.tick(now, effects);
    return take();
  }
  lines install(std::uint64_t config, std::uint64_t index) {
    decide.install({config}, index, now, effects);
    return take();
  }
  lines take() {
    lines all;
    for (const chain_effect& each : effects)
      all.push_back(std::visit([](const auto& x) { return text_of(x); }, each));
    effects.clear();
    return all;
  }

  chain decide;
  chain_effects effects;
  time_point now{0};
};

// -- a chain at work --

TEST_CASE("a chain of one makes an entry final at once") {
  replica only{0};
  CHECK(only.activate(config(1, {0})).empty());
  CHECK(only.append() == lines{"commit 1", "release 1"});
  CHECK(only.decide.committed() == 1);
}

TEST_CASE("an entry goes from the head to the tail, and is final from there back") {
  replica head{0}, middle{1}, tail{2};
  for (auto* each : {&head, &middle, &tail})
    each->activate(config(1, {0, 1, 2}));
  CHECK(head.append() == lines{"append 1 to 1"});
  CHECK(middle.receive(0, append_message{{1}, 1, 0}) == lines{"append 1 to 2"});
  CHECK(tail.receive(1, append_message{{1}, 1, 0})
        == lines{"commit 1", "release 1", "committed 1 to 0", "committed 1 to 1"});
  CHECK(middle.decide.committed() == 0);
  CHECK(middle.receive(2, committed_message{{1}, 1}) == lines{"commit 1", "release 1"});
  CHECK(head.receive(2, committed_message{{1}, 1}) == lines{"commit 1", "release 1"});
  CHECK(head.append() == lines{"append 2 to 1 final 1"});
}

TEST_CASE("an entry tells what is final as well") {
  replica middle{1};
  middle.activate(config(1, {0, 1, 2}));
  middle.receive(0, append_message{{1}, 1, 0});
  CHECK(middle.receive(0, append_message{{1}, 2, 1})
        == lines{"append 2 to 2", "commit 1", "release 1"});
}

TEST_CASE("what does not come from the predecessor of this epoch is ignored") {
  replica middle{1};
  middle.activate(config(2, {0, 1, 2}));
  CHECK(middle.receive(2, append_message{{2}, 1, 0}).empty());
  CHECK(middle.receive(0, append_message{{1}, 1, 0}).empty());
  CHECK(middle.receive(0, append_message{{2}, 2, 0}).empty()); // Entry 1 is missing.
  CHECK(middle.decide.last() == 0);
  middle.decide.propose({3});
  CHECK(middle.receive(0, append_message{{2}, 1, 0}).empty());
  CHECK(middle.decide.last() == 0);
}

TEST_CASE("what is final counts only from a member, of this epoch, and as far as the log goes") {
  replica head{0};
  head.activate(config(2, {0, 1}));
  head.append();
  CHECK(head.receive(2, committed_message{{2}, 1}).empty());
  CHECK(head.receive(1, committed_message{{1}, 1}).empty());
  CHECK(head.receive(1, committed_message{{2}, 9}) == lines{"commit 1", "release 1"});
}

TEST_CASE("no more than a window is on its way") {
  replica head{0};
  head.activate(config(1, {0, 1}));
  const auto window = chain_options{}.window;
  for (std::uint64_t i = 0; i < window; ++i)
    CHECK(head.append().size() == 1);
  CHECK(head.append().empty());
  CHECK(
    head.receive(1, committed_message{{1}, 1})
    == lines{"commit 1", "release 1", "append " + std::to_string(window + 1) + " to 1 final 1"});
}

TEST_CASE("of what seems lost the first is sent again, more and more seldom") {
  replica head{0};
  head.activate(config(1, {0, 1}));
  head.append();
  head.append();
  head.append();
  CHECK(head.tick(99ms).empty());
  CHECK(head.tick(1ms) == lines{"append 1 to 1"});
  CHECK(head.tick(199ms).empty());
  CHECK(head.tick(1ms) == lines{"append 1 to 1"});
  SUBCASE("the others, when that has arrived") {
    CHECK(head.receive(1, committed_message{{1}, 1})
          == lines{"commit 1", "release 1", "append 2 to 1 final 1", "append 3 to 1 final 1"});
    CHECK(head.tick(499ms).empty()); // The tail may be as slow with the other entries.
    CHECK(head.tick(1ms) == lines{"append 2 to 1 final 1"});
  }
  SUBCASE("at last in quarters of the time after which it says that it is stalled") {
    head.tick(400ms);
    CHECK(head.tick(499ms).empty());
    CHECK(head.tick(1ms) == lines{"append 1 to 1"});
    CHECK(head.tick(500ms) == lines{"append 1 to 1"});
  }
}

TEST_CASE("nothing is sent again to a replica that is slow all the time") {
  replica head{0};
  head.activate(config(1, {0, 1}));
  head.append();
  head.append();
  head.tick(90ms);
  head.receive(1, committed_message{{1}, 1});
  CHECK(head.tick(179ms).empty());
  head.receive(1, committed_message{{1}, 2});
  head.append();
  CHECK(head.tick(357ms).empty());
  CHECK(head.tick(1ms) == lines{"append 3 to 1 final 2"});
}

TEST_CASE("who is sent a final entry again says that it is") {
  replica tail{1};
  tail.activate(config(1, {0, 1}));
  tail.receive(0, append_message{{1}, 1, 0});
  CHECK(tail.receive(0, append_message{{1}, 1, 0}) == lines{"committed 1 to 0"});
}

// -- changes --

TEST_CASE("a proposal seals: nothing is taken, made final or read") {
  replica head{0}, tail{1};
  for (auto* each : {&head, &tail}) {
    each->activate(config(1, {0, 1}));
    each->decide.renew(0ns);
    CHECK(each->decide.may_read(0ns));
    each->decide.propose({2});
    CHECK_FALSE(each->decide.may_read(0ns));
    CHECK(each->decide.status() == chain_status{{}, {1}, {2}, true, false});
  }
  CHECK_FALSE(head.decide.leads());
  CHECK(tail.receive(0, append_message{{1}, 1, 0}).empty());
}

TEST_CASE("who becomes the tail makes its log final") {
  replica middle{1};
  middle.activate(config(1, {0, 1, 2}));
  middle.receive(0, append_message{{1}, 1, 0});
  CHECK(middle.activate(config(2, {0, 1})) == lines{"commit 1", "release 1", "committed 1 to 0"});
}

TEST_CASE("who gets another successor sends it what is not final") {
  replica head{0};
  head.activate(config(1, {0, 1, 2}));
  head.append();
  head.append();
  head.receive(2, committed_message{{1}, 1});
  CHECK(head.activate(config(2, {0, 2})) == lines{"append 2 to 2 final 1"});
}

TEST_CASE("who is left out forgets what is not final") {
  replica head{0};
  head.activate(config(1, {0, 1}));
  head.append();
  CHECK(head.activate(config(2, {1})) == lines{"truncate 0"});
  CHECK_FALSE(head.decide.leads());
  CHECK(head.decide.last() == 0);
}

TEST_CASE("an older configuration, or the same one again, changes nothing") {
  replica head{0};
  head.activate(config(2, {0, 1}));
  head.append();
  CHECK(head.activate(config(2, {0, 1})).empty());
  CHECK(head.activate(config(1, {1})).empty());
  CHECK(head.decide.leads());
}

TEST_CASE("a configuration of another generation changes nothing") {
  replica head{0};
  head.activate(config(1, {0, 1}));
  head.append();
  auto later = config(2, {0});
  later.generation = {1};
  CHECK(head.activate(later).empty());
  CHECK(head.decide.config().config.value == 1);
  CHECK_FALSE(head.decide.leads()); // The head has heard of a later configuration.
}

// -- joining --

TEST_CASE("a joiner asks for a copy until it has one, then takes entries from the tail") {
  replica joiner{2, 0, false};
  CHECK(joiner.activate(config(2, {0, 1}, 2)) == lines{"ask 1 for a copy"});
  CHECK(joiner.receive(1, append_message{{2}, 1, 0}).empty());
  CHECK(joiner.tick(100ms) == lines{"ask 1 for a copy"});
  CHECK(joiner.install(1, 7).empty());
  CHECK(joiner.install(2, 7) == lines{"joined 7 to 1"});
  CHECK(joiner.install(2, 8).empty());
  CHECK(joiner.receive(1, append_message{{2}, 8, 7}) == lines{"joined 8 to 1"});
  CHECK(joiner.decide.committed() == 7);
  CHECK_FALSE(joiner.decide.may_read(0ns));
}

TEST_CASE("a tail keeps what its joiner lacks, and waits for it once it lacks little") {
  replica tail{0};
  tail.activate(config(1, {0}, 1));
  tail.append();
  CHECK(tail.decide.copy_for(server(2), {1}) == std::nullopt);
  CHECK(tail.decide.copy_for(server(1), {1}) == 1);
  CHECK(tail.append() == lines{"commit 2"}); // The entry is not released.
  CHECK(tail.receive(1, joined_message{{1}, 1})
        == lines{"committed 2 to 1", "append 2 to 1 final 2"});
  CHECK_FALSE(tail.decide.status().joiner_synced);
  CHECK(tail.append() == lines{"append 3 to 1 final 2"}); // Final when the joiner has the entry.
  CHECK(tail.receive(1, joined_message{{1}, 2}) == lines{"committed 2 to 1", "release 2"});
  CHECK(tail.decide.status().joiner_synced);
  CHECK(tail.receive(1, joined_message{{1}, 3})
        == lines{"committed 2 to 1", "commit 3", "release 3", "committed 3 to 1"});
}

TEST_CASE("a joiner that lags far behind is not waited for") {
  replica tail{0};
  tail.activate(config(1, {0}, 1));
  CHECK(tail.decide.copy_for(server(1), {1}) == 0);
  const auto lag = chain_options{}.sync_lag;
  for (std::uint64_t i = 0; i <= lag; ++i)
    tail.append();
  tail.receive(1, joined_message{{1}, 0});
  const auto next = std::to_string(lag + 2);
  CHECK(tail.append() == lines{"commit " + next, "committed " + next + " to 1"});
}

TEST_CASE("a tail that keeps too much for its joiner makes nothing final that it lacks") {
  replica tail{0};
  tail.activate(config(1, {0}, 1));
  tail.decide.wait_for_joiner(); // No entry is kept for the joiner yet.
  CHECK(tail.append() == lines{"commit 1", "release 1"});
  CHECK(tail.decide.copy_for(server(1), {1}) == 1);
  CHECK(tail.append() == lines{"commit 2"});
  tail.decide.wait_for_joiner();
  CHECK(tail.append().empty());
  CHECK_FALSE(tail.decide.status().joiner_synced);
  CHECK(tail.receive(1, joined_message{{1}, 1})
        == lines{"committed 2 to 1", "append 2 to 1 final 2", "append 3 to 1 final 2"});
  CHECK_FALSE(tail.decide.status().joiner_synced);
  CHECK(tail.receive(1, joined_message{{1}, 3})
        == lines{"committed 2 to 1", "commit 3", "release 3", "committed 3 to 1"});
  CHECK(tail.decide.status().joiner_synced);
}

TEST_CASE("who joined becomes the tail, and answers only then") {
  replica joiner{1, 0, false};
  joiner.activate(config(2, {0}, 1));
  joiner.install(2, 4);
  joiner.decide.renew(0ns);
  CHECK_FALSE(joiner.decide.may_read(0ns));
  joiner.activate(config(3, {0, 1}));
  CHECK(joiner.decide.is_tail());
  CHECK(joiner.decide.may_read(0ns));
}

TEST_CASE("who never got a copy is no member, whatever it is told") {
  replica blank{1, 0, false};
  blank.activate(config(3, {0, 1}));
  blank.decide.renew(0ns);
  CHECK_FALSE(blank.decide.may_read(0ns));
  CHECK(blank.receive(0, append_message{{3}, 1, 0}).empty());
}

// -- neighbours that cannot talk --

TEST_CASE("who waits too long for its successor says so, until that one has something more") {
  replica head{0};
  head.activate(config(1, {0, 1}));
  head.tick(1h);
  CHECK_FALSE(head.decide.status().stalled); // The head waits for no entry.
  head.append();
  head.append();
  head.tick(1999ms);
  CHECK_FALSE(head.decide.status().stalled);
  head.tick(1ms);
  CHECK(head.decide.status().stalled);
  head.receive(1, committed_message{{1}, 1});
  head.tick(1999ms);
  CHECK_FALSE(head.decide.status().stalled);
  head.tick(1ms);
  CHECK(head.decide.status().stalled);
  head.activate(config(2, {0}));
  CHECK_FALSE(head.decide.status().stalled);
}

TEST_CASE("of three only the one is stalled whose successor says nothing") {
  for (const bool joins : {false, true}) {
    CAPTURE(joins);
    const auto present = joins ? config(1, {0, 1}, 2) : config(1, {0, 1, 2});
    replica head{0}, middle{1};
    head.activate(present);
    middle.activate(present);
    if (joins) {
      CHECK(middle.decide.copy_for(server(2), {1}) == 0);
      middle.receive(2, joined_message{{1}, 0}); // The joiner lacks little: the tail waits for it.
    }
    const append_message first{{1}, 1, 0};
    head.append();
    middle.receive(0, first); // The middle replica passes the entry on and hears no answer.
    for (int i = 0; i < 50; ++i) {
      if (head.tick(100ms) == lines{"append 1 to 1"}) {
        CHECK(middle.receive(0, first) == lines{"committed 0 to 0"});
        head.receive(1, committed_message{{1}, 0});
      }
      middle.tick(100ms);
      CHECK_FALSE(head.decide.status().stalled);
    }
    CHECK(middle.decide.status().stalled);
    head.tick(2s); // By now the link to the middle replica is broken as well.
    CHECK(head.decide.status().stalled);
  }
}

TEST_CASE("a joiner of which the tail hears nothing, or that hears nothing of it, says so") {
  replica joiner{2, 0, false};
  joiner.activate(config(1, {0, 1}, 2));
  joiner.tick(1500ms);
  joiner.decide.copy_advanced(joiner.now);
  joiner.tick(1500ms);
  CHECK_FALSE(joiner.decide.status().stalled);
  joiner.tick(500ms);
  CHECK(joiner.decide.status().stalled);
  joiner.install(1, 5);
  joiner.tick(1999ms);
  CHECK_FALSE(joiner.decide.status().stalled);
  joiner.receive(1, committed_message{{1}, 5}); // The tail answers the joiner's repeated message.
  joiner.tick(1999ms);
  CHECK_FALSE(joiner.decide.status().stalled);
  joiner.tick(1ms);
  CHECK(joiner.decide.status().stalled);
}

// -- leases --

TEST_CASE("a lease counts from when the report was sent, and never gets shorter") {
  replica head{0};
  head.activate(config(1, {0, 1}));
  CHECK_FALSE(head.decide.may_read(0ns));
  head.decide.renew(1s);
  head.decide.renew(500ms);
  CHECK(head.decide.may_read(1799ms));
  CHECK_FALSE(head.decide.may_read(1800ms));
}

TEST_CASE("who leads next reads when all is final that may have been acknowledged before") {
  replica next{1};
  next.activate(config(1, {0, 1, 2}));
  next.receive(0, append_message{{1}, 1, 0});
  next.activate(config(2, {1, 2}));
  next.decide.renew(0ns);
  CHECK_FALSE(next.decide.may_read(0ns));
  next.receive(2, committed_message{{2}, 1});
  CHECK(next.decide.may_read(0ns));
}

TEST_CASE("where no lease is needed reads end with the seal") {
  chain_options options;
  options.lease_time = {};
  replica only{0, 0, true, options};
  only.activate(config(1, {0}));
  CHECK(only.decide.may_read(1h));
  only.decide.propose({2});
  CHECK_FALSE(only.decide.may_read(1h));
}

} // namespace

} // namespace troupe::chain_test
