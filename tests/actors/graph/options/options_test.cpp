#include "actors/graph/options/options.hpp"

#include "actors/graph/options/field_kinds.hpp"

#include "CLI/CLI.hpp"
#include "doctest/doctest.h"

namespace options_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

/// Returns the options that a command line gives; throws the errors of the parse.
run_options parsed(std::vector<std::string> words, run_options options = {}) {
  CLI::App app;
  declare(app, options);
  std::reverse(words.begin(), words.end());
  app.parse(words);
  return options;
}

/// Returns the line that ends the parse; empty if it succeeds.
std::string complaint(const std::vector<std::string>& words) {
  try {
    (void)parsed(words);
    return {};
  } catch (const CLI::ParseError& problem) {
    return problem.what();
  }
}

std::string rejection_of(const std::vector<std::string>& words) {
  const auto valid = validate(parsed(words));
  if (valid)
    return {};
  CHECK(valid.error().code == errc::invalid_argument);
  return valid.error().text;
}

bool starts_with(const std::string& text, const std::string& part) {
  return text.compare(0, part.size(), part) == 0;
}

} // namespace

TEST_CASE("a_process_is_read_from_its_role_and_index") {
  CHECK(*parse_process("worker:12") == process_name{role::worker, 12});
  CHECK(*parse_process("server:0") == process_name{role::server, 0});
  CHECK(*parse_process("coordinator:1") == process_name{role::coordinator, 1});
}

TEST_CASE("text_that_names_no_process_is_refused") {
  for (const std::string text : {"", "worker", "worker:", ":1", "worker:-1", "worker:1x",
                                 "worker: 1", "launcher:0", "coordinator", "worker:4294967296"}) {
    CAPTURE(text);
    const auto parsed_text = parse_process(text);
    REQUIRE_FALSE(parsed_text);
    CHECK(
      parsed_text.error()
      == failure{errc::invalid_argument,
                 "'" + text + "' is not ROLE:INDEX, such as worker:1, server:0 or coordinator:0"});
  }
}

TEST_CASE("a_kill_is_read_with_its_seconds") {
  const auto x = parsed({"--kill", "server:1@2.5", "--kill", "learners:0@0"});
  REQUIRE(x.kills.size() == 1);
  CHECK(x.kills[0].who == process_name{role::server, 1});
  CHECK(x.kills[0].after == 2500ms);
  CHECK(x.by_node == std::vector<named_process>{{"--kill", "learners", 0, 0ms}});
}

TEST_CASE("text_that_is_no_kill_is_refused") {
  for (const std::string text :
       {"worker:1", "worker:1@", "worker:1@-1", "worker:1@nan", "worker:1@inf", "worker:1@1s",
        "worker:1@1e9", ":1@1", "learners@1", "learners:x@1"}) {
    CAPTURE(text);
    CHECK(complaint({"--kill", text})
          == "--kill: '" + text
               + "' is not NAME:INDEX@SECONDS, such as worker:1@3 or learners:1@3");
  }
}

TEST_CASE("processes_are_named_by_role_or_by_node") {
  const auto x = parsed({"--here", "learners:2,server:1,model:0", "--slow", "learners:1:20",
                         "--slow", "worker:2:30", "--slow", "0:10"});
  CHECK(x.here == std::vector<process_name>{{role::server, 1}});
  CHECK(x.slow_workers == std::map<std::uint32_t, std::chrono::milliseconds>{{0, 10ms}, {2, 30ms}});
  CHECK(x.by_node
        == std::vector<named_process>{{"--here", "learners", 2, 0ms},
                                      {"--here", "model", 0, 0ms},
                                      {"--slow", "learners", 1, 20ms}});
}

TEST_CASE("a_checkpoint_period_is_a_time_or_a_number_of_clocks") {
  const std::tuple<std::string, std::chrono::milliseconds, std::uint64_t> cases[] = {
    {"2s", 2000ms, 0},       {"500ms", 500ms, 0}, {"1m", 60'000ms, 0},   {"1.5s", 1500ms, 0},
    {"200clocks", 0ms, 200}, {"0.1ms", 1ms, 0},   {"0.2clocks", 0ms, 1}, {"never", 0ms, 0}};
  for (const auto& [text, interval, clocks] : cases) {
    CAPTURE(text);
    const auto period = parse_checkpoint_period(text);
    REQUIRE(period);
    CHECK(period->interval == interval);
    CHECK(period->clocks == clocks);
  }
}

TEST_CASE("text_that_is_no_period_is_refused") {
  for (const std::string text : {"", "2", "s", "0s", "-1s", "2h", "2 s", "1.2.3s", "99999999999s",
                                 "2clock", "2000000000clocks"}) {
    CAPTURE(text);
    const auto period = parse_checkpoint_period(text);
    REQUIRE_FALSE(period);
    CHECK(period.error().text
          == "'" + text
               + "' is not a period: a number with ms, s or m (time) or clocks, such as 2s or "
                 "200clocks");
  }
}

TEST_CASE("the_command_line_fills_every_option") {
  const auto x = parsed({"--workers",
                         "3",
                         "--servers",
                         "5",
                         "--replicas",
                         "3",
                         "--shards",
                         "10",
                         "--sync",
                         "ssp:4",
                         "--optimizer",
                         "adam",
                         "--lr",
                         "0.5",
                         "--momentum",
                         "0.8",
                         "--beta2",
                         "0.9",
                         "--epsilon",
                         "1e-4",
                         "--delta-pulls",
                         "--no-key-cache",
                         "--apply-batch",
                         "16",
                         "--verify-replicas",
                         "100",
                         "--weight-decay",
                         "0.01",
                         "--clip-norm",
                         "2",
                         "--clip-value",
                         "3",
                         "--staleness-lr",
                         "2.5",
                         "--l1",
                         "0.25",
                         "--ftrl-beta",
                         "2",
                         "--batch",
                         "16",
                         "--epochs",
                         "7",
                         "--seed",
                         "9",
                         "--partitions",
                         "8",
                         "--checkpoint",
                         "dir",
                         "--checkpoint-every",
                         "50clocks",
                         "--checkpoint-keep",
                         "2",
                         "--resume",
                         "--report",
                         "r.json",
                         "--export",
                         "e.npz",
                         "--run-dir",
                         "run",
                         "--slow",
                         "2:50",
                         "1:10",
                         "--kill",
                         "worker:1@3",
                         "server:0@0.5",
                         "--listen",
                         "10.0.0.1:4000",
                         "--here",
                         "worker:2,server:1",
                         "--tls",
                         "certs"});
  CHECK(x.workers.count == 3);
  CHECK(x.servers.count == 5);
  CHECK(x.servers.replicas == 3);
  CHECK(x.servers.shards == 10);
  CHECK(x.sync == consistency{consistency_mode::ssp, 4});
  optimizer_spec optimizer;
  optimizer.kind = optimizer_kind::adam;
  optimizer.learning_rate = 0.5f;
  optimizer.momentum = 0.8f;
  optimizer.beta2 = 0.9f;
  optimizer.epsilon = 1e-4f;
  optimizer.weight_decay = 0.01f;
  optimizer.clip_norm = 2;
  optimizer.clip_value = 3;
  optimizer.full_rate_staleness = 2.5f;
  optimizer.l1 = 0.25f;
  optimizer.beta = 2;
  CHECK(x.optimizer == optimizer);
  CHECK(x.batch_samples == 16);
  CHECK(x.epochs == 7);
  CHECK(x.seed == 9);
  CHECK(x.partitions == 8);
  CHECK(x.servers.apply_batch == 16);
  CHECK(x.servers.verify_replicas == 100);
  CHECK(x.workers.delta_pulls);
  CHECK(!x.key_cache);
  CHECK(x.checkpoint_directory == "dir");
  CHECK(x.servers.checkpoints.interval == 0ms);
  CHECK(x.servers.checkpoints.clocks == 50);
  CHECK(x.servers.checkpoints.keep == 2);
  CHECK(x.resume);
  CHECK(x.report_file == "r.json");
  CHECK(x.export_file == "e.npz");
  CHECK(x.run_directory == "run");
  CHECK(x.slow_workers == std::map<std::uint32_t, std::chrono::milliseconds>{{1, 10ms}, {2, 50ms}});
  REQUIRE(x.kills.size() == 2);
  CHECK(x.kills[1].after == 500ms);
  CHECK(x.listen == endpoint{"10.0.0.1", 4000});
  CHECK(x.here == std::vector<process_name>{{role::worker, 2}, {role::server, 1}});
  CHECK(x.tls_directory == "certs");
  CHECK(validate(x));
  CHECK(parsed({"--pull-ahead", "2"}).workers.ahead == 2);
}

TEST_CASE("compression_is_for_all_tables_or_for_one") {
  const auto x = parsed({"--compress", "topk:0.01", "--compress", "bias=f32", "--compress",
                         "w=int8", "--compress-pulls", "bf16"});
  CHECK(validate(x));
  CHECK(x.codec.pushes.at("") == compression{encoding::topk, 0.01});
  CHECK(x.codec.pushes.at("bias") == compression{});
  CHECK(x.codec.pushes.at("w") == compression{encoding::int8, 0});
  CHECK(x.codec.pulls == encoding::bf16);
  CHECK(parsed({"--compress-pulls", "f32"}).codec.pulls == encoding::f32);
}

TEST_CASE("without_arguments_the_options_are_the_defaults_and_valid") {
  const auto x = parsed({});
  CHECK(x.workers.count == 4);
  CHECK(x.sync == consistency{consistency_mode::asp, 0});
  CHECK(x.servers.checkpoints.interval == 2000ms);
  CHECK(validate(x));
}

TEST_CASE("a_value_that_cannot_be_used_ends_the_parse_with_one_line") {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
    {{"--sync", "fast"}, "--sync: "},
    {{"--optimizer", "lbfgs"}, "--optimizer: "},
    {{"--listen", "here"}, "--listen: "},
    {{"--join", "there"}, "--join: "},
    {{"--here", "worker:1,cook"}, "--here: 'cook' is not NAME:INDEX, such as worker:1"},
    {{"--slow", "server:0:5"}, "--slow: 'server:0:5' is not WORKER:MILLISECONDS"},
    {{"--checkpoint-every", "2h"}, "--checkpoint-every: '2h' is not a period"},
    {{"--checkpoint-every", "200k"}, "--checkpoint-every: '200k': write clocks as 200clocks"},
    {{"--slow", "1"}, "--slow: '1' is not WORKER:MILLISECONDS, such as 2:50"},
    {{"--slow", "a:1"}, "--slow: 'a:1' is not WORKER:MILLISECONDS"},
    {{"--slow", "1:1s"}, "--slow: '1:1s' is not WORKER:MILLISECONDS"},
    {{"--kill", "worker:1"}, "--kill: 'worker:1' is not NAME:INDEX@SECONDS"},
    {{"--workers", "0"}, "--workers: "},
    {{"--workers", "1025"}, "--workers: "},
    {{"--servers", "0"}, "--servers: "},
    {{"--reads", "tail"}, "--reads: reads go to head or any, not to 'tail'"},
    {{"--durability", "disk"}, "--durability: durability must be memory or log, not 'disk'"},
    {{"--replicas", "0"}, "--replicas: "},
    {{"--replicas", "17"}, "--replicas: "},
    {{"--workers-per-process", "0"}, "--workers-per-process: "},
    {{"--workers-per-process", "33"}, "--workers-per-process: "},
    {{"--reduce-wait", "5001"}, "--reduce-wait: "},
    {{"--shards", "4097"}, "--shards: "},
    {{"--lr", "0"}, "--lr: "},
    {{"--momentum", "1"}, "--momentum: "},
    {{"--beta2", "1"}, "--beta2: "},
    {{"--epsilon", "0"}, "--epsilon: "},
    {{"--pull-ahead", "3"}, "--pull-ahead: "},
    {{"--weight-decay", "-1"}, "--weight-decay: "},
    {{"--staleness-lr"}, "--staleness-lr: "},
    {{"--staleness-lr", "-1"}, "--staleness-lr: '-1' is not a number from 0 on"},
    {{"--clip-norm", "-1e-50"}, "--clip-norm: '-1e-50' is not a number from 0 on"},
    {{"--staleness-lr", "inf"}, "--staleness-lr: 'inf' is not a number from 0 on"},
    {{"--staleness-lr", "1e-300"}, "--staleness-lr: '1e-300' is too small for a number of 32 bits"},
    {{"--lr", "1e-400"}, "--lr: '1e-400' is too small for a number of 32 bits"},
    {{"--lr", "1e39"}, "--lr: '1e39' is too large for a number of 32 bits"},
    {{"--momentum", "1e-39"}, "--momentum: '1e-39' is too small for a number of 32 bits"},
    {{"--beta2", "nan"}, "--beta2: 'nan' is not a number from 0 to 0.999999"},
    {{"--epsilon", "1e-45"}, "--epsilon: '1e-45' is too small for a number of 32 bits"},
    {{"--weight-decay", "1e-60"}, "--weight-decay: '1e-60' is too small"},
    {{"--l1", "1e-60"}, "--l1: '1e-60' is too small"},
    {{"--ftrl-beta", "1e-60"}, "--ftrl-beta: '1e-60' is too small"},
    {{"--clip-norm", "1e-60"}, "--clip-norm: '1e-60' is too small"},
    {{"--clip-value", "1e60"}, "--clip-value: '1e60' is too large"},
    {{"--replay", "x", "--until", "1e-400"}, "--until: '1e-400' is too small for a number of 64"},
    {{"--replay", "x", "--until", "-1"}, "--until: '-1' is not a number from 0 on"},
    {{"--replay", "x", "--until", "inf"}, "--until: 'inf' is not a number from 0 on"},
    {{"--seed", "-1"}, "--seed: '-1' is not a number from 0 to 2^64 - 1"},
    {{"--workers", "010"}, "--workers: '010' is not a number from 1 to 1024"},
    {{"--verify-replicas", "-1"}, "--verify-replicas: '-1' is not a number from 0 to 1000000000"},
    {{"--straggler-time-scale", "nan"},
     "--straggler-time-scale: 'nan' is not a number from 1 to 20"},
    {{"--batch", "0"}, "--batch: "},
    {{"--epochs", "0"}, "--epochs: "},
    {{"--partitions", "5000"}, "--partitions: "},
    {{"--checkpoint-keep", "0"}, "--checkpoint-keep: "},
    {{"--checkpoint-scrub", "0s"}, "--checkpoint-scrub: '0s' is neither a time"},
    {{"--checkpoint-scrub", "200clocks"}, "--checkpoint-scrub: '200clocks' is neither a time"},
    {{"--compress", "gzip"}, "--compress: 'gzip' is none of f32, fp16, bf16, int8, onebit, topk:"},
    {{"--compress", "topk:0"}, "--compress: 'topk:0': topk needs the fraction of elements to send"},
    {{"--compress", "=fp16"}, "--compress: '=fp16' names no table before the ="},
    {{"--compress", "w=int9"}, "--compress: 'int9' is none of"},
    {{"--compress", "fp16", "--compress", "bf16"}, "--compress: only one may be for all tables"},
    {{"--compress", "w=fp16", "--compress", "w=bf16"}, "--compress: table 'w' is named twice"},
    {{"--compress-pulls", "onebit"}, "--compress-pulls: 'onebit' is none of fp16, bf16 and int8"},
    {{"--threads", "--processes"}, "--processes excludes --threads"},
    {{"--simulate", "--processes"}, "--processes excludes --simulate"},
    {{"--simulate", "--threads"}, "--threads excludes --simulate"}};
  for (const auto& [words, line] : cases) {
    CAPTURE(words.front());
    const auto found = complaint(words);
    CAPTURE(found);
    CHECK(starts_with(found, line));
    CHECK(found.find('\n') == std::string::npos);
  }
}

TEST_CASE("an_empty_name_of_a_file_or_directory_is_refused") {
  for (const auto* option : {"--report", "--events", "--export", "--import", "--run-dir", "--tls",
                             "--checkpoint", "--record", "--replay"})
    CHECK(complaint({option, ""})
          == std::string{option} + ": the name of the file or directory is empty");
}

TEST_CASE("options_that_do_not_go_together_are_refused") {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
    {{"--sync", "allreduce", "--servers", "2"},
     "--sync allreduce has no servers: leave out --servers"},
    {{"--sync", "allreduce", "--pull-ahead", "1"},
     "--sync allreduce waits for other workers: leave out --pull-ahead"},
    {{"--sync", "allreduce", "--replicas", "1"},
     "--sync allreduce has no servers: leave out --replicas"},
    {{"--sync", "allreduce", "--stragglers", "off"},
     "--sync allreduce has all workers wait for each other in every step: leave out --stragglers"},
    {{"--sync", "allreduce", "--listen", "127.0.0.1:1"},
     "--sync allreduce runs on one host so far: leave out --listen"},
    {{"--sync", "allreduce", "--threads"},
     "--sync allreduce has a process for each worker: leave out --threads"},
    {{"--sync", "allreduce", "--kill", "coordinator:0@1"},
     "--sync allreduce has workers only: leave out --kill coordinator"},
    {{"--sync", "hogwild", "--processes"}, "--sync hogwild shares memory between threads"},
    {{"--sync", "hogwild", "--checkpoint", "d"}, "--sync hogwild keeps no record of batches"},
    {{"--sync", "hogwild", "--import", "f.npz"}, "--sync hogwild keeps no record of batches"},
    {{"--sync", "hogwild", "--resume"}, "--sync hogwild keeps no record of batches"},
    {{"--sync", "hogwild", "--checkpoint-scrub", "off"}, "--sync hogwild keeps no record"},
    {{"--threads", "--kill", "worker:0@1"}, "--threads is one process: leave out --kill"},
    {{"--threads", "--listen", "1.2.3.4:5"}, "--threads is one process"},
    {{"--threads", "--join", "1.2.3.4:5"}, "--threads is one process"},
    {{"--threads", "--here", "worker:0"}, "--threads is one process"},
    {{"--threads", "--run-dir", "d"}, "--threads writes no logs"},
    {{"--threads", "--checkpoint-every", "1s"},
     "--threads keeps no checkpoints without --checkpoint DIR: leave out "
     "--checkpoint-every"},
    {{"--simulate", "--sync", "hogwild"}, "--sync hogwild shares memory between threads"},
    {{"--simulate", "--kill", "worker:0@1"}, "--simulate is one process: leave out --kill"},
    {{"--simulate", "--listen", "1.2.3.4:5"}, "--simulate is one process: leave out --listen"},
    {{"--simulate", "--join", "1.2.3.4:5"}, "--simulate is one process: leave out --join"},
    {{"--simulate", "--here", "worker:0"}, "--simulate is one process"},
    {{"--simulate", "--run-dir", "d"}, "--simulate writes no logs: leave out --run-dir"},
    {{"--simulate", "--durability", "log"}, "--simulate ends as a whole"},
    {{"--simulate", "--coordinator-store", "etcd://a:1"}, "--simulate has no coordinator to lose"},
    {{"--simulate", "--tls", "d"}, "--simulate has no links to encrypt"},
    {{"--threads", "--ports", "7-8"}, "--threads is one process"},
    {{"--sync", "allreduce", "--ports", "7-8"}, "--sync allreduce runs on one host so far"},
    {{"--simulate", "--no-key-cache"}, "--simulate has no links"},
    {{"--simulate", "--checkpoint", "d"}, "--simulate begins with the initial values and keeps no"},
    {{"--simulate", "--resume", "--checkpoint", "d"}, "--simulate begins with the initial values"},
    {{"--simulate", "--import", "a.npz"}, "--simulate begins with the initial values and keeps no"},
    {{"--simulate", "--replay", "d"}, "--replay computes a record again, in its own order"},
    {{"--simulate", "--stragglers", "evict"}, "--simulate cannot start a worker again"},
    {{"--threads", "--checkpoint-keep", "2"},
     "--threads keeps no checkpoints without --checkpoint DIR: leave out "
     "--checkpoint-keep"},
    {{"--threads", "--checkpoint-scrub", "1m"},
     "--threads keeps no checkpoints without --checkpoint DIR: leave out "
     "--checkpoint-scrub"},
    {{"--sync", "hogwild", "--checkpoint-every", "1s"}, "--sync hogwild keeps no record"},
    {{"--sync", "hogwild", "--run-dir", "d"}, "--sync hogwild writes no logs"},
    {{"--sync", "hogwild", "--threads", "--run-dir", "d"}, "--sync hogwild writes no logs"},
    {{"--sync", "hogwild", "--kill", "worker:0@1"},
     "--sync hogwild is one process: leave out --kill"},
    {{"--sync", "hogwild", "--listen", "1.2.3.4:5"}, "--sync hogwild is one process: leave out"},
    {{"--sync", "hogwild", "--here", "worker:0"}, "--sync hogwild is one process: leave out"},
    {{"--sync", "hogwild", "--tls", "d"}, "--sync hogwild has no links to encrypt"},
    {{"--sync", "hogwild", "--no-key-cache"}, "--sync hogwild has no links that bring keys"},
    {{"--sync", "hogwild", "--apply-batch", "2"}, "--sync hogwild applies no pushes together"},
    {{"--sync", "bsp", "--apply-batch", "2"}, "--sync bsp applies each clock's pushes together"},
    {{"--sync", "bsp", "--pull-ahead", "1"}, "--sync bsp waits for other workers"},
    {{"--sync", "ssp:3", "--pull-ahead", "1"}, "--sync ssp:3 waits for other workers"},
    {{"--sync", "hogwild", "--servers", "2"}, "--sync hogwild has one memory and no servers"},
    {{"--sync", "hogwild", "--replicas", "2"}, "--sync hogwild has one memory and no servers"},
    {{"--sync", "hogwild", "--shards", "2"}, "--sync hogwild has one memory and no servers"},
    {{"--threads", "--durability", "log"}, "--threads ends as a whole: leave out --durability"},
    {{"--replicas", "3"}, "--replicas 3 needs as many --servers, not 2"},
    {{"--servers", "1", "--replicas", "2"}, "--replicas 2 needs as many --servers, not 1"},
    {{"--verify-replicas", "5"}, "--verify-replicas compares replicas: needs --replicas"},
    {{"--reads", "any"}, "--reads any spreads pulls over replicas: needs --replicas"},
    {{"--replicas", "2", "--reads", "any", "--sync", "ssp:3"}, "--sync ssp has one server wait"},
    {{"--sync", "hogwild", "--delta-pulls"}, "--sync hogwild writes values in place"},
    {{"--threads", "--no-key-cache"}, "--threads has no links"},
    {{"--sync", "hogwild", "--workers-per-process", "2"}, "--sync hogwild has one memory for all"},
    {{"--record", "d", "--workers-per-process", "2"}, "--record names the values that each"},
    {{"--join", "1.2.3.4:5", "--here", "worker:0", "--report", "r"},
     "--join takes part in a job that another host started: leave out --report"},
    {{"--join", "1.2.3.4:5", "--here", "worker:0", "--export", "e"},
     "--join takes part in a job that another host started: leave out --export"},
    {{"--join", "1.2.3.4:5", "--here", "worker:0", "--import", "i"},
     "--join takes part in a job that another host started: leave out --import"},
    {{"--join", "1.2.3.4:5", "--listen", "1.2.3.4:5"},
     "--join takes part in a job that another host started: leave out --listen"},
    {{"--join", "1.2.3.4:5"}, "--join needs --here"},
    {{"--join", "127.0.0.1:0", "--here", "worker:0"}, "--join needs the port"},
    {{"--sync", "hogwild", "--compress", "fp16"},
     "--sync hogwild writes values in place and sends nothing: leave out --compress"},
    {{"--record", "d", "--compress", "topk:0.1"},
     "--record knows the values that were pulled, not"},
    {{"--record", "d", "--compress-pulls", "bf16"}, "--record knows the values that were pulled"},
    {{"--replay", "d", "--compress", "fp16"}, "--replay computes what was recorded, and that was"},
    {{"--resume"}, "--resume needs --run-dir DIR or --checkpoint DIR"},
    {{"--resume", "--threads"}, "--resume needs --checkpoint DIR"},
    {{"--resume", "--checkpoint", "d", "--import", "f.npz"}, "--resume and --import both"},
    {{"--here", "server:2"}, "--here: the job has no server 2, only 0 to 1"},
    {{"--listen", "127.0.0.1:0", "--here", "worker:0,worker:4"},
     "--here: the job has no worker 4, only 0 to 3"},
    {{"--join", "127.0.0.1:1", "--here", "worker:65536"},
     "--here: the job has no worker 65536, only 0 to 65535"},
    {{"--here", "server:1"}, "--here without --listen or --join"},
    {{"--listen", "0.0.0.0:4000"}, "--listen needs the address at which other hosts reach"},
    {{"--listen", "0:4000"}, "--listen needs the address at which other hosts reach"},
    {{"--listen", "[0::0]:4000"}, "--listen needs the address at which other hosts reach"},
    {{"--join", "1.2.3.4:5", "--here", "server:1"}, "--join with a server needs --checkpoint"},
    {{"--here", "coordinator:0"}, "--here: the job has no second coordinator"},
    {{"--threads", "--coordinator-store", "etcd://a:1"}, "--threads has no coordinator to lose"},
    {{"--standbys", "1"}, "--standbys needs --coordinator-store etcd://HOST:PORT"},
    {{"--join", "127.0.0.1:1", "--here", "worker:0", "--coordinator-store", "etcd://a:1"},
     "--join takes part in a job that another host started: leave out --coordinator-store"},
    {{"--kill", "coordinator:1@1"}, "--kill: the job has only coordinators 0 to 0"},
    {{"--slow", "4:1"}, "--slow: the job has no worker 4, only 0 to 3"},
    {{"--kill", "worker:4@1"}, "--kill: the job has only workers 0 to 3 and servers 0 to 1"},
    {{"--kill", "server:2@1"}, "--kill: the job has only workers 0 to 3 and servers 0 to 1"}};
  for (const auto& [words, line] : cases) {
    CAPTURE(words.front());
    const auto found = rejection_of(words);
    CAPTURE(found);
    CHECK(starts_with(found, line));
  }
  CHECK(rejection_of({"--kill", "coordinator:0@1"}).empty());
  CHECK(rejection_of({"--servers", "3", "--replicas", "3", "--shards", "9"}).empty());
  CHECK(rejection_of({"--servers", "3", "--shards", "1"}).empty());
  CHECK(rejection_of(
          {"--coordinator-store", "etcd://a:1", "--standbys", "2", "--kill", "coordinator:2@1"})
          .empty());
  CHECK(rejection_of({"--threads", "--checkpoint", "d", "--checkpoint-every", "1s"}).empty());
  // A host may bring more workers than the job began with.
  CHECK(rejection_of({"--join", "127.0.0.1:1", "--here", "worker:9"}).empty());
  // Hogwild pulls values ahead as asp does; ssp applies waiting pushes together as asp does.
  CHECK(rejection_of({"--sync", "hogwild", "--pull-ahead", "1"}).empty());
  CHECK(rejection_of({"--sync", "ssp:3", "--apply-batch", "16"}).empty());
  CHECK(rejection_of({"--sync", "bsp", "--pull-ahead", "0", "--apply-batch", "1"}).empty());
}

TEST_CASE("the_network_is_not_used_without_encryption_unless_that_is_said_in_so_many_words") {
  const std::vector<std::vector<std::string>> outside = {
    {"--listen", "10.0.0.1:4000"},
    {"--listen", "[fd00::1]:4000"},
    {"--listen", "host-a:4000"},
    {"--join", "10.0.0.1:4000", "--here", "worker:0"}};
  const auto with = [](std::vector<std::string> words, std::vector<std::string> more) {
    words.insert(words.end(), more.begin(), more.end());
    return rejection_of(words);
  };
  for (const auto& words : outside) {
    CAPTURE(words[1]);
    CHECK(starts_with(with(words, {}), words[0] + " " + words[1] + " needs --tls DIR"));
    CHECK(with(words, {"--tls", "d"}).empty());
    CHECK(with(words, {"--allow-plaintext-on-network"}).empty());
    CHECK(starts_with(with(words, {"--tls", "d", "--allow-plaintext-on-network"}),
                      "--tls and --allow-plaintext-on-network: choose one"));
  }
  CHECK(rejection_of({"--listen", "127.0.0.1:0"}).empty());
  for (const char* own : {"127.0.0.1:4000", "[::1]:4000", "localhost:4000"}) {
    CHECK(rejection_of({"--listen", own}).empty());
    CHECK(rejection_of({"--join", own, "--here", "worker:0"}).empty());
  }
  CHECK(
    starts_with(rejection_of({"--threads", "--tls", "d"}), "--threads has no links to encrypt"));
}

TEST_CASE("the_mode_is_the_one_asked_for_or_the_one_that_fits") {
  CHECK(parsed({}).mode() == run_mode::processes);
  CHECK(parsed({"--threads"}).mode() == run_mode::threads);
  CHECK(parsed({"--simulate"}).mode() == run_mode::simulation);
  CHECK(parsed({"--sync", "hogwild"}).mode() == run_mode::threads);
  CHECK(parsed({"--sync", "hogwild", "--processes"}).mode() == run_mode::processes);
}

TEST_CASE("tables_get_the_consistency_and_optimiser_of_the_command_line") {
  const auto tables = parsed({"--sync", "bsp", "--lr", "0.25"}).store({{}, {}}).tables();
  REQUIRE(tables.size() == 2);
  CHECK(tables[1].sync.mode == consistency_mode::bsp);
  CHECK(tables[1].optimizer.learning_rate == 0.25f);
}

TEST_CASE("tables_of_the_command_line_have_a_lower_rate_for_stale_steps_unless_it_says_otherwise") {
  const std::pair<std::vector<std::string>, float> cases[] = {
    {{}, full_rate_staleness_default},
    {{"--sync", "ssp:2", "--optimizer", "adam"}, full_rate_staleness_default},
    {{"--sync", "bsp"}, 0},
    {{"--sync", "hogwild"}, 0},
    {{"--sync", "allreduce"}, 0},
    {{"--optimizer", "ftrl"}, 0},
    {{"--staleness-lr", "0"}, 0},
    {{"--staleness-lr", "1"}, 1},
    {{"--staleness-lr", "0.5"}, 0.5f}};
  for (const auto& [words, expected] : cases) {
    CAPTURE(words);
    const auto store = parsed(words).store({{}});
    CHECK(store.tables()[0].optimizer.full_rate_staleness == expected);
  }
  run_options of_program;
  CHECK(of_program.store({{}}).tables()[0].optimizer.full_rate_staleness == 0);
  of_program.optimizer.full_rate_staleness = 2;
  CHECK(parsed({}, of_program).optimizer.full_rate_staleness == 2);
  of_program.optimizer = {.kind = optimizer_kind::user, .function = "mean/1"};
  CHECK(parsed({}, of_program).optimizer.full_rate_staleness == 0);
}

} // namespace options_test
