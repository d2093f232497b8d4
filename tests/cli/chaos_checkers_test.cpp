#include "cli/chaos/checkers.hpp"
#include "cli/chaos/event_lines.hpp"
#include "cli/chaos/verdict_text.hpp"

#include "doctest/doctest.h"

#include <string>

namespace chaos_checkers_test {

using namespace troupe;
using namespace troupe::chaos;

namespace {

void fault(run_facts& run, fault_kind kind, process_name whom, double began, double ended) {
  fault_record what;
  what.what.kind = kind;
  what.what.whom = whom;
  what.began = began;
  what.ended = ended;
  run.faults.push_back(what);
}

/// Reads a line of events.jsonl with these fields.
void say(run_facts& run, double at, const std::string& fields) {
  read_event_line("{" + fields + "}", at, run);
}

/// A run as it should be: a worker and a server killed, all well.
run_facts good_run() {
  run_facts run;
  run.asked.servers = 2;
  run.asked.workers = 2;
  run.asked.kill = true;
  run.replicas = 2;
  run.batches = 1000;
  run.heal_limit = 10;
  run.finish_limit = 60;
  run.rss_limit_mb = 100;
  run.descriptors_limit = 100;
  fault(run, fault_kind::kill_worker, {role::worker, 1}, 2, 2);
  fault(run, fault_kind::kill_coordinator, {role::coordinator, 0}, 3, 3);
  fault(run, fault_kind::kill_server, {role::server, 0}, 4, 4);
  const auto said = [&run](double at, const std::string& fields) { say(run, at, fields); };
  said(2.1, R"("event":"process_ended","member":"worker 1","reason":"killed by signal 9")");
  said(2.2, R"("event":"worker_lost","member":"worker 1","reason":"it ended","batches":3)");
  said(2.9, R"("event":"progress","phase":"training","done":0.3,"active":4)");
  said(3.0, R"("event":"process_ended","member":"coordinator","reason":"killed by signal 9")");
  said(4.1, R"("event":"server_lost","member":"server 0","reason":"process ended")");
  said(4.2, R"("event":"progress","phase":"training","done":0.5,"active":4)"); // Not noticed yet.
  said(5.2, R"("event":"progress","phase":"training","done":0.6,"active":3)");
  said(6.2, R"("event":"progress","phase":"training","done":0.7,"active":4)");
  said(8.0, R"("event":"batches_applied","batches":1000)");
  said(8.1, R"("event":"note","text":"elements: 1400 to 1500, expected in the end: 1400 to 1500, )"
            R"(right: 64 of 64")");
  run.exit_status = 0;
  run.ended_at = 9;
  run.rss_mb.take(50, "server 0");
  run.descriptors.take(30, "server 0");
  return run;
}

check_outcome verdict(check_result (*check)(const run_facts&), const run_facts& run) {
  return check(run).verdict;
}

} // namespace

TEST_CASE("a_good_run_violates_nothing") {
  const auto results = check_all(good_run());
  CHECK(violated(results).empty());
  for (const auto& each : results) {
    CAPTURE(each.checker);
    const bool needs_other_faults =
      each.checker == "full disk" || each.checker == "C8 no bad checkpoint";
    CHECK(each.verdict == (needs_other_faults ? check_outcome::not_judged : check_outcome::holds));
  }
}

TEST_CASE("a_wrong_element_is_not_exactly_once") {
  auto run = good_run();
  run.counted->right = 63;
  CHECK(verdict(check_exactly_once, run) == check_outcome::violated);
  run.counted.reset();
  CHECK(verdict(check_exactly_once, run) == check_outcome::violated);
  CHECK(verdict(check_conservation, run) == check_outcome::violated);
}

TEST_CASE("sums_and_batches_are_conserved") {
  auto run = good_run();
  run.counted->most = 1501;
  CHECK(verdict(check_conservation, run) == check_outcome::violated);
  run = good_run();
  run.batches = 1001;
  CHECK(verdict(check_conservation, run) == check_outcome::violated);
}

TEST_CASE("with_two_replicas_nothing_is_rolled_back") {
  auto run = good_run();
  say(run, 4.3, R"("event":"shard_restored","shard":0,"checkpoint":2,"updates":0)");
  CHECK(verdict(check_durability, run) == check_outcome::holds);
  say(run, 4.3, R"("event":"shard_restored","shard":0,"checkpoint":2,"updates":10)");
  CHECK(verdict(check_durability, run) == check_outcome::violated);
  run.replicas = 1;
  CHECK(verdict(check_durability, run) == check_outcome::not_judged);
  run = good_run();
  run.rolled_back = 1;
  CHECK(verdict(check_durability, run) == check_outcome::violated);
}

TEST_CASE("an_actor_is_lost_only_after_a_fault_of_its_own") {
  auto run = good_run();
  say(run, 5.0, R"("event":"actor_lost","member":"actor 1","reason":"process ended")");
  CHECK(verdict(check_evictions, run) == check_outcome::violated);
  fault(run, fault_kind::kill_worker, {role::actor, 1}, 4.9, 4.9);
  CHECK(verdict(check_evictions, run) == check_outcome::holds);
}

TEST_CASE("where_faults_overlap_only_the_rest_of_the_run_is_judged") {
  auto run = good_run();
  run.faults[1].overlaps = true; // Lasts from 3.0 to 4.2 s, when all members were seen active.
  run.rolled_back = 10;
  CHECK(verdict(check_durability, run) == check_outcome::holds);
  const auto rolled_back_at = [&run](double at) {
    auto changed = run;
    say(changed, at, R"("event":"shard_restored","shard":0,"checkpoint":2,"updates":10)");
    return verdict(check_durability, changed);
  };
  CHECK(rolled_back_at(2.9) == check_outcome::violated);
  CHECK(rolled_back_at(3.0) == check_outcome::holds);
  CHECK(rolled_back_at(4.2) == check_outcome::holds);
  CHECK(rolled_back_at(4.3) == check_outcome::violated);
  CHECK(verdict(check_vacuity, run) == check_outcome::holds);
}

TEST_CASE("a_run_of_overlapping_faults_proves_nothing") {
  auto run = good_run();
  run.faults[1].overlaps = run.faults[2].overlaps = true;
  CHECK(verdict(check_durability, run) == check_outcome::not_judged);
  CHECK(violated(check_all(run)) == "C13 vacuity");
  say(run, 2.5, R"("event":"shard_restored","shard":0,"checkpoint":2,"updates":10)");
  CHECK(verdict(check_durability, run) == check_outcome::violated); // Before they did.
  run.replicas = 1; // Goes back to its checkpoint anyway.
  CHECK(violated(check_all(run)).empty());
}

TEST_CASE("a_damaged_checkpoint_is_refused_and_not_restored") {
  auto run = good_run();
  run.replicas = 1;
  run.flips.push_back({4, "chain-0/000007.sst", 5.0, true});
  CHECK(verdict(check_checkpoints, run) == check_outcome::violated); // No restore met it.
  say(run, 5.1, R"("event":"checkpoint_skipped","reason":"checkpoint 4 is damaged")");
  say(run, 5.2, R"("event":"shard_restored","shard":0,"checkpoint":3,"updates":9)");
  CHECK(verdict(check_checkpoints, run) == check_outcome::holds);
  auto wrong = run;
  wrong.flips[0].refused = false;
  CHECK(verdict(check_checkpoints, wrong) == check_outcome::violated);
  wrong = run;
  say(wrong, 6.2, R"("event":"shard_restored","shard":0,"checkpoint":4,"updates":9)");
  CHECK(verdict(check_checkpoints, wrong) == check_outcome::violated);
  wrong.flips[0].at = 7; // It was sound then.
  CHECK(verdict(check_checkpoints, wrong) == check_outcome::holds);
  wrong = run;
  wrong.checkpoints_kept = 1;
  wrong.flips[0].refused.reset();
  CHECK(verdict(check_checkpoints, wrong) == check_outcome::violated); // Where has it gone?
  say(wrong, 6.3, R"("event":"checkpoint_committed","checkpoint":5)");
  say(wrong, 7.3, R"("event":"checkpoint_committed","checkpoint":6)");
  CHECK(verdict(check_checkpoints, wrong) == check_outcome::holds); // It was removed.
}

TEST_CASE("a_full_disk_costs_checkpoints_and_no_more") {
  auto run = good_run();
  fault(run, fault_kind::full_disk, {}, 5, 8);
  run.ended_at = 10;
  CHECK(verdict(check_full_disk, run) == check_outcome::violated); // None since.
  say(run, 9, R"("event":"checkpoint_committed","checkpoint":7)");
  CHECK(verdict(check_full_disk, run) == check_outcome::holds); // It waited for room.
  say(run, 7, R"("event":"checkpoint_committed","checkpoint":6)");
  CHECK(verdict(check_full_disk, run) == check_outcome::violated); // It was not full.
  say(run, 4.2, R"("event":"checkpoint_failed","checkpoint":5,"reason":"server 0 was lost")");
  CHECK(verdict(check_full_disk, run) == check_outcome::violated); // That was before.
  say(run, 7.5, R"("event":"checkpoint_failed","checkpoint":8,"reason":"no space")");
  CHECK(verdict(check_full_disk, run) == check_outcome::holds);
}

TEST_CASE("a_chain_that_goes_on_without_a_server_is_not_a_restored_one") {
  auto run = good_run();
  const auto restored = [&run] {
    const auto text = counts_text(run);
    return std::stoi(
      text.substr(text.find("shards restored") + std::string{"shards restored"}.size()));
  };
  CHECK(restored() == 0);
  say(run, 5, R"("event":"servers_disconnected","member":"server 1","other":"server 0","shard":0)");
  CHECK(restored() == 0);
  say(run, 5.1, R"("event":"shard_recovered","shard":0,"member":"server 0")");
  CHECK(restored() == 1);
}

TEST_CASE("nobody_is_given_up_without_a_fault_of_its_own") {
  auto run = good_run();
  say(run, 30, R"("event":"server_lost","member":"server 0","reason":"silent for too long")");
  CHECK(verdict(check_evictions, run) == check_outcome::violated); // Its fault was long ago.
  run = good_run();
  say(run, 5, R"("event":"worker_evicted","member":"worker 0","seconds":30,"reason":"slow")");
  CHECK(verdict(check_evictions, run) == check_outcome::violated);
  run = good_run();
  fault(run, fault_kind::flip, {role::server, 1}, 5, 5);
  say(run, 5.5, R"("event":"process_hung","member":"server 1")");
  CHECK(verdict(check_evictions, run) == check_outcome::violated); // A flip alone strikes nobody.
  run.replicas = 1;
  CHECK(verdict(check_evictions, run) == check_outcome::holds);
}

TEST_CASE("a_job_comes_to_rest_and_to_its_end") {
  CHECK(good_run().healed_after(4) == doctest::Approx(2.2));
  const auto violates = [](auto change) {
    auto run = good_run();
    change(run);
    return verdict(check_liveness, run) == check_outcome::violated;
  };
  CHECK(violates([](run_facts& x) { x.exit_status.reset(); }));
  CHECK(violates([](run_facts& x) { x.exit_status = 1; }));
  CHECK(violates([](run_facts& x) { x.ended_at = 65; }));
  CHECK(violates([](run_facts& x) { x.heal_limit = 2; }));
  CHECK(violates([](run_facts& x) { x.asked.workers = 3; })); // The third is never active.
  CHECK(violates([](run_facts& x) { x.not_recovered = 1; }));
}

TEST_CASE("a_job_comes_to_rest_after_each_fault") {
  auto run = good_run();
  const auto line = [&run](double at, std::uint64_t active) {
    run.progress.push_back({at, "training", active});
  };
  run.ended_at = 50;
  line(13, 3);
  fault(run, fault_kind::kill_worker, {role::worker, 0}, 12, 12);
  fault(run, fault_kind::kill_worker, {role::worker, 1}, 30, 30);
  line(31, 4);
  CHECK(verdict(check_liveness, run) == check_outcome::violated); // Not from 12 s to 30 s.
  run.heal_limit = 18.5;
  CHECK(verdict(check_liveness, run) == check_outcome::holds);
  line(32, 3);
  fault(run, fault_kind::stop_lease, {role::worker, 1}, 49, 50); // The job ended meanwhile.
  CHECK(verdict(check_liveness, run) == check_outcome::holds);
  run.faults.back().ended = 49.5;
  CHECK(verdict(check_liveness, run) == check_outcome::violated);
}

TEST_CASE("checkpoints_and_restores_are_counted_once") {
  auto run = good_run();
  const auto count = [&run](const std::string& what) {
    const auto text = counts_text(run);
    return std::stoi(text.substr(text.find(what) + what.size()));
  };
  say(run, 5.0, R"("event":"job_failed","reason":"no space")");
  CHECK(count("checkpoints failed") == 0);
  say(run, 5.0, R"("event":"checkpoint_failed","checkpoint":4,"reason":"no space")");
  CHECK(count("checkpoints failed") == 1);
  say(run, 6, R"("event":"shard_restored","shard":0,"checkpoint":3,"updates":9)");
  say(run, 6, R"("event":"all_rolled_back","clock":7,"generation":2)");
  CHECK(count("shards restored") == 1);
}

TEST_CASE("memory_and_descriptors_have_limits") {
  auto run = good_run();
  run.rss_mb.take(101, "worker 0");
  CHECK(verdict(check_resources, run) == check_outcome::violated);
  run = good_run();
  run.descriptors.take(101, "worker 0");
  CHECK(verdict(check_resources, run) == check_outcome::violated);
  run = good_run();
  run.rss_mb = {};
  CHECK(verdict(check_resources, run) == check_outcome::violated);
}

TEST_CASE("a_run_without_its_faults_proves_nothing") {
  auto run = good_run();
  run.minimum = 2;
  CHECK(verdict(check_vacuity, run) == check_outcome::violated);
  run = good_run();
  run.asked.stop = true;
  CHECK(verdict(check_vacuity, run) == check_outcome::violated);
  CHECK(violated(check_all(run)) == "C13 vacuity");
}

} // namespace chaos_checkers_test
