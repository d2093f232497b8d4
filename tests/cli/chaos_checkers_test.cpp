#include "cli/chaos/checkers.hpp"
#include "cli/chaos/launcher_lines.hpp"
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
  const auto said = [&run](double at, const std::string& line) {
    read_launcher_line(line, at, run);
  };
  said(2.1, "[   2.1 s] worker 1 lost: killed by signal 9");
  said(2.2, "[   2.2 s] worker 1 lost: 3 batches go to others (its process ended)");
  said(2.9, "2.9 s training 30 %, epoch 0.30/1, active members 4/4");
  said(3.0, "[   3.0 s] coordinator lost: killed by signal 9");
  said(4.1, "[   4.1 s] server 0 lost (its process ended)");
  said(4.2, "4.2 s training 50 %, epoch 0.50/1, active members 4/4"); // Before it was noticed.
  said(5.2, "5.2 s training 60 %, epoch 0.60/1, active members 3/4");
  said(6.2, "6.2 s training 70 %, epoch 0.70/1, active members 4/5");
  said(8.0, "[   8.0 s] all 1000 batches are applied");
  said(8.1,
       "[   8.1 s] elements: 1400 to 1500, expected in the end: 1400 to 1500, right: 64 of 64");
  run.exit_status = 0;
  run.ended_at = 9;
  run.rss_mb.take(50, "server 0");
  run.descriptors.take(30, "server 0");
  return run;
}

evaluation_message verdict(check_result (*check)(const run_facts&), const run_facts& run) {
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
    CHECK(each.verdict
          == (needs_other_faults ? evaluation_message::not_judged : evaluation_message::holds));
  }
}

TEST_CASE("a_wrong_element_is_not_exactly_once") {
  auto run = good_run();
  run.counted->right = 63;
  CHECK(verdict(check_exactly_once, run) == evaluation_message::violated);
  run.counted.reset();
  CHECK(verdict(check_exactly_once, run) == evaluation_message::violated);
  CHECK(verdict(check_conservation, run) == evaluation_message::violated);
}

TEST_CASE("sums_and_batches_are_conserved") {
  auto run = good_run();
  run.counted->most = 1501;
  CHECK(verdict(check_conservation, run) == evaluation_message::violated);
  run = good_run();
  run.batches = 1001;
  CHECK(verdict(check_conservation, run) == evaluation_message::violated);
}

TEST_CASE("with_two_replicas_nothing_is_rolled_back") {
  auto run = good_run();
  read_launcher_line("[   4.3 s] chain 0 restored from checkpoint 2: 0 updates rolled back", 4.3,
                     run);
  CHECK(verdict(check_durability, run) == evaluation_message::holds);
  read_launcher_line("[   4.3 s] chain 0 restored from checkpoint 2: 10 updates rolled back", 4.3,
                     run);
  CHECK(verdict(check_durability, run) == evaluation_message::violated);
  run.replicas = 1;
  CHECK(verdict(check_durability, run) == evaluation_message::not_judged);
  run = good_run();
  run.rolled_back = 1;
  CHECK(verdict(check_durability, run) == evaluation_message::violated);
}

TEST_CASE("where_faults_overlap_only_the_rest_of_the_run_is_judged") {
  auto run = good_run();
  run.faults[1].overlaps = true; // From 3.0 to 4.2 s, when all were seen active.
  run.rolled_back = 10;
  CHECK(verdict(check_durability, run) == evaluation_message::holds);
  const auto rolled_back_at = [&run](double at) {
    auto changed = run;
    read_launcher_line("[   4.0 s] chain 0 restored from checkpoint 2: 10 updates rolled back", at,
                       changed);
    return verdict(check_durability, changed);
  };
  CHECK(rolled_back_at(2.9) == evaluation_message::violated);
  CHECK(rolled_back_at(3.0) == evaluation_message::holds);
  CHECK(rolled_back_at(4.2) == evaluation_message::holds);
  CHECK(rolled_back_at(4.3) == evaluation_message::violated);
  CHECK(verdict(check_vacuity, run) == evaluation_message::holds);
}

TEST_CASE("a_run_of_overlapping_faults_proves_nothing") {
  auto run = good_run();
  run.faults[1].overlaps = run.faults[2].overlaps = true;
  CHECK(verdict(check_durability, run) == evaluation_message::not_judged);
  CHECK(violated(check_all(run)) == "C13 vacuity");
  read_launcher_line("[   2.5 s] chain 0 restored from checkpoint 2: 10 updates rolled back", 2.5,
                     run);
  CHECK(verdict(check_durability, run) == evaluation_message::violated); // Before they did.
  run.replicas = 1; // Goes back to its checkpoint anyway.
  CHECK(violated(check_all(run)).empty());
}

TEST_CASE("a_damaged_checkpoint_is_refused_and_not_restored") {
  auto run = good_run();
  run.replicas = 1;
  run.flips.push_back({4, "chain-0/000007.sst", 5.0, true});
  CHECK(verdict(check_checkpoints, run) == evaluation_message::violated); // No restore met it.
  read_launcher_line("[   5.1 s] checkpoint passed over: checkpoint 4 is damaged", 5.1, run);
  read_launcher_line("[   5.2 s] chain 0 restored from checkpoint 3: 9 updates rolled back", 5.2,
                     run);
  CHECK(verdict(check_checkpoints, run) == evaluation_message::holds);
  auto wrong = run;
  wrong.flips[0].refused = false;
  CHECK(verdict(check_checkpoints, wrong) == evaluation_message::violated);
  wrong = run;
  read_launcher_line("[   6.2 s] chain 0 restored from checkpoint 4: 9 updates rolled back", 6.2,
                     wrong);
  CHECK(verdict(check_checkpoints, wrong) == evaluation_message::violated);
  wrong.flips[0].at = 7; // It was sound then.
  CHECK(verdict(check_checkpoints, wrong) == evaluation_message::holds);
  wrong = run;
  wrong.checkpoints_kept = 1;
  wrong.flips[0].refused.reset();
  CHECK(verdict(check_checkpoints, wrong) == evaluation_message::violated); // Where has it gone?
  read_launcher_line("[   6.3 s] checkpoint 5 committed", 6.3, wrong);
  read_launcher_line("[   7.3 s] checkpoint 6 committed", 7.3, wrong);
  CHECK(verdict(check_checkpoints, wrong) == evaluation_message::holds); // It was removed.
}

TEST_CASE("a_full_disk_costs_checkpoints_and_no_more") {
  auto run = good_run();
  fault(run, fault_kind::full_disk, {}, 5, 8);
  run.ended_at = 10;
  CHECK(verdict(check_full_disk, run) == evaluation_message::violated); // None since.
  read_launcher_line("[   9.0 s] checkpoint 7 committed", 9, run);
  CHECK(verdict(check_full_disk, run) == evaluation_message::holds); // It waited for room.
  read_launcher_line("[   7.0 s] checkpoint 6 committed", 7, run);
  CHECK(verdict(check_full_disk, run) == evaluation_message::violated); // It was not full.
  read_launcher_line("[   4.2 s] checkpoint 5 failed: server 0 was lost", 4.2, run);
  CHECK(verdict(check_full_disk, run) == evaluation_message::violated); // That was before.
  read_launcher_line("[   7.5 s] checkpoint 8 failed: no space", 7.5, run);
  CHECK(verdict(check_full_disk, run) == evaluation_message::holds);
}

TEST_CASE("a_chain_that_goes_on_without_a_server_is_not_a_restored_one") {
  auto run = good_run();
  const auto restored = [&run] {
    const auto text = counts_text(run);
    return std::stoi(
      text.substr(text.find("chains restored") + std::string{"chains restored"}.size()));
  };
  CHECK(restored() == 0);
  read_launcher_line("[   5.0 s] server 1 and server 0 cannot talk to each other: chain 0 goes on "
                     "without server 1",
                     5, run);
  CHECK(restored() == 0);
  read_launcher_line("[   5.1 s] chain 0 goes on with what its server kept", 5.1, run);
  CHECK(restored() == 1);
}

TEST_CASE("nobody_is_given_up_without_a_fault_of_its_own") {
  auto run = good_run();
  read_launcher_line("[  30.0 s] server 0 lost (silent for too long)", 30, run);
  CHECK(verdict(check_evictions, run) == evaluation_message::violated); // Its fault was long ago.
  run = good_run();
  read_launcher_line("[   5.0 s] worker 0 stayed slow and is out for 30 s; 9 ms", 5, run);
  CHECK(verdict(check_evictions, run) == evaluation_message::violated);
  run = good_run();
  fault(run, fault_kind::flip, {role::server, 1}, 5, 5);
  read_launcher_line("[   5.5 s] server 1 hangs: killing it", 5.5, run);
  CHECK(verdict(check_evictions, run)
        == evaluation_message::violated); // A flip alone strikes nobody.
  run.replicas = 1;
  CHECK(verdict(check_evictions, run) == evaluation_message::holds);
}

TEST_CASE("a_job_comes_to_rest_and_to_its_end") {
  CHECK(good_run().healed_after(4) == doctest::Approx(2.2));
  const auto violates = [](auto change) {
    auto run = good_run();
    change(run);
    return verdict(check_liveness, run) == evaluation_message::violated;
  };
  CHECK(violates([](run_facts& x) { x.exit_status.reset(); }));
  CHECK(violates([](run_facts& x) { x.exit_status = 1; }));
  CHECK(violates([](run_facts& x) { x.ended_at = 65; }));
  CHECK(violates([](run_facts& x) { x.heal_limit = 2; }));
  CHECK(violates([](run_facts& x) { x.asked.workers = 3; })); // One is never seen active.
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
  CHECK(verdict(check_liveness, run) == evaluation_message::violated); // Not from 12 s to 30 s.
  run.heal_limit = 18.5;
  CHECK(verdict(check_liveness, run) == evaluation_message::holds);
  line(32, 3);
  fault(run, fault_kind::stop_lease, {role::worker, 1}, 49, 50); // The job ended meanwhile.
  CHECK(verdict(check_liveness, run) == evaluation_message::holds);
  run.faults.back().ended = 49.5;
  CHECK(verdict(check_liveness, run) == evaluation_message::violated);
}

TEST_CASE("checkpoints_and_restores_are_counted_once") {
  auto run = good_run();
  const auto count = [&run](const std::string& what) {
    const auto text = counts_text(run);
    return std::stoi(text.substr(text.find(what) + what.size()));
  };
  read_launcher_line("[   5.0 s] the job failed: no space", 5.0, run);
  CHECK(count("checkpoints failed") == 0);
  read_launcher_line("[   5.0 s] checkpoint 4 failed: no space", 5.0, run);
  CHECK(count("checkpoints failed") == 1);
  read_launcher_line("[   6.0 s] chain 0 restored from checkpoint 3: 9 updates rolled back", 6,
                     run);
  read_launcher_line("[   6.0 s] all chains go on from clock 7 (generation 2)", 6, run);
  CHECK(count("chains restored") == 1);
}

TEST_CASE("memory_and_descriptors_have_limits") {
  auto run = good_run();
  run.rss_mb.take(101, "worker 0");
  CHECK(verdict(check_resources, run) == evaluation_message::violated);
  run = good_run();
  run.descriptors.take(101, "worker 0");
  CHECK(verdict(check_resources, run) == evaluation_message::violated);
  run = good_run();
  run.rss_mb = {};
  CHECK(verdict(check_resources, run) == evaluation_message::violated);
}

TEST_CASE("a_run_without_its_faults_proves_nothing") {
  auto run = good_run();
  run.minimum = 2;
  CHECK(verdict(check_vacuity, run) == evaluation_message::violated);
  run = good_run();
  run.asked.stop = true;
  CHECK(verdict(check_vacuity, run) == evaluation_message::violated);
  CHECK(violated(check_all(run)) == "C13 vacuity");
}

} // namespace chaos_checkers_test
