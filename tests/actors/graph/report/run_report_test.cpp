#include "actors/graph/report/run_report.hpp"
#include "actors/training/evaluators.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <limits>

namespace run_report_test {

using namespace troupe;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

/// Returns a job of 10 batches a epoch, 20 in all, with 2 servers and 2 workers.
job_spec small_job() {
  job_spec job;
  job.name = "small";
  job.seed = 7;
  job.servers = 2;
  job.workers = 2;
  job.samples = 95;
  job.batch_samples = 10;
  job.epochs = 2;
  job.tables.resize(1);
  job.tables[0].name = "w";
  job.tables[0].shape = {4};
  job.tables[0].sync = {consistency_mode::ssp, 3};
  job.tables[0].optimizer.kind = optimizer_kind::adam;
  return job;
}

member_status worker(std::uint32_t index, std::uint64_t incarnation, std::uint64_t acknowledged) {
  member_status x;
  x.member = {role::worker, index, {incarnation}};
  x.state = member_state::active;
  x.clock = acknowledged;
  x.worker.pushes_sent = acknowledged + 1;
  x.worker.pushes_acknowledged = acknowledged;
  x.worker.bytes_sent = 100 * acknowledged;
  x.worker.bytes_received = 200 * acknowledged;
  x.worker.wire_bytes_sent = 110 * acknowledged;
  x.worker.wire_bytes_received = 150 * acknowledged;
  x.worker.loss_count = acknowledged;
  x.worker.loss_sum = 0.5 * static_cast<double>(acknowledged);
  return x;
}

member_status actor(std::uint32_t index, std::uint64_t incarnation,
                    std::vector<port_counters> ports) {
  member_status x;
  x.member = {role::actor, index, {incarnation}};
  x.state = member_state::active;
  x.actor.ports = std::move(ports);
  return x;
}

member_status server(std::uint32_t index, std::uint64_t incarnation, std::uint64_t applied) {
  member_status x;
  x.member = {role::server, index, {incarnation}};
  x.state = member_state::active;
  x.clock = applied;
  x.rss_bytes_max = 1000 + applied;
  x.server.applied = applied;
  for (std::uint64_t i = 0; i < applied; ++i)
    x.server.staleness_versions.add(i % 4);
  return x;
}

job_status state(job_phase phase, std::uint64_t done, std::vector<member_status> members) {
  job_status x;
  x.phase = phase;
  x.batches_done = done;
  x.members = std::move(members);
  return x;
}

nlohmann::json report_of(const run_statistics& statistics) {
  return nlohmann::json::parse(statistics.to_json("async_sgd --workers 2"));
}

bool all_recovered(const run_statistics& run) {
  return std::all_of(run.recoveries().begin(), run.recoveries().end(),
                     [](const recovery& x) { return x.recovered_at.has_value(); });
}

} // namespace

TEST_CASE("run_statistics reports a run without faults") {
  run_statistics run{small_job()};
  run.job_started(1s);
  run.observe(state(job_phase::gathering, 0, {}), 1500ms);
  run.observe(state(job_phase::training, 0, {worker(0, 1, 0), server(0, 3, 0)}), 2s);
  run.evaluated(1, {.loss = 0.7, .accuracy = 0.8}, 3s);
  run.evaluated(2, {.loss = 0.5, .accuracy = 0.9}, 4s);
  run.observe(state(job_phase::finishing, 20,
                    {worker(0, 1, 12), worker(1, 2, 8), server(0, 3, 20), server(1, 4, 20)}),
              4s);
  run.job_finished(5s);
  run.resident_memory("launcher", 77);

  const nlohmann::json all = report_of(run);
  CHECK(all["command"] == "async_sgd --workers 2");
  CHECK(all["sync"] == "ssp:3");
  CHECK(all["optimizer"] == "adam");
  CHECK(all["workers"] == 2);
  CHECK(all["servers"] == 2);
  CHECK(all["seed"] == 7);
  CHECK(all["epochs"] == 2);
  CHECK(all["seconds"] == 4.0);
  CHECK(all["samples_per_second"] == 95.0); // 190 samples in 2 s of training.
  CHECK(all["test_accuracy"] == 0.9);
  CHECK_FALSE(all.contains("test_auc"));
  CHECK(all["pushes"]["sent"] == 22);
  CHECK(all["pushes"]["acknowledged"] == 20);
  CHECK(all["pushes"]["applied"] == 20);
  CHECK(all["pushes"]["duplicates_dropped"] == 0);
  CHECK(all["pushes"]["refused"] == 0);
  CHECK(all["bytes"]["sent"] == 2000);
  CHECK(all["bytes"]["received"] == 4000);
  CHECK(all["wire_bytes"]["sent"] == 2200);
  CHECK(all["wire_bytes"]["received"] == 3000);
  CHECK(all["staleness_versions"]["mean"] == 1.5);
  CHECK(all["staleness_versions"]["p99"] == 3);
  CHECK(all["staleness_versions"]["max"] == 3);
  CHECK(all["staleness_clocks"]["max"] == 0);
  CHECK(all["waiting_pulls"] == 0);
  CHECK(all["recoveries"] == nlohmann::json::array());
  CHECK(all["peak_rss_bytes"]
        == nlohmann::json{{"server-0", 1020}, {"server-1", 1020}, {"launcher", 77}});
  CHECK(all_recovered(run));
}

TEST_CASE("run_statistics has test_auc only where it was given") {
  run_statistics run{small_job()};
  run.evaluated(1, {.loss = 0.7, .accuracy = 0.8, .auc = 0.75}, 3s);
  CHECK(report_of(run)["test_auc"] == 0.75);
}

TEST_CASE("run_statistics has measures under their names, and no accuracy that there is not") {
  run_statistics run{small_job()};
  run.evaluated(1, {.loss = 0.7, .measures = {{"rmse", 0.96}}}, 3s);
  run.evaluated(
    2,
    {.loss = 0.6,
     .measures = {{"rmse", 0.94}, {"perplexity", std::numeric_limits<double>::infinity()}}},
    4s);
  const auto all = report_of(run);
  CHECK(all["rmse"] == 0.94);
  CHECK(all["perplexity"].is_null());
  CHECK(all["test_accuracy"].is_null());
  CHECK(all["loss_curve"][0]["rmse"] == 0.96);
  CHECK(all["loss_curve"][1]["test_loss"] == 0.6);
  CHECK_FALSE(all["loss_curve"][1].contains("test_accuracy"));
  CHECK(run.snapshot(4s).measures.front() == measure{"rmse", 0.94});
}

TEST_CASE("no measure has the name of a key of the report") {
  run_statistics run{small_job()};
  run.evaluated(1, {.loss = 0.7, .accuracy = 0.8, .auc = 0.75}, 3s);
  const auto all = report_of(run);
  for (const auto& [key, unused] : all.items())
    CHECK_MESSAGE(!check_measures({{key, 1.0}}), key);
  for (const auto& [key, unused] : all["loss_curve"][0].items())
    CHECK_MESSAGE(!check_measures({{key, 1.0}}), key);
}

TEST_CASE("run_statistics adds up what dead processes had counted") {
  run_statistics run{small_job()};
  run.observe(state(job_phase::training, 5, {worker(0, 1, 5), server(0, 3, 5)}), 1s);
  run.observe(state(job_phase::training, 9, {worker(0, 11, 4), server(0, 13, 4)}), 2s);
  const nlohmann::json all = report_of(run);
  CHECK(all["pushes"]["acknowledged"] == 9);
  CHECK(all["pushes"]["applied"] == 4.5); // One of two servers reported.
  CHECK(all["bytes"]["sent"] == 900);
}

TEST_CASE("run_statistics adds up the notes of a program by name") {
  run_statistics run{small_job()};
  auto first = worker(0, 1, 5), second = worker(1, 2, 5), successor = worker(0, 3, 5);
  first.worker.notes = {{"noise.clipped", 3, false}};
  second.worker.notes = {{"noise.clipped", 4, false}, {"noise: a line", 2, true}};
  successor.worker.notes = {{"noise.clipped", 5, false}};
  auto keeps = server(0, 4, 5);
  keeps.server.notes = {{"model.kept", 6, false}};
  for (const auto& present : {first, worker(0, 1, 6), successor}) // A new coordinator knows none.
    run.observe(state(job_phase::training, 5, {present, second, keeps}), 1s);
  const nlohmann::json all = report_of(run);
  CHECK(all["counts"] == nlohmann::json{{"noise.clipped", 12}, {"model.kept", 6}});
  CHECK(all["lines"] == nlohmann::json{{"noise: a line", 2}});
}

TEST_CASE("run_statistics adds up the notes of actors and of their predecessors") {
  run_statistics run{small_job()};
  auto first = actor(0, 1, {}), other = actor(1, 2, {}), successor = actor(0, 3, {});
  first.actor.notes = {{"players.rounds", 3, false}};
  other.actor.notes = {{"players.rounds", 4, false}, {"players: a line", 2, true}};
  successor.actor.notes = {{"players.rounds", 5, false}};
  for (const auto& present : {first, actor(0, 1, {}), successor}) // A new coordinator knows none.
    run.observe(state(job_phase::training, 5, {present, other}), 1s);
  CHECK(run.counts() == std::map<std::string, std::uint64_t>{{"players.rounds", 12}});
  CHECK(report_of(run)["lines"] == nlohmann::json{{"players: a line", 2}});
}

TEST_CASE("run_statistics adds up the counts of ports over members and their predecessors") {
  run_statistics run{small_job()};
  auto learner = worker(0, 5, 5);
  learner.worker.ports = {{"learners.came", 60, 600, 0, 0}};
  learner.worker.channel_wait_us = 1'250'000;
  auto successor = worker(0, 6, 0);
  successor.worker.ports = {{"learners.came", 1, 10, 0, 0}};
  successor.worker.channel_wait_us = 250'000;
  const auto other = actor(1, 2, {{"players.seen", 40, 400, 1, 100}});
  const std::vector<port_counters> newest{{"players.seen", 5, 50, 0, 0}, {"players.told", 1, 8}};
  run.observe(state(job_phase::training, 5,
                    {actor(0, 1, {{"players.seen", 30, 300, 2, 7'000'000}}), other, learner}),
              1s);
  run.observe(state(job_phase::training, 5, {actor(0, 1, {}), other, worker(0, 5, 5)}), 2s);
  run.observe(state(job_phase::training, 5, {actor(0, 3, newest), other, successor}), 3s);
  const nlohmann::json all = report_of(run);
  const auto counts = [](int parcels, int bytes, int lost, double wait) {
    return nlohmann::json{
      {"parcels", parcels}, {"bytes", bytes}, {"lost", lost}, {"longest_wait_seconds", wait}};
  };
  CHECK(all["ports"]
        == nlohmann::json{{"learners.came", counts(61, 610, 0, 0.0)},
                          {"players.seen", counts(75, 750, 3, 7.0)},
                          {"players.told", counts(1, 8, 0, 0.0)}});
  CHECK(all["channel_wait_seconds"] == 1.5);
}

TEST_CASE("run_statistics takes an actor for recovered when its successor has reported") {
  run_statistics run{small_job()};
  run.observe(state(job_phase::training, 0, {actor(0, 1, {}), worker(0, 2, 0)}), 1s);
  run.process_died({role::actor, 0, {1}}, 2s, 2s);
  run.observe(state(job_phase::training, 0, {actor(0, 1, {}), worker(0, 2, 0)}), 3s);
  CHECK_FALSE(all_recovered(run));
  auto absent = actor(0, 0, {});
  absent.state = member_state::absent;
  run.observe(state(job_phase::training, 0, {absent, worker(0, 2, 0)}), 4s);
  CHECK_FALSE(all_recovered(run));
  run.observe(state(job_phase::training, 0, {actor(0, 3, {}), worker(0, 2, 0)}), 5s);
  CHECK(all_recovered(run));
  CHECK(report_of(run)["recoveries"][0]["role"] == "actor");
  CHECK(report_of(run)["recoveries"][0]["recovered_ms"] == 3000.0);
}

TEST_CASE("run_statistics notices a server that counts from zero again") {
  run_statistics run{small_job()};
  for (const std::uint64_t applied : {6, 10, 2, 4})
    run.observe(state(job_phase::training, 5, {server(0, 3, applied), server(1, 4, 14)}), 1s);
  const nlohmann::json all = report_of(run);
  CHECK(all["pushes"]["applied"] == 14);
  CHECK(all["staleness_versions"]["max"] == 3);
}

TEST_CASE("run_statistics divides what servers count and not what workers count") {
  run_statistics run{small_job()};
  member_status w = worker(0, 1, 3);
  w.worker.pushes_refused = 2;
  member_status s0 = server(0, 3, 0);
  s0.server.duplicates = 1;
  s0.server.waiting_pulls = 5;
  s0.server.pulls = 50;
  member_status s1 = server(1, 4, 0);
  s1.server.refused = 1;
  s1.server.waiting_pulls = 2;
  s1.server.pulls = 20;
  run.observe(state(job_phase::training, 0, {w, s0, s1}), 1s);
  const nlohmann::json all = report_of(run);
  CHECK(all["pushes"]["duplicates_dropped"] == 0.5);
  CHECK(all["pushes"]["refused"] == 2.5);
  CHECK(all["waiting_pulls"] == 7);
  CHECK(all["pulls"] == nlohmann::json{50, 20});
}

TEST_CASE("run_statistics counts a push once, however many chains the servers lead") {
  auto job = small_job();
  job.shards = 4;
  run_statistics run{job};
  member_status w = worker(0, 1, 3);
  w.worker.pushes_refused = 2;
  member_status s0 = server(0, 3, 6); // Each server is the head of two chains.
  s0.server.duplicates = 2;
  s0.server.refused = 2;
  run.observe(state(job_phase::training, 3, {w, s0, server(1, 4, 6)}), 1s);
  const nlohmann::json all = report_of(run);
  CHECK(all["pushes"]["applied"] == 3);
  CHECK(all["pushes"]["duplicates_dropped"] == 0.5);
  CHECK(all["pushes"]["refused"] == 2.5);
}

TEST_CASE("run_statistics counts the batches in the values where there are no servers") {
  run_statistics run{small_job()};
  run.without_servers("allreduce", 4);
  run.observe(state(job_phase::training, 6, {worker(0, 1, 1), worker(1, 1, 1)}), 1s);
  // The lost worker's last counts never arrived.
  run.observe(state(job_phase::training, 14, {worker(0, 1, 5), worker(1, 2, 0)}), 2s);
  CHECK(report_of(run)["pushes"]["applied"] == 10);
  CHECK(report_of(run)["servers"] == 0);
}

TEST_CASE("run_statistics takes a worker for recovered when its successor has pushed") {
  run_statistics run{small_job()};
  run.job_started(1s);
  run.observe(state(job_phase::training, 3, {worker(1, 1, 3)}), 2s);
  run.process_died({role::worker, 1, {1}}, 3s, 3020ms);
  run.process_died({role::worker, 1, {1}}, 3s, 3500ms); // The death is seen twice, counted once.
  CHECK_FALSE(all_recovered(run));
  CHECK(run.snapshot(3s).processes.at(0).dead);
  // The coordinator has not heard of the death: its old list still has the dead worker.
  run.observe(state(job_phase::training, 3, {worker(1, 1, 3)}), 3100ms);
  CHECK_FALSE(all_recovered(run));
  CHECK(run.snapshot(3s).processes.at(0).dead);

  member_status next = worker(1, 2, 0);
  next.state = member_state::joining;
  run.observe(state(job_phase::training, 3, {next}), 3200ms);
  run.observe(state(job_phase::training, 3, {worker(1, 2, 0)}), 3300ms);
  CHECK_FALSE(all_recovered(run));
  run.observe(state(job_phase::training, 4, {worker(1, 2, 1)}), 3400ms);
  CHECK(all_recovered(run));
  CHECK(run.snapshot(3s).processes.at(0).starts == 2);
  CHECK_FALSE(run.snapshot(3s).processes.at(0).dead);

  const nlohmann::json all = report_of(run)["recoveries"];
  REQUIRE(all.size() == 1);
  CHECK(all[0]["role"] == "worker");
  CHECK(all[0]["index"] == 1);
  CHECK(all[0]["at_seconds"] == 2.0);
  CHECK(all[0]["detected_ms"] == doctest::Approx(20));
  CHECK(all[0]["recovered_ms"] == doctest::Approx(400));
  CHECK(all[0]["updates_rolled_back"] == 0);
}

TEST_CASE(
  "run_statistics takes a server for recovered when its version moves on after the restore") {
  run_statistics run{small_job()};
  run.observe(state(job_phase::training, 9, {server(0, 1, 9)}), 1s);
  run.process_died({role::server, 0, {1}}, 2s, 2001ms);
  member_status next = server(0, 2, 0);
  next.state = member_state::restoring;
  run.observe(state(job_phase::training, 5, {next}), 2100ms);
  next.state = member_state::active;
  next.clock = 6; // The checkpoint's version: no progress yet.
  next.updates_rolled_back = 3;
  run.observe(state(job_phase::training, 5, {next}), 2200ms);
  CHECK_FALSE(all_recovered(run));
  next.clock = 7;
  run.observe(state(job_phase::training, 6, {next}), 2300ms);
  REQUIRE(run.recoveries().size() == 1);
  CHECK(run.recoveries()[0].recovered_at == nanoseconds{2300ms});
  CHECK(run.recoveries()[0].updates_rolled_back == 3);
}

TEST_CASE("run_statistics takes a process without work left for recovered at the end of training") {
  run_statistics run{small_job()};
  run.process_died({role::server, 0, {1}}, 2s, 2s);
  run.observe(state(job_phase::training, 20, {server(0, 2, 0)}), 3s);
  CHECK_FALSE(all_recovered(run));
  run.observe(state(job_phase::finishing, 20, {server(0, 2, 0)}), 4s);
  CHECK(all_recovered(run));
}

TEST_CASE("run_statistics does not take an unfinished restart for recovered") {
  run_statistics run{small_job()};
  run.process_died({role::server, 0, {1}}, 2s, 2s);
  member_status next = server(0, 2, 0);
  next.state = member_state::restoring;
  run.observe(state(job_phase::finished, 20, {next}), 4s);
  CHECK_FALSE(all_recovered(run));
  CHECK(report_of(run)["recoveries"][0]["recovered_ms"].is_null());
}

TEST_CASE("run_statistics recovers both deaths when the successor dies too") {
  run_statistics run{small_job()};
  run.process_died({role::worker, 0, {1}}, 1s, 1s);
  run.process_died({role::worker, 0, {2}}, 2s, 2s);
  run.observe(state(job_phase::training, 1, {worker(0, 2, 1)}), 2100ms);
  CHECK_FALSE(all_recovered(run)); // The second start sent this before it died.
  run.observe(state(job_phase::training, 1, {worker(0, 3, 1)}), 2200ms);
  CHECK(all_recovered(run));
  CHECK(run.recoveries().size() == 2);
}

TEST_CASE("run_statistics notices by its successor that a process of another host died") {
  run_statistics run{small_job()};
  run.job_started(1s);
  run.observe(state(job_phase::training, 0, {worker(1, 0, 0)}), 1500ms); // The worker is absent.
  run.observe(state(job_phase::training, 3, {worker(1, 1, 3)}), 2s);
  run.observe(state(job_phase::training, 3, {worker(1, 0, 0)}), 3s);
  run.observe(state(job_phase::training, 3, {worker(1, 0, 0)}), 4s);
  CHECK(run.recoveries().empty()); // A link may be broken, or the coordinator new.
  run.observe(state(job_phase::training, 3, {worker(1, 2, 0)}), 5s);
  CHECK_FALSE(all_recovered(run));
  run.observe(state(job_phase::training, 4, {worker(1, 2, 1)}), 6s);
  CHECK(all_recovered(run));
  CHECK(run.snapshot(6s).processes.at(0).starts == 2);

  const nlohmann::json all = report_of(run)["recoveries"];
  REQUIRE(all.size() == 1);
  CHECK(all[0]["at_seconds"] == 2.0);
  CHECK(all[0]["recovered_ms"] == doctest::Approx(3000));
}

TEST_CASE("run_statistics does not take a server that left, or comes back later, for a loss") {
  run_statistics run{small_job()};
  const auto have = [&](std::vector<member_status> members, time_point now) {
    auto what = state(job_phase::training, 3, members);
    for (const auto& one : members)
      what.servers.push_back({one.member.index});
    run.observe(what, now);
  };
  have({server(0, 1, 3), server(1, 1, 3)}, 1s);
  CHECK(run.snapshot(1s).processes.size() == 2);
  run.process_died({role::server, 1, {1}}, 2s, 2s); // It was being drained, so it is not restarted.
  have({server(0, 1, 4)}, 3s);
  CHECK(all_recovered(run));
  CHECK(run.snapshot(3s).processes.size() == 1);
  have({server(0, 1, 5), server(1, 2, 0)}, 4s);
  CHECK(run.recoveries().size() == 1);
  CHECK(run.snapshot(4s).processes.size() == 2);
}

TEST_CASE("run_statistics has the longest time without an acknowledged push in training") {
  run_statistics run{small_job()};
  run.observe(state(job_phase::gathering, 0, {worker(0, 1, 0)}), 1s);
  run.observe(state(job_phase::training, 0, {worker(0, 1, 1)}), 9s);
  run.observe(state(job_phase::training, 1, {worker(0, 1, 1)}), 9100ms);
  run.observe(state(job_phase::training, 2, {worker(0, 1, 2)}), 9300ms);
  run.observe(state(job_phase::training, 3, {worker(0, 1, 3)}), 9400ms);
  run.observe(state(job_phase::finished, 3, {worker(0, 1, 4)}), 20s);
  CHECK(report_of(run)["longest_pause_ms"] == doctest::Approx(300));
}

TEST_CASE("run_statistics leaves the coordinator's recovery to its caller") {
  run_statistics run{small_job()};
  run.process_died({role::coordinator, 0, {1}}, 1s, 1s);
  run.observe(state(job_phase::finished, 20, {}), 2s);
  CHECK_FALSE(all_recovered(run));
  CHECK(run.snapshot(2s).processes.size() == 1);
  run.coordinator_back(3s);
  CHECK(all_recovered(run));
  CHECK(run.snapshot(3s).processes.empty());
  CHECK(report_of(run)["recoveries"][0]["recovered_ms"] == 2000.0);
}

TEST_CASE("run_statistics takes rates over the last seconds only") {
  job_spec job = small_job();
  job.samples = 1'000'000;
  run_statistics run{job};
  for (std::uint64_t second = 0; second <= 20; ++second) {
    // 100 batches a second at first, 10 later.
    const std::uint64_t done = second < 10 ? 100 * second : 1000 + 10 * (second - 10);
    run.observe(state(job_phase::training, done, {worker(0, 1, done)}),
                std::chrono::seconds(second));
  }
  const progress_snapshot now = run.snapshot(20s);
  CHECK(now.samples_per_second == doctest::Approx(100));
  CHECK(now.bytes_per_second == doctest::Approx(2600)); // Bytes on links.
  CHECK(now.processes.at(0).bytes_per_second == doctest::Approx(3000));
}

TEST_CASE("run_statistics counts values where there are no links") {
  run_statistics run{small_job()};
  for (std::uint64_t second = 0; second <= 1; ++second) {
    auto alone = worker(0, 1, 10 * second);
    alone.worker.wire_bytes_sent = alone.worker.wire_bytes_received = 0;
    run.observe(state(job_phase::training, 10 * second, {alone}), std::chrono::seconds(second));
  }
  CHECK(run.snapshot(1s).bytes_per_second == doctest::Approx(3000));
}

TEST_CASE("run_statistics counts later parts of lines as workers, without their parcels") {
  run_statistics run{small_job()};
  const auto part = [](std::uint64_t incarnation, std::uint64_t pushes, std::uint64_t wire) {
    auto x = actor(0, incarnation, {{"line.to_above", 1, 1'000'000 * pushes, 0, 0}});
    x.actor.requests = worker(0, 1, pushes).worker;
    x.actor.requests.wire_bytes_sent = wire * pushes;
    x.actor.requests.wire_bytes_received = 0;
    return x;
  };
  for (const std::uint64_t wire : {0, 500}) {
    run_statistics rates{small_job()};
    for (std::uint64_t second = 0; second <= 1; ++second)
      rates.observe(state(job_phase::training, 0, {part(1, 10 * second, wire)}),
                    std::chrono::seconds(second));
    CHECK(rates.snapshot(1s).bytes_per_second == doctest::Approx(wire == 0 ? 3000 : 5000));
    CHECK(rates.snapshot(1s).processes.at(0).bytes_per_second == doctest::Approx(10'003'000));
  }
  run.observe(state(job_phase::training, 5, {worker(0, 2, 5), part(1, 4, 0)}), 1s);
  run.observe(state(job_phase::training, 9, {worker(0, 2, 9), part(3, 7, 0)}), 2s);
  const auto report = report_of(run);
  CHECK(report["pushes"]["sent"] == 10 + 5 + 8);
  CHECK(report["pushes"]["acknowledged"] == 9 + 4 + 7);
  CHECK(report["bytes"]["sent"] == 100 * 20);
  CHECK(report["bytes"]["received"] == 200 * 20);
}

TEST_CASE("run_statistics has no negative rate after a rollback") {
  run_statistics run{small_job()};
  run.observe(state(job_phase::training, 15, {}), 1s);
  run.observe(state(job_phase::training, 5, {}), 2s);
  CHECK(run.snapshot(2s).samples_per_second == 0.0);
}

TEST_CASE("run_statistics gives one point of training loss per hundredth of the batches") {
  job_spec job = small_job();
  job.samples = 10'000; // 1000 batches a epoch, 2000 in all.
  run_statistics run{job};
  for (std::uint64_t done = 1; done <= 2000; ++done)
    run.observe(state(job_phase::training, done, {worker(0, 1, done)}),
                std::chrono::milliseconds(done));
  const nlohmann::json curve = report_of(run)["loss_curve"];
  REQUIRE(curve.size() == 100);
  CHECK(curve[0]["train_loss"] == 0.5);
  CHECK(curve[0]["epoch"] == 0.02);
  CHECK(curve[99]["seconds"] == 2.0);
  CHECK_FALSE(curve[0].contains("test_loss"));
}

TEST_CASE("run_statistics counts a resumed job from where it went on") {
  run_statistics run{small_job()};
  run.observe(state(job_phase::training, 10, {}), 1s);
  run.observe(state(job_phase::finished, 20, {}), 2s);
  run.job_finished(2s);
  CHECK(report_of(run)["samples_per_second"] == 95.0);
}

TEST_CASE("run_statistics writes a report of a run in which nothing happened") {
  const nlohmann::json all = report_of(run_statistics{small_job()});
  CHECK(all["test_accuracy"].is_null());
  CHECK(all["samples_per_second"] == 0.0);
  CHECK(all["loss_curve"] == nlohmann::json::array());
  CHECK(all["peak_rss_bytes"] == nlohmann::json::object());
}

} // namespace run_report_test
