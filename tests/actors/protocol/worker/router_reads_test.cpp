// Tests which replica a router asks for values where chains have several.
#include "tests/actors/router_fixture.hpp"

namespace troupe::test::router_reads_test {

namespace {

using namespace std::chrono_literals;

/// Returns a view with chain 0 on servers 0, 1, 2 and chain 1 on servers 1, 2, 0.
view replicated_view(const job_spec& job, std::uint64_t config = 1) {
  auto made = routed_view(job, config);
  for (auto& entry : made.chains)
    for (std::uint32_t i = 1; i < 3; ++i)
      entry.others.push_back(routed_server((entry.shard.value + i) % 3));
  return made;
}

struct reads_fixture : router_fixture {
  explicit reads_fixture(read_target reads = read_target::head,
                         consistency_mode mode = consistency_mode::asp)
      : router_fixture(false) {
    for (auto& table : job.tables)
      table.sync.mode = mode;
    decide = router{job, {.reads = reads}};
    set_view(replicated_view(job));
  }

  pull_request of_worker(std::uint32_t index) const {
    auto made = whole_pull(job);
    made.step.worker = {index};
    return made;
  }
  /// Returns the server that got the last request of the part.
  std::uint32_t asked(std::uint64_t part) const { return last_of(part).to.head.index; }
  bool anywhere(std::uint64_t part) const { return last_of(part).what.pull->anywhere; }
  texts lost(std::uint64_t part, errc code = errc::peer_lost) {
    return failed(part, code, last_of(part).attempt);
  }
  texts answer(std::uint64_t part, std::uint64_t version, std::uint64_t generation = 1) {
    const auto& what = last_of(part).what;
    reply made;
    if (what.push)
      made.pushed = push_reply{version, false};
    if (what.pull)
      made.pulled = answer_to(*what.pull, version);
    made.generation = {generation};
    return answered(part, made);
  }
};

TEST_CASE("heads are asked while they answer, with a push and its pull in one request") {
  reads_fixture f;
  CHECK(f.ask(1, {whole_push(f.job), f.of_worker(1)})
        == texts{"push and pull 1 to 0 attempt 1", "push and pull 2 to 1 attempt 1"});
  f.pull(2, f.of_worker(1));
  CHECK(f.asked(3) == 0);
  CHECK_FALSE(f.anywhere(3));
}

TEST_CASE("where any may be asked, workers and chains are spread over all replicas") {
  for (std::uint32_t worker = 0; worker < 3; ++worker) {
    reads_fixture f{read_target::any};
    f.pull(1, f.of_worker(worker));
    CHECK(f.asked(1) == worker);               // The chain's first, second, third replica, ...
    CHECK(f.asked(2) == (worker + 2) % 3);     // ... and the next one of chain 1 each.
    CHECK(f.anywhere(1) == (f.asked(1) != 0)); // The head answers as before.
  }
}

TEST_CASE("where any may be asked, a push goes alone, and its pull knows of it") {
  reads_fixture f{read_target::any};
  const auto sent = f.ask(1, {whole_push(f.job), f.of_worker(1)});
  CHECK(sent == texts{"push 1 to 0 attempt 1", "push 2 to 1 attempt 1"});
  f.answer(1, 7);
  CHECK(f.asked(1) == 1);
  CHECK(f.last_of(1).what.pull->seen == chain_version{{1}, 7});
  CHECK(f.answered(1, {push_reply{7, true}, {}}).empty()); // The push had been sent twice.
  f.answer(1, 9);
  f.answer(2, 3);
  CHECK(f.answer(2, 3) == texts{"pushed 1 version 7, pulled 1 version 9 elements 10003"});
  f.pull(2, f.of_worker(1));
  CHECK(f.last_of(3).what.pull->seen == chain_version{{1}, 9});
  CHECK(f.last_of(4).what.pull->seen == chain_version{{1}, 3});
}

TEST_CASE("versions of a later generation count for more, whatever they are") {
  reads_fixture f{read_target::any};
  f.pull(1, f.of_worker(0));
  f.answer(1, 100, 1);
  f.answer(2, 100, 1);
  f.pull(2, f.of_worker(0));
  f.answer(3, 2, 2);
  f.pull(3, f.of_worker(0));
  CHECK(f.last_of(5).what.pull->seen == chain_version{{2}, 2});
}

TEST_CASE("a pull goes to another replica where the head fails, and to the head where that fails") {
  reads_fixture f;
  f.pull(1, f.of_worker(0));
  CHECK(f.lost(1).size() == 1);
  CHECK(f.asked(1) == 1);
  CHECK(f.anywhere(1));
  CHECK(f.lost(1).empty()); // The router gives the head time.
  CHECK(f.tick(20ms).size() == 1);
  CHECK(f.asked(1) == 0);
  f.answer(2, 1);
  CHECK(f.answer(1, 1) == texts{"pulled 1 version 1 elements 10003"});
}

TEST_CASE("pushes stay with the head") {
  reads_fixture f;
  f.ask(1, {whole_push(f.job), f.of_worker(0)});
  CHECK(f.lost(1).empty());
  f.tick(20ms);
  CHECK(f.asked(1) == 0);
  CHECK(f.last_of(1).what.push);
}

TEST_CASE("what nobody answers is asked of one replica after the other") {
  reads_fixture f;
  f.pull(1, f.of_worker(0));
  CHECK(f.tick(199ms).empty());
  CHECK(f.tick(1ms).size() == 2);
  CHECK(f.asked(1) == 1);
  CHECK(f.tick(200ms).size() == 2);
  CHECK(f.asked(1) == 2);
  f.tick(200ms);
  CHECK(f.asked(1) == 0);
  f.answer(2, 1);
  CHECK(f.answer(1, 1).size() == 1); // The pull reply of any replica counts.
  CHECK(f.decide.next_tick() == std::nullopt);
}

TEST_CASE("what is to be the latest goes from the head to the tail and back") {
  reads_fixture f{read_target::any};
  auto what = whole_pull(f.job);
  what.latest = true;
  f.pull(1, what);
  CHECK(f.asked(1) == 0);
  f.tick(200ms);
  CHECK(f.asked(1) == 2);
  CHECK(f.asked(2) == 0);
  f.tick(200ms);
  CHECK(f.asked(1) == 0);
}

TEST_CASE("bsp: a pull that waits is not taken for one that nobody answers") {
  reads_fixture f{read_target::any, consistency_mode::bsp};
  f.pull(1, f.of_worker(1));
  CHECK(f.tick(10s).empty());
  CHECK(f.lost(1, errc::not_yet).size() == 1); // The pull's clock is not complete.
  CHECK(f.asked(1) == 1);
}

TEST_CASE("ssp: heads alone are asked, whatever happens") {
  reads_fixture f{read_target::any, consistency_mode::ssp};
  f.pull(1, f.of_worker(1));
  CHECK(f.asked(1) == 0);
  CHECK(f.lost(1).empty());
  f.tick(10s);
  CHECK(f.asked(1) == 0);
}

TEST_CASE("values are read once where that is asked for") {
  reads_fixture f;
  f.decide = router{f.job, {.read_patience = {}}};
  f.set_view(replicated_view(f.job));
  f.pull(1, f.of_worker(0));
  CHECK(f.tick(10s).empty());
}

TEST_CASE("pulls at replicas that are members no more go to the head") {
  reads_fixture f{read_target::any};
  f.pull(1, f.of_worker(1));
  REQUIRE(f.asked(1) == 1);
  auto next = replicated_view(f.job, 2);
  next.chains[0].others.erase(next.chains[0].others.begin());
  CHECK(f.set_view(next) == texts{"pull 1 to 0 attempt 1"});
  CHECK(f.asked(1) == 0);
}

TEST_CASE("while a chain has no head its other replicas are asked") {
  reads_fixture f;
  auto next = replicated_view(f.job, 2);
  next.chains[0].serving = false;
  f.set_view(next);
  CHECK(f.pull(1, f.of_worker(0)) == texts{"pull 2 to 1 attempt 1"});
  CHECK(f.tick(200ms).size() == 2);
  CHECK(f.asked(1) == 1);
}

} // namespace

} // namespace troupe::test::router_reads_test
