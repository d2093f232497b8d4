#include "actors/roles/server/server_actor.hpp"
#include "tests/actors/actor_fixture.hpp"
#include "tests/actors/shard_fixture.hpp"

#include "caf/typed_event_based_actor.hpp"
#include "doctest/doctest.h"

#include <limits>

namespace server_actor_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// Plays the disk; the test sets its answers.
struct fake_files {
  std::vector<storage::cut> cuts;
  std::vector<std::uint64_t> reads;
  std::optional<failure> fails;
  std::vector<partition_image> images;
};

checkpointer spawn_files(actor_fixture& f, std::shared_ptr<fake_files> files) {
  return f.owned(f.system.spawn([files](checkpointer::pointer) -> checkpointer::behavior_type {
    return {
      [=](write_atom, const storage::cut& what) -> caf::result<checkpoint_part> {
        files->cuts.push_back(what);
        if (files->fails)
          return to_caf(*files->fails);
        return checkpoint_part{what.checkpoint, what.shard, {}, 9};
      },
      [=](read_atom, std::uint64_t number, const job_spec&,
          const std::vector<partition_id>&) -> caf::result<std::vector<partition_image>> {
        files->reads.push_back(number);
        if (files->fails)
          return to_caf(*files->fails);
        return files->images;
      },
      [](read_atom, shard_id, const job_spec&,
         const std::vector<partition_id>&) -> caf::result<std::shared_ptr<storage::local_state>> {
        return std::shared_ptr<storage::local_state>{};
      },
      [](find_atom, const job_spec&,
         const std::vector<std::uint64_t>&) -> caf::result<storage::checkpoint_search_result> {
        return storage::checkpoint_search_result{};
      },
      [](commit_atom, const storage::manifest& what) -> caf::result<std::uint64_t> {
        return what.checkpoint;
      },
      [](scrub_atom) -> caf::result<std::uint64_t> { return 0; },
    };
  }));
}

struct fixture : actor_fixture {
  explicit fixture(consistency sync = asp(), bool with_files = false, std::size_t apply_batch = 1)
      : job(job_of({sync})), coordinator(*this),
        files(with_files ? std::make_shared<fake_files>() : nullptr) {
    job.tables[0].optimizer.learning_rate = 1;
    server_options options;
    options.self = {role::server, 0, {77}};
    options.job = fingerprint(job);
    options.address = "here:1";
    options.own_thread = false;
    options.apply_batch = apply_batch;
    options.boot_clock = clock();
    options.works = [this] { ++works; };
    server = owned(spawn_server(system, options, coordinator.connector(),
                                files ? spawn_files(*this, files) : checkpointer{}));
  }

  /// Returns a desired state that makes the server the whole chain; each generation starts from
  /// `base_checkpoint`.
  desired_server wanted(std::uint64_t generation = 1, std::uint64_t base_checkpoint = 0) const {
    desired_server what;
    what.job = job;
    what.generation = {1};
    const chain_config alone{{generation}, {generation}, {{role::server, 0, {77}}}, std::nullopt};
    what.chains = {{{0}, {alone, base_checkpoint, std::nullopt}}};
    what.shard_of.assign(job.partitions, shard_id{0});
    what.workers = {test::member(0), test::member(1)};
    return what;
  }

  void serve() { coordinator.order(server, wanted()); }

  push_request gradient(std::uint32_t worker, std::uint64_t batch, std::uint64_t clock,
                        std::vector<float> elements = {1, 2, 3, 4}) const {
    push_request what;
    what.step = {{worker}, first_start(worker), {1}, {batch}, clock};
    what.tables = {{0}};
    auto copy = pool->floats(elements.size());
    std::copy(elements.begin(), elements.end(), copy.get());
    what.pieces = {{{{0}, 0, elements.size()}, copy}};
    return what;
  }

  pull_request all(std::uint32_t worker, std::uint64_t batch, std::uint64_t clock,
                   bool latest = false) const {
    return {{{worker}, first_start(worker), {1}, {batch}, clock}, latest, {{{0}, 0, 4}}};
  }

  std::vector<float> read() {
    const auto answer = pull(server, all(0, 0, 0, true));
    REQUIRE(answer->reply);
    const auto& piece = answer->reply->pieces.at(0);
    return {piece.values.get(), piece.values.get() + piece.where.count};
  }

  const replica_status& last() const { return coordinator.last<server_status>().chains.at(0); }
  server_counters counters() const { return coordinator.last<server_status>().counters; }

  job_spec job;
  std::shared_ptr<buffer_pool> pool = std::make_shared<buffer_pool>();
  fake_coordinator coordinator;
  std::shared_ptr<fake_files> files;
  int works = 0; ///< Calls of server_options::works.
  server_handle server;
};

} // namespace

TEST_CASE("a_server_reports_at_once_and_then_every_100_ms") {
  fixture f;
  REQUIRE(f.coordinator.reports().size() == 1);
  CHECK(f.coordinator.reports()[0].from == member_id{role::server, 0, {77}});
  CHECK(f.coordinator.reports()[0].job == fingerprint(f.job));
  CHECK(f.coordinator.reports()[0].address == "here:1");
  CHECK(f.coordinator.last<server_status>().chains.empty());
  f.advance(1000ms);
  CHECK(f.coordinator.reports().size() == 11);
  CHECK(f.coordinator.reports().back().sequence == 11);
}

TEST_CASE("before_it_has_partitions_a_server_is_not_ready") {
  fixture f;
  CHECK(f.push(f.server, f.gradient(0, 0, 0))->error->code == errc::not_ready);
  CHECK(f.pull(f.server, f.all(0, 0, 0))->error->code == errc::not_ready);
}

TEST_CASE("a_desired_state_makes_a_server_serve_and_it_says_so_at_once") {
  fixture f;
  f.serve();
  REQUIRE(f.coordinator.reports().size() == 3);
  const auto& loading = std::get<server_status>(f.coordinator.reports()[1].body).chains.at(0);
  CHECK(loading.status == chain_status{{1}, {0}, {1}, false, false});
  CHECK(f.last().status == chain_status{{1}, {1}, {1}, true, false});
  CHECK(f.last().clocks.size() == 2);
  CHECK(f.read() == std::vector<float>{0, 0, 0, 0});
}

TEST_CASE("a_push_is_applied_once_and_then_marked") {
  fixture f;
  f.serve();
  CHECK(f.works == 0);
  const auto first = f.push(f.server, f.gradient(0, 5, 0));
  REQUIRE(first->reply);
  CHECK(*first->reply == push_reply{1, false});
  CHECK(f.works == 1);
  CHECK(f.read() == std::vector<float>{-1, -2, -3, -4});
  const auto second = f.push(f.server, f.gradient(1, 5, 0));
  REQUIRE(second->reply);
  CHECK(second->reply->duplicate);
  CHECK(f.read() == std::vector<float>{-1, -2, -3, -4});
  f.advance(100ms);
  CHECK(f.last().applied.contains({5}));
  CHECK(f.counters().applied == 1);
  CHECK(f.counters().duplicates == 1);
  CHECK(f.counters().bytes_received == 32);
  CHECK(f.counters().bytes_sent == 32);
}

TEST_CASE("a_gradient_that_is_not_finite_is_refused_and_changes_nothing") {
  for (const auto sync : {asp(), bsp()}) {
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      fixture f{sync};
      f.serve();
      const auto refused = f.push(f.server, f.gradient(1, 1, 0, {1, 2, bad, 4}));
      REQUIRE(refused->error);
      CHECK(refused->error->code == errc::non_finite);
      CAPTURE(refused->error->text);
      CHECK(refused->error->text.find("worker 1") != std::string::npos);
      CHECK(refused->error->text.find("'t0'") != std::string::npos);
      CHECK(refused->error->text.find("2") != std::string::npos);
      CHECK(f.read() == std::vector<float>{0, 0, 0, 0});
      f.advance(100ms);
      CHECK(f.counters().refused == 1);
      CHECK_FALSE(f.last().applied.contains({1}));
    }
  }
}

TEST_CASE("pieces_and_ranges_outside_the_table_are_refused") {
  fixture f;
  f.serve();
  CHECK(f.push(f.server, f.gradient(0, 0, 0, {1, 2, 3, 4, 5}))->error->code
        == errc::shape_mismatch);
  auto asked = f.all(0, 0, 0);
  asked.ranges[0].first = 1;
  CHECK(f.pull(f.server, asked)->error->code == errc::shape_mismatch);
}

TEST_CASE("a_pull_that_waits_in_vain_is_answered_not_yet") {
  fixture f{ssp(0)};
  f.serve();
  REQUIRE(f.push(f.server, f.gradient(0, 0, 0))->reply);
  const auto waiting = f.pull(f.server, f.all(0, 2, 1));
  f.advance(450ms);
  CHECK(waiting->pending());
  f.advance(100ms);
  REQUIRE(waiting->error);
  CHECK(waiting->error->code == errc::not_yet);
  CHECK(waiting->error->text.find("worker 1") != std::string::npos);
}

TEST_CASE("a_waiting_pull_goes_on_when_the_other_worker_pushes_or_leaves") {
  fixture f{ssp(0)};
  f.serve();
  REQUIRE(f.push(f.server, f.gradient(0, 0, 0))->reply);
  const auto waiting = f.pull(f.server, f.all(0, 2, 1));
  CHECK(waiting->pending());
  SUBCASE("pushes") { REQUIRE(f.push(f.server, f.gradient(1, 1, 0))->reply); }
  SUBCASE("leaves") {
    auto without = f.wanted();
    without.workers.pop_back();
    f.coordinator.order(f.server, without);
  }
  CHECK(waiting->reply);
}

TEST_CASE("bsp_applies_a_clock_when_all_its_slots_are_there") {
  fixture f{bsp()};
  f.serve();
  const auto first = f.push(f.server, f.gradient(0, 0, 0, {2, 2, 2, 2}));
  const auto again = f.push(f.server, f.gradient(0, 0, 0, {2, 2, 2, 2}));
  CHECK(first->pending());
  CHECK(again->pending());
  CHECK(f.read() == std::vector<float>{0, 0, 0, 0});
  const auto second = f.push(f.server, f.gradient(1, 1, 0, {4, 4, 4, 4}));
  CHECK(first->reply);
  CHECK(second->reply);
  REQUIRE(again->reply);
  CHECK(again->reply->duplicate);
  CHECK(f.read() == std::vector<float>{-3, -3, -3, -3});
}

TEST_CASE("a_second_copy_of_a_slot_does_not_keep_its_payload") {
  fixture f{bsp()};
  f.serve();
  auto first = f.gradient(0, 0, 0);
  auto second = f.gradient(0, 0, 0);
  const std::weak_ptr<const float> of_first = first.pieces[0].values;
  const std::weak_ptr<const float> of_second = second.pieces[0].values;
  const auto waiting = f.push(f.server, std::move(first));
  f.push(f.server, std::move(second));
  CHECK_FALSE(of_first.expired());
  CHECK(of_second.expired());
  CHECK(f.push(f.server, f.gradient(1, 1, 0))->reply);
  CHECK(waiting->reply);
}

TEST_CASE("older_desired_states_and_those_of_an_older_term_are_ignored") {
  fixture f;
  f.serve();
  desired_state old;
  old.term = 1;
  old.sequence = 0;
  old.stop = true;
  old.body = desired_server{};
  f.send(f.server, old);
  old.term = 0;
  old.sequence = 99;
  f.send(f.server, old);
  old.term = 9;
  old.body = desired_worker{}; // These are for a worker.
  f.send(f.server, old);
  CHECK(f.read().size() == 4);
}

TEST_CASE("a_new_generation_drops_everything_and_fails_what_is_open") {
  fixture f{bsp()};
  f.serve();
  const auto waiting = f.push(f.server, f.gradient(0, 0, 0));
  const auto pulling = f.pull(f.server, f.all(0, 2, 1));
  f.coordinator.order(f.server, f.wanted(2));
  CHECK(waiting->error->code == errc::rolled_back);
  CHECK(pulling->error->code == errc::rolled_back);
  CHECK(f.last().status == chain_status{{2}, {2}, {2}, true, false});
}

TEST_CASE("a_server_told_to_stop_fails_what_is_open_and_is_silent") {
  fixture f{bsp()};
  f.serve();
  const auto waiting = f.push(f.server, f.gradient(0, 0, 0));
  const auto pulling = f.pull(f.server, f.all(0, 2, 1));
  f.coordinator.order(f.server, f.wanted(), true);
  REQUIRE(waiting->error);
  CHECK(waiting->error->code == errc::peer_lost);
  REQUIRE(pulling->error);
  CHECK(pulling->error->code == errc::peer_lost);
  const auto count = f.coordinator.reports().size();
  f.advance(1000ms);
  CHECK(f.coordinator.reports().size() == count);
  CHECK(f.push(f.server, f.gradient(0, 0, 0))->error->code == errc::peer_lost);
}

TEST_CASE("a_server_reports_while_its_partitions_are_filled") {
  fixture f;
  // Only the server runs; the actor that fills its partitions has to wait.
  const auto coordinator = f.coordinator.connector()({});
  const auto run_server = [&] {
    f.sched.prioritize(f.server);
    f.sched.run_once();
    while (f.sched.prioritize(coordinator))
      f.sched.run_once();
  };
  const auto order = [&](std::uint64_t generation) {
    desired_state what{{}, 1, generation, false, {}, f.wanted(generation)};
    caf::anon_send(f.server, what);
    run_server();
  };
  order(1);
  const auto before = f.coordinator.reports().size();
  f.sched.advance_time(report_interval);
  run_server();
  CHECK(f.coordinator.reports().size() == before + 1);
  CHECK_FALSE(f.last().status.complete);
  order(2); // The partitions filled for the first desired state are of no more use.
  f.sched.run();
  CHECK(f.last().status == chain_status{{2}, {2}, {2}, true, false});
  for (const auto& x : f.coordinator.reports())
    for (const auto& chain : std::get<server_status>(x.body).chains)
      CHECK_FALSE((chain.status.complete && chain.status.generation.value == 1));
  CHECK(f.read() == std::vector<float>{0, 0, 0, 0});
}

TEST_CASE("another_job_is_refused_in_the_report") {
  fixture f;
  auto what = f.wanted();
  what.job.seed += 1;
  f.coordinator.order(f.server, what);
  CHECK(f.last().failed.value().text == "the coordinator runs another job");
  CHECK_FALSE(f.last().status.complete);
}

TEST_CASE("a_checkpoint_asked_for_is_written_once_and_reported") {
  fixture f{asp(), true};
  f.serve();
  REQUIRE(f.push(f.server, f.gradient(0, 5, 0))->reply);
  auto what = f.wanted();
  what.checkpoint = 3;
  f.coordinator.order(f.server, what);
  f.coordinator.order(f.server, what);
  REQUIRE(f.files->cuts.size() == 1);
  CHECK(f.files->cuts[0].checkpoint == 3);
  CHECK(f.files->cuts[0].partitions.size() == 4);
  CHECK(f.last().part == checkpoint_part{3, {0}, {}, 9});
}

TEST_CASE("a_checkpoint_that_cannot_be_written_is_reported_with_its_reason") {
  fixture f{asp(), true};
  f.serve();
  f.files->fails = failure{errc::io_failed, "the disk is full"};
  auto what = f.wanted();
  what.checkpoint = 3;
  f.coordinator.order(f.server, what);
  CHECK(f.last().checkpoint_failed == 3);
  CHECK(f.last().checkpoint_failure == "the disk is full");
  CHECK(f.push(f.server, f.gradient(0, 5, 0))->reply);
}

TEST_CASE("partitions_are_restored_from_a_checkpoint") {
  fixture source{asp(), true};
  source.serve();
  REQUIRE(source.push(source.server, source.gradient(0, 5, 0))->reply);
  auto what = source.wanted();
  what.checkpoint = 3;
  source.coordinator.order(source.server, what);

  fixture f{asp(), true};
  f.files->images = source.files->cuts.at(0).partitions;
  f.coordinator.order(f.server, f.wanted(4, 3));
  CHECK(f.files->reads == std::vector<std::uint64_t>{3});
  CHECK(f.last().status == chain_status{{4}, {4}, {4}, true, false});
  CHECK(f.last().applied.contains({5}));
  CHECK(f.read() == std::vector<float>{-1, -2, -3, -4});
}

TEST_CASE("what_cannot_be_restored_is_said_in_the_report") {
  fixture f{asp(), true};
  const auto restore = f.wanted(4, 3);
  SUBCASE("a read that fails") {
    f.files->fails = failure{errc::damaged, "rotten"};
    f.coordinator.order(f.server, restore);
    CHECK(f.last().failed.value().text == "rotten");
    CHECK(f.last().unreadable == 3);
  }
  SUBCASE("an incomplete checkpoint") {
    f.files->images.resize(1); // Its block is missing.
    f.files->images[0].partition = partition_of(f.job, {0}, 0);
    f.files->images[0].applied.resize(1);
    f.coordinator.order(f.server, restore);
    CHECK(f.last().failed);
    CHECK(f.last().unreadable == 3);
  }
  SUBCASE("a read that takes too long") {
    f.files->fails = failure{errc::timed_out, "no answer in time"};
    f.coordinator.order(f.server, restore);
    CHECK(f.last().failed);
    CHECK(f.last().unreadable == 0);
  }
  SUBCASE("no storage") {
    fixture g;
    g.coordinator.order(g.server, restore);
    CHECK(g.last().failed.value().text == "there are no checkpoints to restore from");
    CHECK_FALSE(g.last().status.complete);
    return;
  }
  CHECK_FALSE(f.last().status.complete);
}

TEST_CASE("waiting_pushes_are_applied_together_to_the_same_bytes") {
  const auto run = [](std::size_t apply_batch) {
    fixture f{asp(), false, apply_batch};
    f.serve();
    std::vector<std::uint64_t> versions;
    f.system.spawn([&](caf::event_based_actor* self) {
      for (std::uint64_t batch = 0; batch < 7;
           ++batch) { // All are in the mailbox before the first runs.
        const auto x = 0.1f * static_cast<float>(batch);
        request what{f.gradient(batch % 2, batch, batch, {x, 1 / (x + 1), x * x, 1}), {}};
        if (batch == 3)
          what.push->step.batch = {2}; // It repeats batch 2.
        if (batch == 5)
          what.pull = f.all(1, 6, 6);
        self->request(f.server, std::chrono::seconds{3600}, what).then([&](const reply& answer) {
          versions.push_back(answer.pushed->version);
        });
      }
    });
    f.sched.run();
    CHECK(versions.size() == 7);
    const auto found = f.read();
    f.advance(100ms);
    CHECK(f.counters().applied == 6);
    CHECK(f.counters().duplicates == 1);
    return found;
  };
  const auto one_by_one = run(1);
  for (const std::size_t apply_batch : {2, 3, 4, 16}) {
    CAPTURE(apply_batch);
    CHECK(run(apply_batch) == one_by_one);
  }
}

TEST_CASE("a_bad_gradient_among_waiting_pushes_is_refused_alone") {
  fixture f{asp(), false, 16};
  f.serve();
  std::vector<std::string> outcomes;
  f.system.spawn([&](caf::event_based_actor* self) {
    for (std::uint64_t batch = 0; batch < 3; ++batch) {
      const float bad = batch == 1 ? std::numeric_limits<float>::infinity() : 1.0f;
      self
        ->request(f.server, std::chrono::seconds{3600},
                  request{f.gradient(0, batch, batch, {1, bad, 1, 1}), {}})
        .then([&](const reply&) { outcomes.push_back("applied"); },
              [&](const caf::error& why) { outcomes.push_back(to_string(from_caf(why).code)); });
    }
  });
  f.sched.run();
  CHECK(outcomes == std::vector<std::string>{"applied", "non_finite", "applied"});
  CHECK(f.read() == std::vector<float>{-2, -2, -2, -2});
}

TEST_CASE("a_pull_that_shares_a_request_sees_its_push") {
  for (const std::size_t apply_batch : {1, 16}) {
    fixture f{asp(), false, apply_batch};
    f.serve();
    std::vector<float> seen;
    f.system.spawn([&](caf::event_based_actor* self) {
      self
        ->request(f.server, std::chrono::seconds{3600},
                  request{f.gradient(0, 0, 0), f.all(0, 1, 1)})
        .then([&](const reply& answer) {
          REQUIRE(answer.pushed);
          const auto& piece = answer.pulled->pieces.at(0);
          seen.assign(piece.values.get(), piece.values.get() + 4);
        });
    });
    f.sched.run();
    CHECK(seen == std::vector<float>{-1, -2, -3, -4});
  }
}

TEST_CASE("values_that_have_to_be_waited_for_do_not_hold_back_the_receipt_for_ever") {
  fixture f{ssp(0)};
  f.serve();
  std::optional<reply> found;
  f.system.spawn([&](caf::event_based_actor* self) {
    self
      ->request(f.server, std::chrono::seconds{3600}, request{f.gradient(0, 0, 0), f.all(0, 1, 1)})
      .then([&](const reply& answer) { found = answer; });
  });
  f.sched.run();
  CHECK_FALSE(found); // Worker 1 is still at clock 0.
  f.advance(600ms);
  REQUIRE(found);
  CHECK(found->pushed);
  CHECK_FALSE(found->pulled);
}

namespace {

/// The fixture with a sparse table, whose rows have two elements.
struct row_fixture : fixture {
  explicit row_fixture(consistency sync = asp()) : fixture(sync, true) {
    job.tables[0].shape.clear();
    job.tables[0].kind = table_kind::sparse;
    job.tables[0].width = 2;
    server_options options;
    options.self = {role::server, 0, {77}};
    options.job = fingerprint(job);
    options.own_thread = false;
    options.boot_clock = clock();
    server =
      owned(spawn_server(system, options, coordinator.connector(), spawn_files(*this, files)));
    serve();
  }

  static row_keys keys(std::vector<std::uint64_t> which) {
    const auto memory = std::make_shared<std::vector<std::uint64_t>>(std::move(which));
    return {{0}, 2, memory->size(), {memory, memory->data()}};
  }

  push_request rows(std::uint32_t worker, std::uint64_t batch, std::uint64_t clock,
                    std::vector<std::uint64_t> which) const {
    auto what = gradient(worker, batch, clock, std::vector<float>(2 * which.size(), 1.0f));
    what.rows = {{keys(std::move(which)), what.pieces[0].values}};
    what.pieces.clear();
    return what;
  }

  std::vector<float> read_rows(std::vector<std::uint64_t> which) {
    pull_request what{{{0}, first_start(0), {1}, {0}, 0}, true, {}, {keys(std::move(which))}};
    const auto answer = pull(server, what);
    REQUIRE(answer->reply);
    const auto& found = answer->reply->rows.at(0);
    return {found.values.get(), found.values.get() + found.where.floats()};
  }
};

} // namespace

TEST_CASE("rows_are_pushed_once_pulled_and_kept_in_a_checkpoint") {
  row_fixture f;
  REQUIRE(f.push(f.server, f.rows(0, 0, 0, {3, 7}))->reply);
  REQUIRE(f.push(f.server, f.rows(1, 1, 0, {7}))->reply);
  CHECK(f.push(f.server, f.rows(1, 0, 1, {3, 7}))->reply->duplicate);
  CHECK(f.read_rows({1, 3, 7}) == std::vector<float>{0, 0, -1, -1, -2, -2});
  auto bad = f.rows(0, 2, 1, {7, 3});
  CHECK(f.push(f.server, bad)->error->code == errc::shape_mismatch);

  auto order = f.wanted();
  order.checkpoint = 4;
  f.coordinator.order(f.server, order);
  REQUIRE(f.files->cuts.size() == 1);
  CHECK(f.push(f.server, f.rows(0, 2, 1, {3}))->reply);
  f.files->images = f.files->cuts[0].partitions;
  f.coordinator.order(f.server, f.wanted(2, 4));
  CHECK(f.read_rows({1, 3, 7}) == std::vector<float>{0, 0, -1, -1, -2, -2});
}

} // namespace server_actor_test
