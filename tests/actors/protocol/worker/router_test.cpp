#include "tests/actors/router_fixture.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace router_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

TEST_CASE("a_push_is_cut_at_blocks_and_each_goes_to_its_owner") {
  router_fixture f;
  CHECK(f.push(1) == texts{"push 1 to 0 attempt 1", "push 2 to 1 attempt 1"});
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> covered;
  for (const auto& part : f.sent) {
    const auto& what = *part.what.push;
    CHECK(what.gradient_norm == 2);
    for (const auto& x : what.pieces) {
      const auto block = x.where.first / 4096;
      CHECK(part.to.shard.value == partition_of(f.job, x.where.table, block).value % 2);
      CHECK(x.where == block_range(f.job, x.where.table, block));
      CHECK(x.values.get()[0] == static_cast<float>(x.where.first));
      covered[{x.where.table.value, x.where.first}] = x.where.count;
    }
  }
  CHECK(covered
        == decltype(covered){{{0, 0}, 4096}, {{0, 4096}, 4096}, {{0, 8192}, 1808}, {{1, 0}, 3}});
}

TEST_CASE("packed_pieces_go_to_the_owners_of_their_blocks_as_they_are") {
  router_fixture f;
  auto push = whole_push(f.job);
  push.pieces.clear();
  const auto bytes = std::make_shared<std::vector<std::uint64_t>>(3);
  const auto* first = reinterpret_cast<const std::byte*>(bytes->data());
  for (std::uint64_t block = 0; block < 3; ++block)
    push.packed.push_back({block_range(f.job, {0}, block), encoding::topk, 8, {bytes, first}});
  CHECK(f.push(1, push) == texts{"push 1 to 0 attempt 1", "push 2 to 1 attempt 1"});
  std::size_t count = 0;
  for (const auto& part : f.sent)
    for (const auto& x : part.what.push->packed) {
      CHECK(part.to.shard.value == partition_of(f.job, {0}, x.where.first / 4096).value % 2);
      CHECK(x.span().data() == first);
      ++count;
    }
  CHECK(count == 3);
  push.packed[0].where = {{0}, 4095, 2};
  CHECK(f.push(2, push) == texts{"failed 2 shape_mismatch"});
  push.packed[0].where = {{0}, 10'000, 1};
  CHECK(f.push(3, push) == texts{"failed 3 shape_mismatch"});
}

TEST_CASE("values_may_come_packed") {
  router_fixture f;
  auto asked = whole_pull(f.job);
  asked.packed_as = encoding::fp16;
  f.pull(1, asked);
  for (const auto& part : f.sent) {
    CHECK(part.what.pull->packed_as == encoding::fp16);
    pull_reply answer{1, {}};
    for (const auto& where : part.what.pull->ranges)
      answer.packed.push_back({where, encoding::fp16, 0, nullptr});
    if (part.part.value == 1) {
      CHECK(f.answered(1, {{}, answer}).empty());
      continue;
    }
    CHECK(f.answered(2, {{}, answer}) == texts{"pulled 1 version 1 elements 0"});
  }
  CHECK(f.last_values.packed.size() == 4);
  f.pull(2, asked);
  pull_reply more{1, {}};
  for (auto where : f.last_of(3).what.pull->ranges)
    more.packed.push_back({{where.table, where.first, where.count - 1}, encoding::fp16, 0, {}});
  CHECK(f.answered(3, {{}, more}) == texts{"failed 2 malformed"});
}

TEST_CASE("values_that_come_packed_unasked_or_in_another_way_fail_the_pull") {
  for (const auto how : {encoding::f32, encoding::bf16}) {
    CAPTURE(to_string(how));
    router_fixture f;
    pull_request asked;
    asked.ranges = {{{1}, 0, 3}};
    asked.packed_as = how;
    f.pull(1, asked);
    pull_reply answer{1, {}};
    answer.packed.push_back({asked.ranges[0], encoding::fp16, 0, nullptr});
    CHECK(f.answered(1, {{}, answer}) == texts{"failed 1 malformed"});
  }
}

TEST_CASE("every_server_gets_a_part_of_every_push_because_it_marks_the_batch") {
  router_fixture f;
  auto nothing = whole_push(f.job, 7);
  nothing.pieces.clear();
  CHECK(f.push(1, nothing) == texts{"push 1 to 0 attempt 1", "push 2 to 1 attempt 1"});
  for (const auto& part : f.sent) {
    CHECK(part.what.push->step.batch.value == 7);
    CHECK(part.what.push->tables.size() == 2);
  }
}

TEST_CASE("a_pull_asks_only_the_owners_of_its_ranges") {
  router_fixture f;
  pull_request small;
  small.ranges = {{{1}, 1, 2}};
  small.latest = true;
  const auto owner = partition_of(f.job, {1}, 0).value % 2;
  CHECK(f.pull(1, small) == texts{"pull 1 to " + std::to_string(owner) + " attempt 1"});
  CHECK(f.sent[0].what.pull->latest);
  CHECK(f.pulled(1, 5) == texts{"pulled 1 version 5 elements 2"});
}

TEST_CASE("a_range_across_blocks_is_cut") {
  router_fixture f;
  pull_request middle;
  middle.ranges = {{{0}, 4000, 200}};
  f.pull(1, middle);
  std::uint64_t count = 0;
  for (const auto& part : f.sent)
    for (const auto& x : part.what.pull->ranges)
      count += x.count;
  CHECK(count == 200);
  CHECK(f.sent.size() == 2);
}

TEST_CASE("a_pull_of_nothing_is_answered_at_once") {
  router_fixture f;
  CHECK(f.pull(1, {}) == texts{"pulled 1 version 0 elements 0"});
}

TEST_CASE("requests_before_the_first_view_are_not_ready") {
  router_fixture f{false};
  CHECK(f.push(1) == texts{"failed 1 not_ready"});
  CHECK(f.pull(2) == texts{"failed 2 not_ready"});
}

TEST_CASE("ranges_outside_the_tables_are_refused") {
  router_fixture f;
  for (const range& where : {range{{2}, 0, 1}, range{{1}, 0, 4}, range{{1}, 4, 0},
                             range{{0}, 9'999, 2}, range{{1}, 1, ~std::uint64_t{0}}}) {
    CAPTURE(where.table.value);
    CAPTURE(where.count);
    pull_request asked;
    asked.ranges = {where};
    CHECK(f.pull(1, asked) == texts{"failed 1 shape_mismatch"});
    auto brought = whole_push(f.job);
    brought.pieces = {{where, numbers(4)}};
    CHECK(f.push(2, brought) == texts{"failed 2 shape_mismatch"});
  }
}

TEST_CASE("a_request_ends_with_its_last_part") {
  router_fixture f;
  f.push(1);
  CHECK(f.pushed(1, {4, false}).empty());
  CHECK(f.pushed(2, {3, true}) == texts{"pushed 1 version 4 duplicate"});
  CHECK(f.pushed(2).empty());
  f.pull(2);
  CHECK(f.pulled(3, 4).empty());
  CHECK(f.pulled(4, 6) == texts{"pulled 2 version 6 elements 10003"});
}

TEST_CASE("base_version_is_that_of_the_values_which_the_batch_had_of_each_server") {
  router_fixture f;
  f.pull(1, whole_pull(f.job, 7));
  f.pulled(1, 11);
  f.pulled(2, 22);
  f.pull(2, whole_pull(f.job, 8)); // This pull comes before the push of 7.
  f.pulled(3, 33);
  f.pulled(4, 44);
  f.push(3, whole_push(f.job, 7));
  CHECK(f.last_of(5).what.push->base_version == 11);
  CHECK(f.last_of(6).what.push->base_version == 22);
  f.push(4, whole_push(f.job, 8));
  CHECK(f.last_of(7).what.push->base_version == 33);
}

TEST_CASE("base_version_is_of_the_batch_where_older_values_came_later") {
  router_fixture f;
  f.pull(1, whole_pull(f.job, 7));
  f.pull(2, whole_pull(f.job, 8));
  f.pulled(1, 11);
  f.pulled(3, 10); // These values are of a replica that lags behind.
  f.push(3, whole_push(f.job, 7));
  CHECK(f.last_of(5).what.push->base_version == 11);
}

TEST_CASE("a_pull_of_frozen_tables_alone_is_no_base_of_a_push") {
  router_fixture f;
  f.job.tables[0].frozen = true;
  f.decide = router{f.job};
  f.set_view(routed_view(f.job));
  f.pull(1, whole_pull(f.job, 7)); // One of the servers has only blocks of the frozen table.
  f.pulled(1, 11);
  f.pulled(2, 11);
  pull_request learned = whole_pull(f.job, 8);
  learned.ranges.erase(learned.ranges.begin());
  f.pull(2, learned);
  f.pulled(3, 22);
  auto push = whole_push(f.job, 8);
  push.pieces.erase(push.pieces.begin());
  f.push(3, push);
  std::vector<std::uint64_t> bases{f.last_of(4).what.push->base_version,
                                   f.last_of(5).what.push->base_version};
  std::ranges::sort(bases);
  CHECK(bases == std::vector{std::uint64_t{22}, ~std::uint64_t{0}});
}

TEST_CASE("a_batch_that_was_never_pulled_for_counts_from_the_last_values") {
  router_fixture f;
  f.pull(1, whole_pull(f.job, 7));
  f.pulled(1, 11);
  f.push(2, whole_push(f.job, 9));
  CHECK(f.last_of(3).what.push->base_version == 11);
  CHECK(f.last_of(4).what.push->base_version == ~std::uint64_t{0}); // This server was never asked.
}

TEST_CASE("a_failure_to_retry_sends_all_open_parts_of_that_server_again_in_order") {
  for (const auto code : {errc::not_ready, errc::peer_lost, errc::timed_out}) {
    CAPTURE(to_string(code));
    router_fixture f;
    f.push(1);
    f.pull(2);
    CHECK(f.failed(3, code).empty());
    CHECK(f.decide.next_tick() == time_point{20ms});
    CHECK(f.tick(19ms).empty());
    CHECK(f.tick(1ms) == texts{"push 1 to 0 attempt 3", "pull 3 to 0 attempt 3"});
    CHECK_FALSE(f.decide.next_tick());
  }
}

TEST_CASE("parts_made_during_the_pause_wait_behind_the_others") {
  router_fixture f;
  f.push(1);
  f.failed(1, errc::peer_lost);
  CHECK(f.pull(2) == texts{"pull 4 to 1 attempt 1"});
  CHECK(f.tick(20ms) == texts{"push 1 to 0 attempt 3", "pull 3 to 0 attempt 3"});
}

TEST_CASE("in_ssp_a_pull_alone_waits_for_the_receipts_of_the_pushes_before_it") {
  router_fixture f{false};
  f.job.tables[0].sync = {consistency_mode::ssp, 1};
  f.decide = router{f.job};
  f.set_view(routed_view(f.job));
  f.push(1);
  CHECK(f.pull(2).empty());
  f.failed(1, errc::not_ready);
  CHECK(f.tick(20ms) == texts{"push 1 to 0 attempt 3"});
  CHECK(f.pushed(1) == texts{"pull 3 to 0 attempt 3"});
  CHECK(f.failed(2, errc::fenced) == texts{"pull 4 to 1 attempt 1", "failed 1 fenced"});
}

TEST_CASE("in_ssp_a_pull_does_not_wait_for_pushes_of_other_workers") {
  router_fixture f{false};
  f.job.tables[0].sync = {consistency_mode::ssp, 1};
  f.decide = router{f.job};
  f.set_view(routed_view(f.job));
  f.push(1);
  auto of_another = whole_pull(f.job);
  of_another.step.worker = {1};
  CHECK(f.pull(2, of_another) == texts{"pull 3 to 0 attempt 1", "pull 4 to 1 attempt 1"});
  CHECK(f.pushed(1).empty());
  CHECK(f.pushed(2) == texts{"pushed 1 version 0"});
  f.push(3);
  of_another.others = {whole_pull(f.job).step};
  CHECK(f.pull(4, of_another).empty());
}

TEST_CASE("requests_of_an_earlier_start_of_the_worker_end_when_a_later_one_asks") {
  router_fixture f{false};
  f.job.tables[0].sync = {consistency_mode::ssp, 1};
  f.decide = router{f.job};
  f.set_view(routed_view(f.job));
  auto of_observer = whole_pull(f.job);
  of_observer.latest = true;
  auto of_another = whole_push(f.job);
  of_another.step.worker = {1};
  f.push(1);
  f.pull(2);
  f.pull(3, of_observer);
  f.push(4, of_another);
  auto of_next = whole_pull(f.job);
  of_next.step.incarnation = {5};
  CHECK(f.pull(5, of_next)
        == texts{"failed 2 fenced", "failed 1 fenced", "pull 9 to 0 attempt 1",
                 "pull 10 to 1 attempt 1"});
  CHECK(f.pushed(7).empty());
  CHECK(f.pushed(8) == texts{"pushed 4 version 0"});
}

TEST_CASE("not_yet_asks_again_for_that_pull_only") {
  router_fixture f;
  f.push(1);
  f.pull(2);
  CHECK(f.failed(3, errc::not_yet) == texts{"pull 3 to 0 attempt 1"});
}

TEST_CASE("other_errors_fail_the_request_and_drop_its_other_parts") {
  for (const auto code :
       {errc::non_finite, errc::fenced, errc::rolled_back, errc::shape_mismatch, errc::malformed}) {
    CAPTURE(to_string(code));
    router_fixture f;
    f.push(1);
    f.pull(2);
    CHECK(f.failed(1, code) == texts{std::string{"failed 1 "} + to_string(code)});
    CHECK(f.pushed(2).empty());
    CHECK(f.failed(1, code).empty());
    CHECK(f.failed(4, errc::peer_lost).empty());
    CHECK(f.tick(20ms) == texts{"pull 4 to 1 attempt 3"});
  }
}

TEST_CASE("failures_of_an_earlier_attempt_are_ignored_and_successes_are_not") {
  router_fixture f;
  f.push(1);
  f.failed(1, errc::timed_out);
  f.tick(20ms);
  CHECK(f.failed(1, errc::timed_out, 1).empty());
  CHECK(f.failed(1, errc::malformed, 1).empty());
  CHECK_FALSE(f.decide.next_tick());
  CHECK(f.pushed(1).empty());
  CHECK(f.pushed(2) == texts{"pushed 1 version 0"});
}

TEST_CASE("what_a_server_drops_is_heard_though_another_part_was_refused_before") {
  for (const auto code : {errc::sum_not_applicable, errc::rolled_back}) {
    router_fixture f;
    f.push(1);
    f.push(2);
    f.failed(1, errc::not_ready);
    CHECK(f.failed(3, code, 1) == texts{std::string{"failed 2 "} + to_string(code)});
    CHECK(f.tick(20ms) == texts{"push 1 to 0 attempt 3"});
  }
}

TEST_CASE("a_server_that_came_back_gets_its_open_parts_in_order") {
  router_fixture f;
  f.push(1);
  f.pull(2);
  auto now_valid = routed_view(f.job, 2);
  now_valid.chains[0].serving = false;
  CHECK(f.set_view(now_valid).empty());
  CHECK(f.failed(1, errc::peer_lost).empty());
  CHECK_FALSE(f.decide.next_tick());
  CHECK(f.push(3) == texts{"push 6 to 1 attempt 1"});
  CHECK(f.tick(1000ms).empty());
  now_valid = routed_view(f.job, 3);
  now_valid.chains[0].head.incarnation = {500};
  CHECK(f.set_view(now_valid)
        == texts{"push 1 to 0 attempt 3", "pull 3 to 0 attempt 3", "push 5 to 0 attempt 3"});
  CHECK(f.sent.back().to.head.incarnation.value == 500);
}

TEST_CASE("a_new_incarnation_at_once_in_the_view_is_a_failover") {
  router_fixture f;
  f.push(1);
  auto now_valid = routed_view(f.job, 2);
  now_valid.chains[1].head.incarnation = {500};
  CHECK(f.set_view(now_valid) == texts{"push 2 to 1 attempt 2"});
  CHECK(f.set_view(now_valid).empty());
}

TEST_CASE("views_that_are_old_or_do_not_fit_the_job_are_ignored") {
  router_fixture f;
  f.push(1);
  auto old = routed_view(f.job, 0);
  old.chains[0].head.incarnation = {500};
  CHECK(f.set_view(old).empty());
  auto too_short = routed_view(f.job, 9);
  too_short.shard_of.pop_back();
  too_short.chains[0].head.incarnation = {500};
  CHECK(f.set_view(too_short).empty());
  auto nobody = routed_view(f.job, 9);
  nobody.shard_of[2] = {7};
  CHECK(f.set_view(nobody).empty());
  CHECK(f.push(2) == texts{"push 3 to 0 attempt 1", "push 4 to 1 attempt 1"});
}

TEST_CASE("a_push_and_a_pull_travel_together_and_end_together") {
  router_fixture f;
  CHECK(f.ask(1, {whole_push(f.job, 7), whole_pull(f.job, 8)})
        == texts{"push and pull 1 to 0 attempt 1", "push and pull 2 to 1 attempt 1"});
  CHECK(f.answered(1, {push_reply{3, false}, answer_to(*f.last_of(1).what.pull, 4)}).empty());
  CHECK(f.answered(2, {push_reply{5, false}, answer_to(*f.last_of(2).what.pull, 6)})
        == texts{"pushed 1 version 5, pulled 1 version 6 elements 10003"});
}

TEST_CASE("a_push_that_reaches_servers_without_a_pull_goes_to_all") {
  router_fixture f;
  pull_request small;
  small.ranges = {{{1}, 0, 1}};
  const auto sent = f.ask(1, {whole_push(f.job), small});
  REQUIRE(sent.size() == 2);
  CHECK(std::count_if(f.sent.begin(), f.sent.end(), [](const auto& x) { return x.what.pull; })
        == 1);
  CHECK(std::all_of(f.sent.begin(), f.sent.end(), [](const auto& x) { return x.what.push; }));
}

TEST_CASE("values_that_have_to_be_waited_for_are_asked_for_again_without_the_push") {
  router_fixture f;
  f.ask(1, {whole_push(f.job, 7), whole_pull(f.job, 8)});
  CHECK(f.answered(1, {push_reply{3, false}, {}}) == texts{"pull 1 to 0 attempt 1"});
  CHECK(f.answered(1, {push_reply{3, true}, {}}).empty()); // Answers the push that was sent twice.
  f.answered(2, {push_reply{5, false}, answer_to(*f.last_of(2).what.pull, 6)});
  CHECK(f.pulled(1, 9) == texts{"pushed 1 version 5, pulled 1 version 9 elements 10003"});
}

TEST_CASE("a_second_receipt_of_a_push_whose_values_are_asked_for_again_changes_nothing") {
  router_fixture f;
  f.ask(1, {whole_push(f.job, 7), whole_pull(f.job, 8)});
  f.failed(1, errc::timed_out);
  f.tick(20ms);
  CHECK(f.answered(1, {push_reply{3, false}, {}})
        == texts{"pull 1 to 0 attempt 3"}); // A late reply.
  CHECK(f.answered(1, {push_reply{3, true}, {}}).empty());
  f.answered(2, {push_reply{5, false}, answer_to(*f.last_of(2).what.pull, 6)});
  CHECK(f.pulled(1, 9) == texts{"pushed 1 version 5, pulled 1 version 9 elements 10003"});
}

TEST_CASE("an_answer_without_values_fails_a_pull_alone") {
  router_fixture f;
  f.pull(1);
  CHECK(f.answered(1, {}) == texts{"failed 1 malformed"});
}

TEST_CASE("an_answer_without_a_receipt_fails_a_push") {
  router_fixture f;
  f.push(1);
  CHECK(f.answered(1, {{}, pull_reply{}}) == texts{"failed 1 malformed"});
}

TEST_CASE("values_that_are_not_those_asked_for_fail_the_pull") {
  const std::vector<std::vector<piece>> wrong = {
    {},
    {{{{1}, 0, 3}, numbers(3)}, {{{1}, 0, 3}, numbers(3)}},
    {{{{1}, 1, 3}, numbers(3)}},
    {{{{9}, 0, 3}, numbers(3)}},
    {{{{1}, 0, 2}, numbers(3)}}};
  for (const auto& pieces : wrong) {
    CAPTURE(pieces.size());
    router_fixture f;
    pull_request asked;
    asked.ranges = {{{1}, 0, 3}};
    f.pull(1, asked);
    CHECK(f.run([&](auto& effects) {
      f.decide.answered({1}, {{}, pull_reply{0, pieces}}, f.now, effects);
    }) == texts{"failed 1 malformed"});
  }
}

// Servers fail, answer late, twice or not at all, and views come and go.
TEST_CASE("whatever_happens_each_request_ends_once_and_parts_keep_their_order") {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random{seed};
    const auto draw = [&](std::uint32_t below) { return random() % below; };
    router_fixture f;
    std::map<std::uint64_t, int> ended;
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> last_part;
    std::set<std::uint64_t> asked_again; // After not_yet: parts in any order.
    std::vector<send_part_effect> in_flight;
    auto valid = routed_view(f.job);
    for (auto& entry : valid.chains) // Requests with pulls only may also go to a third server.
      entry.others.resize(seed % 2, routed_server(2));
    f.decide = router{f.job, {.reads = seed % 4 == 0 ? read_target::any : read_target::head}};
    f.set_view(valid);
    std::uint64_t requests = 0;
    const auto apply = [&](auto event) {
      router_effects effects;
      event(effects);
      for (const auto& x : effects) {
        if (const auto* part = std::get_if<send_part_effect>(&x)) {
          auto& last = last_part[{part->to.shard.value, part->attempt}];
          const bool is_ordered = valid.chains[0].others.empty() || part->what.push;
          if (is_ordered && asked_again.erase(part->part.value) == 0) {
            CHECK(last <= part->part.value);
            last = part->part.value;
          }
          in_flight.push_back(*part);
        } else if (const auto* answered = std::get_if<answered_effect>(&x)) {
          ++ended[answered->request.value];
        } else {
          ++ended[std::get<failed_effect>(x).request.value];
        }
      }
    };
    const auto succeed = [&](const send_part_effect& part) {
      reply answer;
      if (part.what.push)
        answer.pushed.emplace();
      const bool must_wait = part.what.push && draw(3) == 0;
      if (part.what.pull && !must_wait)
        answer.pulled = answer_to(*part.what.pull, 1);
      if (part.what.pull && must_wait)
        asked_again.insert(part.part.value);
      apply([&](auto& effects) { f.decide.answered(part.part, answer, f.now, effects); });
      asked_again.erase(part.part.value);
    };
    const auto fail = [&](const send_part_effect& part, errc code) {
      if (code == errc::not_yet)
        asked_again.insert(part.part.value);
      apply([&](auto& effects) {
        f.decide.failed(part.part, part.attempt, {code, ""}, f.now, effects);
      });
      asked_again.erase(part.part.value);
    };
    for (int step = 0; step < 300; ++step) {
      f.now += std::chrono::milliseconds{draw(10)};
      const auto choice = draw(10);
      if (choice < 4) {
        request what;
        if (choice != 0)
          what.push = whole_push(f.job);
        if (choice != 1)
          what.pull = whole_pull(f.job);
        apply([&](auto& effects) { f.decide.ask({++requests}, what, f.now, effects); });
      } else if (choice == 4) {
        ++valid.config.value;
        auto& entry = valid.chains[draw(2)];
        entry.serving = draw(2) == 0;
        entry.head.incarnation.value += draw(2);
        apply([&](auto& effects) { f.decide.set_view(valid, f.now, effects); });
      } else if (choice == 5) {
        apply([&](auto& effects) { f.decide.tick(f.now, effects); });
      } else if (!in_flight.empty()) {
        const auto at = draw(static_cast<std::uint32_t>(in_flight.size()));
        const auto part = in_flight[at];
        if (draw(4) != 0) // Otherwise it is answered twice.
          in_flight.erase(in_flight.begin() + at);
        constexpr errc failures[] = {errc::peer_lost, errc::timed_out, errc::not_ready,
                                     errc::rolled_back};
        const bool is_pull = !part.what.push;
        if (draw(2) == 0)
          succeed(part);
        else
          fail(part, is_pull && draw(2) == 0 ? errc::not_yet : failures[draw(4)]);
      }
    }
    // From here on all servers answer.
    ++valid.config.value;
    for (auto& entry : valid.chains)
      ++entry.head.incarnation.value, entry.serving = true;
    in_flight.clear();
    apply([&](auto& effects) { f.decide.set_view(valid, f.now, effects); });
    f.now += std::chrono::seconds{1}; // Longer than any patience.
    apply([&](auto& effects) { f.decide.tick(f.now, effects); });
    while (!in_flight.empty()) {
      const auto part = in_flight.front();
      in_flight.erase(in_flight.begin());
      succeed(part);
    }
    CHECK(ended.size() == requests);
    CHECK(std::ranges::all_of(ended, [](const auto& x) { return x.second == 1; }));
  }
}

namespace {

/// The routed job with a sparse table "rows" behind the others.
struct row_fixture : router_fixture {
  row_fixture() {
    table_spec table;
    table.name = "rows";
    table.kind = table_kind::sparse;
    table.width = 2;
    job.tables.push_back(table);
    decide = router{job};
    set_view(routed_view(job));
  }

  static row_keys keys(std::vector<std::uint64_t> which, std::uint32_t width = 2) {
    const auto memory = std::make_shared<std::vector<std::uint64_t>>(std::move(which));
    return {{2}, width, memory->size(), {memory, memory->data()}};
  }

  /// Returns rows with k and 10 k under key k.
  static pull_reply answer(const pull_request& asked) {
    pull_reply made{1, {}};
    for (const auto& list : asked.rows) {
      const auto floats = numbers(list.floats());
      for (std::uint64_t i = 0; i < list.count; ++i) {
        floats.get()[2 * i] = static_cast<float>(list.span()[i]);
        floats.get()[2 * i + 1] = static_cast<float>(10 * list.span()[i]);
      }
      made.rows.push_back({{list.table, list.width, list.count, nullptr}, floats});
    }
    return made;
  }
};

} // namespace

TEST_CASE("rows_go_to_the_servers_of_their_partitions_and_come_back_in_the_order_asked") {
  row_fixture f;
  pull_request what;
  what.rows = {f.keys({1, 2, 3, 4, 5, 6, 7, 8, 9}), f.keys({3})};
  CHECK(f.pull(1, what) == texts{"pull 1 to 0 attempt 1", "pull 2 to 1 attempt 1"});
  for (const auto& part : f.sent)
    for (const auto& list : part.what.pull->rows)
      for (const auto key : list.span())
        CHECK(partition_of(f.job, key).value % 2 == part.to.shard.value);
  CHECK(f.answered(1, {{}, f.answer(*f.last_of(1).what.pull)}).empty());
  CHECK(f.answered(2, {{}, f.answer(*f.last_of(2).what.pull)}).size() == 1);
  REQUIRE(f.last_values.rows.size() == 2);
  for (std::uint64_t i = 0; i < 9; ++i) {
    CHECK(f.last_values.rows[0].values.get()[2 * i] == static_cast<float>(i + 1));
    CHECK(f.last_values.rows[0].values.get()[2 * i + 1] == static_cast<float>(10 * (i + 1)));
  }
  CHECK(f.last_values.rows[1].values.get()[0] == 3.0f);
}

TEST_CASE("pushed_rows_are_cut_and_every_server_still_marks_the_batch") {
  row_fixture f;
  push_request what;
  what.tables = {{2}};
  what.rows = {{f.keys({5}), numbers(2)}};
  const auto owner = partition_of(f.job, 5).value % 2;
  CHECK(f.push(1, what).size() == 2);
  CHECK(f.sent.at(owner).what.push->rows.size() == 1);
  CHECK(f.sent.at(1 - owner).what.push->rows.empty());
}

TEST_CASE("a_new_head_hears_of_a_pull_that_waits_at_another_chain") {
  for (const bool is_ssp : {true, false}) {
    router_fixture f{false};
    if (is_ssp)
      f.job.tables[0].sync = {consistency_mode::ssp, 1};
    f.decide = router{f.job};
    f.set_view(routed_view(f.job));
    f.pull(1);
    f.pulled(1, 5);
    auto next = routed_view(f.job, 2);
    next.chains[0].head = {role::server, 7, {7}};
    const auto told = f.set_view(next);
    CHECK(told == (is_ssp ? texts{"pull 3 to 0 attempt 2"} : texts{}));
    if (is_ssp) {
      CHECK(f.last_of(3).what.pull->step == whole_pull(f.job).step);
      CHECK(f.pulled(2, 6).empty());
      CHECK(f.answered(3, {{}, pull_reply{9, {}}}) == texts{"pulled 1 version 6 elements 10003"});
    }
  }
}

TEST_CASE("rows_that_cannot_be_are_refused_and_other_answers_than_asked_for_too") {
  const auto refused = [](const row_keys& rows) {
    row_fixture f;
    pull_request what;
    what.rows = {rows};
    return f.pull(1, what) == texts{"failed 1 shape_mismatch"};
  };
  CHECK(refused(row_fixture::keys({1}, 3)));
  CHECK(refused(row_fixture::keys({1, 1})));
  CHECK(refused(row_fixture::keys({2, 1})));
  CHECK(refused({{0}, 2, 0, nullptr}));
  CHECK(refused({{2}, 2, 1, nullptr}));
  row_fixture f;
  pull_request what;
  what.rows = {f.keys({5})};
  f.pull(1, what);
  auto fewer = f.answer(*f.last_of(1).what.pull);
  fewer.rows.clear();
  CHECK(f.answered(1, {{}, fewer}) == texts{"failed 1 malformed"});
}

} // namespace router_test
