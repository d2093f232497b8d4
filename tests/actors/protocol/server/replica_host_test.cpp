#include "actors/protocol/server/replica_host.hpp"

#include "tests/actors/shard_fixture.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

namespace troupe::replica_host_test {

namespace {

using namespace test;
using namespace std::chrono_literals;

member_id server(std::uint32_t index) { return {role::server, index, {10 + index}}; }

chain_config config(std::uint64_t number, std::uint64_t generation, std::vector<member_id> members,
                    std::optional<member_id> joiner = {}) {
  return {{number}, {generation}, std::move(members), std::move(joiner)};
}

struct options {
  consistency sync = asp();
  durability_mode durability = durability_mode::memory;
  std::size_t apply_batch = 1;
  bool has_disk = true;
};

/// The host of server 0, and its effects as lines. Steps and writes succeed at once.
struct fixture {
  explicit fixture(options how = {}) : job(job_of({how.sync})) {
    job.servers = job.replicas = 2;
    job.durability = how.durability;
    replica_host_options of;
    of.self = server(0);
    of.job = fingerprint(job);
    of.apply_batch = how.apply_batch;
    of.has_checkpoints = true;
    of.has_disk = how.has_disk;
    of.unnamed_time = 30s;
    of.copy_patience = 5s;
    of.replica_options_of = [](const job_spec&) { return replica_options{}; };
    host.emplace(shard_id{0}, std::move(of));
  }

  template <class Event>
  void decide(Event event) {
    told.clear();
    host_effects effects;
    event(effects);
    for (std::size_t i = 0; i < effects.size(); ++i) {
      auto effect = std::move(effects[i]);
      std::visit([&](auto& x) { run(x, effects); }, effect);
    }
  }

  void reconcile(const chain_metadata& record) {
    desired_server what;
    what.job = job;
    what.generation = {1};
    what.chains = {{{0}, record}};
    what.shard_of.assign(job.partitions, shard_id{0});
    what.workers = {member(0), member(1)};
    what.heard_ns = static_cast<std::uint64_t>(now.count());
    what.checkpoint = checkpoint;
    const auto shared = std::make_shared<const desired_server>(std::move(what));
    decide([&](host_effects& effects) { host->reconcile(record, shared, now, effects); });
  }
  void tick() {
    decide([&](host_effects& effects) { host->tick(now, effects); });
  }
  std::vector<shard_partition> held() const { return fresh(job, {0, 1, 2, 3}); }
  void loaded(std::uint64_t load) {
    decide([&](host_effects& effects) { host->loaded(load, held(), now, effects); });
  }
  void recalled(std::uint64_t load, const std::optional<recalled_state>& found) {
    decide([&](host_effects& effects) { host->recalled(load, found, effects); });
  }
  void saved(const result<checkpoint_part>& done = checkpoint_part{}) {
    decide([&](host_effects& effects) { host->saved(last_save, done, now, effects); });
  }
  /// Returns a push of batch b by worker b mod 2, without values.
  void push(std::uint64_t token, std::uint64_t batch, bool pulls = false) {
    const auto worker = static_cast<std::uint32_t>(batch % 2);
    request what;
    what.push.emplace();
    what.push->step = {{worker}, first_start(worker), {1}, {batch}, batch / 2};
    what.push->tables = {{0}};
    if (pulls) {
      what.pull.emplace();
      what.pull->step = what.push->step;
      what.pull->ranges = {{{0}, 0, 1}};
    }
    decide([&](host_effects& effects) { host->ask({token}, std::move(what), now, effects); });
  }

  /// Returns server 0 alone in generation `number`; only `proposed` if it does not act yet.
  static chain_metadata alone(std::uint64_t number) {
    return {config(number, number, {server(0)}), 0, std::nullopt};
  }
  /// Makes a generation that is loaded, acts and leads.
  void lead() {
    reconcile({{}, 0, config(1, 1, {server(0)})});
    loaded(1);
    if (host->report().status.config != config_id{1})
      reconcile(alone(1));
    REQUIRE(host->leads());
  }

  // -- effects --
  void run(step_effect& x, host_effects& more) {
    told.push_back(x.is_gathered ? "gather" : "step");
    host->applied(now, more);
  }
  void run(apply_gathered_effect&, host_effects&) { told.push_back("apply gathered"); }
  void run(acknowledge_effect&, host_effects&) {}
  void run(reply_effect& x, host_effects&) {
    told.push_back((x.read ? "read " : "receipt ") + std::to_string(x.request.value));
  }
  void run(refuse_effect& x, host_effects&) {
    told.push_back("refuse " + std::to_string(x.request.value) + " " + to_string(x.why.code));
  }
  void run(write_effect& x, host_effects& more) {
    told.push_back((x.entry ? "write " : "take back from ") + std::to_string(x.index));
    host->written(log_fails ? result<void>{errc::io_failed, "disk full"} : result<void>{}, now,
                  more);
  }
  void run(replica_send_effect&, host_effects&) {}
  void run(begin_generation_effect& x, host_effects&) {
    told.push_back("begin " + std::to_string(x.generation.value));
  }
  void run(load_effect& x, host_effects&) {
    told.push_back(x.checkpoint == 0 ? "fill " + std::to_string(x.load)
                                     : "restore " + std::to_string(x.checkpoint));
  }
  void run(recall_effect& x, host_effects&) { told.push_back("recall " + std::to_string(x.load)); }
  void run(replay_effect&, host_effects&) { told.push_back("replay"); }
  void run(keep_past_effect&, host_effects&) { told.push_back("keep past"); }
  void run(settle_loaded_effect& x, host_effects&) {
    told.push_back(x.is_adopted ? "adopt" : "drop copy");
  }
  void run(save_effect& x, host_effects& more) {
    static constexpr std::array purposes{"starting", "joining", "checkpoint", "later"};
    told.push_back(std::string{"save "} + purposes.at(static_cast<std::size_t>(x.id.purpose))
                   + (x.base ? " base" : "") + (x.begins_log ? " log" : ""));
    last_save = x.id;
    last_base = x.base;
    host->written(log_fails ? result<void>{errc::io_failed, "disk full"} : result<void>{}, now,
                  more);
  }
  void run(send_copy_effect& x, host_effects&) {
    told.push_back(std::string{x.fresh ? "pin and " : ""} + "send part "
                   + std::to_string(x.what.part));
  }
  void run(end_copy_effect&, host_effects&) { told.push_back("end copy"); }
  void run(ask_copy_effect& x, host_effects&) {
    told.push_back("ask copy " + std::to_string(x.config.value));
  }
  void run(workers_effect&, host_effects&) {}
  void run(report_effect&, host_effects&) { told.push_back("report"); }
  void run(note_effect&, host_effects&) {}

  bool was_told(const std::string& what) const {
    return std::ranges::find(told, what) != told.end();
  }

  job_spec job;
  std::optional<replica_host> host;
  time_point now{1h};
  std::uint64_t checkpoint = 0;
  bool log_fails = false;
  save_id last_save;
  std::optional<storage::base_id> last_base;
  lines told; ///< Effects of the last event.
};

} // namespace

TEST_CASE("an initial member of a new chain is filled, takes its values and reports") {
  fixture f;
  f.reconcile({{}, 0, config(1, 1, {server(0)})});
  CHECK(f.told == lines{"begin 1", "fill 1"});
  CHECK_FALSE(f.host->ready());
  f.loaded(1);
  CHECK(f.told == lines{"adopt", "report"});
  CHECK(f.host->ready());
}

TEST_CASE("the generation that begins is that of the newest configuration") {
  fixture f;
  f.reconcile({config(3, 3, {server(1)}), 0, config(4, 4, {server(0)})});
  CHECK(f.host->generation() == generation_id{4});
  CHECK(f.was_told("begin 4"));
}

TEST_CASE("a server without a part in the generation to come stays in the one before") {
  fixture f;
  f.lead();
  f.reconcile({config(1, 1, {server(0)}), 0, config(2, 2, {server(1)})});
  CHECK(f.host->generation() == generation_id{1});
  CHECK(f.host->report().status.sealed == config_id{2});
}

TEST_CASE("what is loaded for an earlier generation is not taken") {
  fixture f;
  f.reconcile({{}, 0, config(1, 1, {server(0)})});
  f.reconcile({config(1, 1, {server(0)}), 0, config(2, 2, {server(0)})});
  f.loaded(1);
  CHECK(f.told.empty());
  f.loaded(2);
  CHECK(f.told == lines{"adopt", "report"});
}

TEST_CASE("a generation with a checkpoint restores it, and says which one cannot be read") {
  for (const auto code : {errc::damaged, errc::io_failed, errc::wrong_job}) {
    CAPTURE(to_string(code));
    fixture f;
    f.reconcile({config(1, 1, {server(1)}), 7, config(2, 2, {server(0)})});
    CHECK(f.was_told("restore 7"));
    f.decide([&](host_effects& effects) { f.host->load_failed(1, {code, "bad"}, effects); });
    CHECK(f.told == lines{"report"});
    CHECK(f.host->report().failed.value().text == "bad");
    CHECK(f.host->report().unreadable == (code == errc::wrong_job ? 0 : 7));
    f.reconcile({config(1, 1, {server(1)}), 6, config(3, 3, {server(0)})});
    CHECK(f.was_told("restore 6"));
    CHECK_FALSE(f.host->report().failed);
  }
}

TEST_CASE("a state that was kept is taken where it is all of what was lost") {
  fixture f{{.durability = durability_mode::log}};
  const auto lost = config(1, 1, {server(0)});
  f.reconcile({lost, 7, config(2, 2, {server(0)})});
  CHECK(f.told == lines{"begin 2", "recall 1"});
  const storage::base_id kept{3, {1}, {1}, false};
  SUBCASE("all") {
    f.recalled(1, recalled_state{kept, 2});
    CHECK(f.told == lines{"replay"});
    f.loaded(1);
    CHECK(f.told == lines{"save starting base log"});
    CHECK(f.last_base == storage::base_id{0, {1}, {2}, true});
    CHECK_FALSE(f.host->ready());
    f.saved();
    CHECK(f.was_told("adopt"));
    CHECK(f.host->report().recovered);
  }
  SUBCASE("nothing") {
    f.recalled(1, std::nullopt);
    CHECK(f.told == lines{"restore 7"});
  }
  SUBCASE("of another history") {
    f.recalled(1, recalled_state{{3, {9}, {1}, false}, 2});
    CHECK(f.told == lines{"restore 7"});
  }
  SUBCASE("of an earlier generation") {
    f.recalled(1, recalled_state{{3, {1}, {0}, false}, 2});
    CHECK(f.told == lines{"restore 7"});
  }
  SUBCASE("with a log that cannot be replayed") {
    f.recalled(1, recalled_state{kept, 2});
    f.decide([&](host_effects& effects) { f.host->load_failed(1, {errc::damaged, ""}, effects); });
    CHECK(f.told == lines{"restore 7"});
    f.loaded(1);
    CHECK(f.last_base == storage::base_id{0, {1}, {2}, false});
  }
}

TEST_CASE("a push is written before it is applied, and not acknowledged if that fails") {
  fixture f{{.durability = durability_mode::log}};
  f.reconcile({{}, 0, config(1, 1, {server(0)})});
  f.loaded(1);
  f.saved();
  f.reconcile(fixture::alone(1));
  f.push(1, 0);
  CHECK(f.told == lines{"write 1", "step", "receipt 1"});
  f.log_fails = true;
  f.push(2, 1);
  CHECK(f.told == lines{"write 2", "drop copy", "refuse 2 not_ready", "report"});
  CHECK(f.host->report().failed.value().text == "disk full");
  f.push(3, 2);
  CHECK(f.told == lines{"refuse 3 not_ready"});
  f.reconcile(fixture::alone(1));
  CHECK(f.told.empty());
  f.log_fails = false;
  f.reconcile({config(1, 1, {server(0)}), 0, config(2, 2, {server(0)})});
  CHECK_FALSE(f.host->is_broken());
}

TEST_CASE("gathered steps are applied before values are read or saved, and when all are there") {
  fixture f{{.apply_batch = 3}};
  f.lead();
  f.push(1, 0);
  CHECK(f.told == lines{"gather", "receipt 1"});
  f.push(2, 1, true);
  CHECK(f.told == lines{"gather"});
  f.decide([&](host_effects& effects) { f.host->end_gathering(f.now, effects); });
  CHECK(f.told == lines{"apply gathered", "read 2"});
  f.push(3, 2);
  f.checkpoint = 1;
  f.reconcile(fixture::alone(1));
  CHECK(f.told == lines{"apply gathered", "save checkpoint"});
  for (std::uint64_t batch = 3; batch < 5; ++batch)
    f.push(batch + 1, batch);
  CHECK_FALSE(f.was_told("apply gathered"));
  f.push(6, 5);
  CHECK(f.told == lines{"gather", "receipt 6", "apply gathered"});
}

TEST_CASE("a clock is never gathered") {
  fixture f{{.sync = bsp(), .apply_batch = 3}};
  f.lead();
  f.push(1, 0);
  f.push(2, 1);
  CHECK(f.told == lines{"step", "receipt 1", "receipt 2"});
}

TEST_CASE("a head writes its part of a checkpoint once, and says whether that is done") {
  fixture f;
  f.lead();
  f.checkpoint = 4;
  f.reconcile(fixture::alone(1));
  CHECK(f.told == lines{"save checkpoint"});
  f.reconcile(fixture::alone(1));
  CHECK(f.told.empty());
  f.saved(checkpoint_part{4, {0}, {}, 9});
  CHECK(f.host->report().part.version == 9);
  f.checkpoint = 5;
  f.reconcile(fixture::alone(1));
  f.saved(failure{errc::io_failed, "disk full"});
  CHECK(f.host->report().checkpoint_failed == 5);
  CHECK(f.host->report().checkpoint_failure == "disk full");
  CHECK(f.host->report().part.checkpoint == 4);
}

TEST_CASE("a replica behind the head saves a state for a later start, as often as the head") {
  for (const bool has_disk : {false, true}) {
    fixture f{{.durability = durability_mode::log, .has_disk = has_disk}};
    const auto both = config(1, 1, {server(1), server(0)});
    f.reconcile({{}, 0, both});
    f.loaded(1);
    if (has_disk)
      f.saved();
    f.checkpoint = 4;
    f.reconcile({both, 0, std::nullopt});
    CHECK(f.told == (has_disk ? lines{"save later base log"} : lines{}));
    f.reconcile({both, 0, std::nullopt});
    CHECK(f.told.empty());
  }
}

TEST_CASE("a server that is not named frees what it holds, but not soon") {
  fixture f;
  f.lead();
  f.reconcile({config(2, 1, {server(1)}), 0, std::nullopt});
  f.now += 29s;
  f.tick();
  CHECK(f.told.empty());
  f.now += 1s;
  f.tick();
  CHECK(f.told == lines{"begin 1"});
  CHECK(f.host->state() == nullptr);
  f.now += 40s;
  f.tick();
  CHECK(f.told.empty());
}

TEST_CASE("a server that is named again in time keeps what it holds") {
  fixture f;
  f.lead();
  f.reconcile({config(2, 1, {server(1)}), 0, std::nullopt});
  f.now += 29s;
  f.reconcile({config(3, 1, {server(1)}, server(0)), 0, std::nullopt});
  f.now += 29s;
  f.tick();
  CHECK_FALSE(f.was_told("begin 1"));
  CHECK(f.host->state() != nullptr);
}

TEST_CASE("a joiner asks for a copy, not again until it has been patient, and takes it") {
  fixture f;
  const auto joined = config(2, 1, {server(1)}, server(0));
  f.reconcile({joined, 0, std::nullopt});
  CHECK(f.was_told("ask copy 2"));
  f.now += 4s;
  f.tick();
  CHECK_FALSE(f.was_told("ask copy 2"));
  f.now += 2s;
  f.tick();
  CHECK(f.was_told("ask copy 2"));
  CHECK(f.host->awaits_copy({2}));
  CHECK_FALSE(f.host->awaits_copy({1}));
  f.decide([&](host_effects& effects) { f.host->copied({{2}, 0, 0, f.held()}, f.now, effects); });
  CHECK(f.told == lines{"adopt", "report"});
  CHECK_FALSE(f.host->awaits_copy({2}));
}

TEST_CASE("with a log a joiner reads its past first, and its copy is saved before it counts") {
  fixture f{{.durability = durability_mode::log}};
  const auto joined = config(2, 1, {server(1)}, server(0));
  f.reconcile({joined, 0, std::nullopt});
  CHECK(f.told == lines{"begin 1", "recall 1"});
  f.recalled(1, recalled_state{{1, {1}, {1}, false}, 0});
  CHECK(f.told == lines{"keep past"});
  f.now += 1s;
  f.tick();
  REQUIRE(f.was_told("ask copy 2"));
  f.decide([&](host_effects& effects) { f.host->copied({{2}, 0, 0, f.held()}, f.now, effects); });
  CHECK(f.told == lines{"save joining base log"});
  CHECK(f.host->state() == nullptr);
  SUBCASE("saved") {
    f.saved();
    CHECK(f.told == lines{"adopt", "report"});
    CHECK(f.host->status().complete);
  }
  SUBCASE("not saved") {
    f.saved(failure{errc::io_failed, "disk full"});
    CHECK(f.told == lines{"drop copy", "report"});
    CHECK(f.host->is_broken());
  }
}

TEST_CASE("a past of another generation is of no use to a joiner") {
  fixture f{{.durability = durability_mode::log}};
  f.reconcile({config(5, 4, {server(1)}, server(0)), 0, std::nullopt});
  f.recalled(1, recalled_state{{1, {1}, {3}, false}, 0});
  CHECK_FALSE(f.was_told("keep past"));
}

TEST_CASE("a tail pins a copy once for a joiner, and drops it with the next configuration") {
  fixture f;
  f.lead();
  const auto ask = [&](std::uint32_t part) {
    f.decide([&](host_effects& effects) {
      f.host->receive(server(1), copy_request{{2}, part, {}}, f.now, effects);
    });
  };
  ask(0); // The joiner hears of its place first.
  CHECK(f.told.empty());
  f.reconcile({config(2, 1, {server(0)}, server(1)), 0, std::nullopt});
  CHECK(f.was_told("pin and send part 0"));
  ask(1);
  CHECK(f.told == lines{"send part 1"});
  f.reconcile({config(3, 1, {server(0)}), 0, std::nullopt});
  CHECK(f.was_told("end copy"));
}

TEST_CASE("a server that was started for another job does not load") {
  fixture f;
  f.job.name = "another";
  f.reconcile({{}, 0, config(1, 1, {server(0)})});
  CHECK(f.told.back() == "report");
  CHECK(f.host->report().failed.value().text == "the coordinator runs another job");
}

} // namespace troupe::replica_host_test
