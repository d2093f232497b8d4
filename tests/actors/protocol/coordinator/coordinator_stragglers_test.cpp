// Tests how the coordinator treats slow workers: it carries out the detector's measures, and backup
// workers compute the slowest workers' batches.
#include "tests/actors/coordinator_fixture.hpp"

#include "actors/protocol/clock_table.hpp"

namespace troupe::coordinator_stragglers_test {
namespace {

/// One server, and workers that compute their leases one batch after the other.
struct fleet : coordinator_fixture {
  static constexpr auto interval = 100ms;

  struct machine {
    std::uint64_t incarnation = 0;
    time_point step{100ms};
    worker_status said;
    std::optional<batch_id> computing;
    time_point busy{0}; ///< Time spent on the batch `computing`.
    time_point starts_at{0};
    bool is_gone = false;
    double channel_share = 0; ///< Share of its busy time in which it waits for parcels.
  };

  explicit fleet(std::uint32_t workers, consistency_mode mode = consistency_mode::asp,
                 std::uint32_t spares = 0, straggler_options rules = {})
      : fleet(workers, job_with(mode, workers, spares), with(rules)) {}

  fleet(std::uint32_t workers, const job_spec& what, const coordinator_options& how,
        storage::coordinator_state stored = {})
      : coordinator_fixture(what, how, std::move(stored)), machines(workers + what.backup_workers) {
    for (std::uint32_t i = 0; i < machines.size(); ++i)
      machines[i].incarnation = 200 + i;
  }

  static job_spec job_with(consistency_mode mode, std::uint32_t workers, std::uint32_t spares) {
    auto job = job_of_mode(mode, 1, workers, 100'000);
    job.backup_workers = spares;
    return job;
  }
  static coordinator_options with(const straggler_options& rules) {
    coordinator_options how;
    how.stragglers = rules;
    return how;
  }

  void run(time_point span) {
    for (const auto end = now + span; now < end;) {
      for (int i = 0; i < 5; ++i)
        tick();
      serve_all();
      for (std::uint32_t i = 0; i < machines.size(); ++i)
        live(i);
    }
  }

  void serve_all() {
    const member_id who{role::server, 0, {100}};
    for (std::uint32_t i = 0; i < machines.size(); ++i)
      if (last.contains(who) && machines[i].said.counters.batches_computed > 0 && !listed(i))
        unlisted.insert(i);
    server(0, 100);
    if (!last.contains(who))
      return; // The coordinator has just started.
    auto body = reconciled_status(who, 0);
    for (auto& replica : body.chains)
      replica.applied = done;
    receive(who, std::move(body));
  }

  void live(std::uint32_t index) {
    auto& one = machines[index];
    const member_id who{role::worker, index, {one.incarnation}};
    if (one.is_gone)
      return;
    if (const auto told = last.find(who); told != last.end() && told->second.stop) {
      one = {one.incarnation + 1000, one.step, {}, {}, {}, now + 1s};
      ++restarts;
    }
    if (now < one.starts_at)
      return;
    if (const auto told = last.find({role::worker, index, {one.incarnation}}); told != last.end())
      compute(one, std::get<desired_worker>(told->second.body));
    worker(index, one.incarnation, one.said);
  }

  static std::optional<batch_id> next_of(const std::vector<lease_progress>& leases) {
    for (const auto& [what, done] : leases)
      for (std::uint32_t i = 0; i < what.count; ++i)
        if (std::ranges::find(done, what.at(i)) == done.end())
          return what.at(i);
    return std::nullopt;
  }

  /// Acknowledges the batch's push, even when the batch was done before.
  void finish(worker_status& said, batch_id batch) {
    for (auto& [what, finished] : said.leases)
      for (std::uint32_t i = 0; i < what.count; ++i)
        if (what.at(i) == batch)
          finished.push_back(batch);
    doubled += done.contains(batch) ? 1 : 0;
    done.insert(batch);
    ++said.counters.batches_computed;
    ++said.counters.samples_computed;
    ++said.counters.pushes_acknowledged;
  }

  /// Computes the worker's leases for one `interval`. In bsp no slot waits for another one here:
  /// the coordinator would not see the wait.
  void compute(machine& one, const desired_worker& told) {
    auto& counters = one.said.counters;
    std::vector<lease_progress> leases;
    for (const auto& what : told.leases) {
      leases.push_back({what, {}});
      const auto known = std::ranges::find(one.said.leases, what.id,
                                           [](const lease_progress& x) { return x.lease.id; });
      if (known != one.said.leases.end())
        leases.back().done = known->done;
    }
    one.said.leases = leases;
    auto time = time_point{interval};
    while (time > 0s && (one.computing || (one.computing = next_of(one.said.leases)))) {
      const auto part = std::min(time, one.step - one.busy);
      time -= part;
      one.busy += part;
      counters.channel_wait_us +=
        static_cast<std::uint64_t>(one.channel_share * static_cast<double>(part / 1us));
      if (one.busy < one.step)
        break;
      one.busy = 0s;
      finish(one.said, *std::exchange(one.computing, std::nullopt));
    }
    counters.wait_us += static_cast<std::uint64_t>(time / 1us);
  }

  const desired_worker& told_to(std::uint32_t index) {
    return desired_of(index, machines[index].incarnation);
  }
  std::uint64_t held(std::uint32_t index) {
    std::uint64_t open = 0;
    for (const auto& what : told_to(index).leases)
      open += what.count;
    return open;
  }
  std::optional<clock_entry> listed(std::uint32_t index) {
    for (const auto& x : desired_of_server(0, 100).workers)
      if (x.worker.value == index)
        return x;
    return std::nullopt;
  }
  member_state state_of_worker(std::uint32_t index) {
    observer();
    for (const auto& one : std::get<job_status>(all_desired(role::observer, 0, 900).body).members)
      if (one.member.role == role::worker && one.member.index == index)
        return one.state;
    return member_state::absent;
  }
  /// Runs until that was told.
  bool await(event_kind kind, const event_texts& fields = {}, time_point longest = 60s) {
    for (const auto end = now + longest; now < end && !told(kind, fields);)
      run(1s);
    return told(kind, fields);
  }

  std::vector<machine> machines;
  batch_set done;
  std::set<std::uint32_t> unlisted; ///< Workers that left the list after they had begun to work.
  std::uint64_t doubled = 0;
  int restarts = 0;
};

TEST_CASE("a straggler is watched, relieved, a backup, out, and back after its time") {
  fleet f(6);
  f.machines[5].step = 500ms;
  CHECK(f.await(event_kind::worker_warned, {{"member", "worker 5"}}));
  CHECK(f.await(event_kind::worker_rebalanced, {{"member", "worker 5"}}));
  CHECK(f.held(5) == 1);
  CHECK(f.listed(5)->clock != unbound_clock);
  CHECK(f.await(event_kind::worker_demoted, {{"member", "worker 5"}}));
  f.run(200ms);
  CHECK(f.listed(5)->clock == unbound_clock);
  CHECK(f.await(event_kind::worker_evicted,
                {{"member", "worker 5"}, {"reason", "slow"}, {"seconds", "30"}}));
  CHECK(f.doubled > 0); // It computed what others did as well.
  const auto out_at = f.now;
  CHECK(f.told(event_kind::worker_lost,
               {{"member", "worker 5"}, {"batches", "0"}, {"reason", "evicted"}}));
  f.run(3s);
  CHECK(f.restarts == 1);
  CHECK_FALSE(f.listed(5));
  CHECK_FALSE(f.told_to(5).admitted);
  CHECK(f.state_of_worker(5) == member_state::evicted);
  f.machines[5].step = 100ms;
  CHECK(f.await(event_kind::worker_readmitted,
                {{"member", "worker 5"}, {"reason", "its time is over"}}));
  CHECK(f.now - out_at >= 28s);
  f.run(1s);
  CHECK(f.told_to(5).admitted);
  CHECK(f.held(5) > 0);
  CHECK(f.state_of_worker(5) == member_state::active);
  f.run(60s);
  CHECK(f.restarts == 1);
}

TEST_CASE("force ends where the rules say") {
  for (const auto& [least, refused] :
       {std::pair{straggler_measure::warned, event_kind::worker_rebalanced},
        std::pair{straggler_measure::rebalanced, event_kind::worker_demoted},
        std::pair{straggler_measure::demoted, event_kind::worker_evicted}}) {
    straggler_options rules;
    rules.strongest = least;
    fleet f(6, consistency_mode::asp, 0, rules);
    f.machines[5].step = 500ms;
    f.run(90s);
    CHECK(f.told(event_kind::worker_warned, {{"member", "worker 5"}}));
    CHECK_FALSE(f.told(refused));
    CHECK(f.restarts == 0);
  }
}

TEST_CASE("who is quick again has its full duty back, and is waited for again") {
  straggler_options rules;
  rules.strongest = straggler_measure::demoted;
  rules.recovery = 20s;
  fleet f(6, consistency_mode::ssp, 0, rules);
  f.machines[5].step = 500ms;
  CHECK(f.await(event_kind::worker_demoted));
  f.machines[5].step = 100ms;
  CHECK(f.unlisted.empty());
  CHECK(f.await(event_kind::worker_healthy, {{"member", "worker 5"}}));
  f.run(1s);
  CHECK(f.unlisted == std::set{5u}); // It was unlisted to begin at a clock promised to readers.
  REQUIRE(f.listed(5));
  CHECK(f.listed(5)->known);
  CHECK(f.listed(5)->clock != unbound_clock);
  CHECK(f.held(5) > 0);
}

TEST_CASE("without rules nobody is judged") {
  fleet f(6, fleet::job_with(consistency_mode::asp, 6, 0), {});
  f.machines[5].step = 500ms;
  f.run(90s);
  CHECK_FALSE(f.told(event_kind::worker_warned));
}

TEST_CASE("time that a trainer waits for parcels is no slowness") {
  for (const bool waits : {false, true}) {
    fleet one(6);
    one.run(10s);
    // Worker 0 takes ten times as long. Its batch lacks a parcel for nine tenths of that.
    one.machines[0].step = 1s;
    one.machines[0].channel_share = waits ? 0.9 : 0.0;
    one.run(40s);
    CHECK(one.told(event_kind::worker_warned, {{"member", "worker 0"}}) != waits);
    CHECK(one.told(event_kind::worker_stalled) == false);
    CHECK(one.told(event_kind::worker_evicted, {{"member", "worker 0"}}) != waits);
  }
}

TEST_CASE("half of the workers slow: nobody is blamed") {
  fleet f(6);
  for (std::uint32_t i = 0; i < 3; ++i)
    f.machines[i].step = 500ms;
  f.run(90s);
  CHECK_FALSE(f.told(event_kind::worker_evicted));
  CHECK_FALSE(f.told(event_kind::worker_rebalanced));
}

TEST_CASE("one at a time is out") {
  fleet f(11);
  f.machines[3].step = f.machines[7].step = 600ms;
  f.run(60s);
  CHECK(f.told(event_kind::worker_evicted));
  int out = 0;
  for (const std::uint32_t i : {3u, 7u})
    out += f.state_of_worker(i) == member_state::evicted ? 1 : 0;
  CHECK(out == 1);
  CHECK(f.restarts == 1);
}

TEST_CASE("a worker that reports and does not train is put out, and its work goes to others") {
  fleet f(6);
  f.run(10s);
  f.machines[2].step = 1h;
  CHECK(f.await(event_kind::worker_stalled, {{"member", "worker 2"}}));
  CHECK(f.await(event_kind::worker_evicted, {{"member", "worker 2"}, {"reason", "stalled"}}));
  CHECK(f.told(event_kind::worker_lost, {{"reason", "evicted"}}));
}

TEST_CASE("after a restart of the coordinator the judge begins anew") {
  fleet before(6);
  before.machines[5].step = 500ms;
  REQUIRE(before.await(event_kind::worker_evicted));
  before.run(2s);
  REQUIRE_FALSE(before.told_to(5).admitted);
  fleet f(6, before.job, before.options, state_of(before));
  f.machines = before.machines;
  f.machines[5].starts_at = 0s; // Clocks begin anew in these tests.
  f.done = before.done;
  f.run(10s);
  CHECK(f.told_to(5).admitted);
}

TEST_CASE("a spare computes what the slowest worker has to do, and takes a lost one's slots") {
  straggler_options rules;
  rules.strongest = straggler_measure::warned;
  fleet f(3, consistency_mode::bsp, 1, rules);
  f.machines[1].step = 400ms;
  f.run(5s);
  REQUIRE(f.told_to(3).leases.size() == 1);
  const auto copy = f.told_to(3).leases.front();
  const auto slot_of = [](batch_id batch) { return batch.value % 3; };
  bool covered = false;
  for (const auto& own : f.told_to(1).leases)
    covered = covered || slot_of(own.first) == slot_of(copy.first);
  CHECK(covered);
  CHECK(copy.stride == 3);
  CHECK(f.doubled > 0);
  f.machines[0].is_gone = true;
  f.death(role::worker, 0, 200);
  f.run(5s);
  CHECK(f.held(3) > copy.count); // The spare has slots of its own.
}

TEST_CASE("what the only worker has not begun goes to those that come back") {
  fleet f(3, job_of_mode(consistency_mode::bsp, 1, 3, 96), {});
  for (auto& one : f.machines)
    one.step = 500ms;
  f.run(2s);
  REQUIRE(f.held(0) == 32); // One slot of each of two groups.
  for (const auto index : {1u, 2u}) {
    f.machines[index].is_gone = true;
    f.death(role::worker, index, 200 + index);
  }
  f.run(1s);
  REQUIRE(f.held(0) > 80);
  for (const auto index : {1u, 2u}) {
    fleet::machine fresh;
    fresh.incarnation = 300 + index;
    fresh.step = 500ms;
    f.machines[index] = fresh;
  }
  f.run(2s);
  for (const auto index : {0u, 1u, 2u})
    CHECK(f.held(index) < 40);
  f.run(16s);
  CHECK(f.done.size() == 96);
}

TEST_CASE("at the end a slow worker keeps only the batch that it computes") {
  fleet f(2, job_of_mode(consistency_mode::asp, 1, 2, 30), {});
  f.machines[1].step = 5s;
  f.run(4s);
  CHECK(f.done.size() == 29);
  CHECK(f.held(1) == 1);
  CHECK_FALSE(f.told_to(0).admitted);
  CHECK(f.doubled == 0);
}

} // namespace
} // namespace troupe::coordinator_stragglers_test
