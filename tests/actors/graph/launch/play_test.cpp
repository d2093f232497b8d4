// Tests that fields reach the actors of members, in all ways to run.
#include "actors/graph/launch/cluster_file.hpp"
#include "actors/graph/launch/play.hpp"
#include "actors/graph/launch/run_setup.hpp"
#include "actors/graph/options/recording.hpp"
#include "actors/graph/launch/actor_config.hpp"
#include "tests/actors/tiny_training.hpp"
#include "tests/storage/temporary_directory.hpp"

#include "caf/actor_system.hpp"
#include "doctest/doctest.h"
#include "fmt/format.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace play_test {

using namespace troupe;
using namespace troupe::test;

namespace {

/// A value of a field that is not its default.
struct other_value {
  std::string option;
  std::string text;
  std::string instead_of = {}; ///< Another flag, which is set before.
};

const std::vector<other_value> other_values{
  {"--workers", "3"},
  {"--backup-workers", "1"},
  {"--workers-per-process", "1"},
  {"--here", "worker:0"},
  {"--sync", "hogwild"},
  {"--processes", "true", "--threads"},
  {"--threads", "true"},
  {"--simulate", "true"},
  {"--push-memory", "3"},
  {"--apply-batch", "7"},
  {"--pull-ahead", "1"},
  {"--delta-pulls", "true"},
  {"--reads", "any"},
  {"--verify-replicas", "8"},
  {"--coordinator-store", "etcd://127.0.0.1:2379,127.0.0.2:2380/name"},
  {"--tls", "/a directory/with, comma"},
  {"--ports", "40000-40100"},
  {"--stragglers", "demote"},
  {"--straggler-time-scale", "4"},
  {"--checkpoint-every", "5ms"},
  {"--checkpoint-keep", "2"},
  {"--checkpoint-scrub", "9ms"},
  {"--slow", "0:16,1:20"},
  {"--no-key-cache", "true"},
  {"--record", "/tmp/record \xff"},
};

const field& row_of(const std::string& option) {
  for (const auto& row : rows_of(all_fields()))
    if (row.option == option)
      return row;
  throw std::logic_error{"there is no row of " + option};
}

/// Returns a plan whose processes of workers have two of them.
plan base() {
  run_options options;
  options.workers.count = 2;
  options.workers.per_process = 4;
  options.checkpoint_directory = "/tmp/checkpoints";
  return tiny_plan(options, 80, to_three);
}

/// Returns what the actors of a process get of the fields.
std::string actors_of(const member_plan& what, const surroundings& in) {
  const auto files = options_of_files(what);
  auto text =
    fmt::format("memory {}, keys {}, tls {}, ports {}, keeps {}; ", limits_of(what).memory_bytes,
                limits_of(what).key_cache, what.fields.tls_directory.value_or("none"),
                what.fields.ports ? to_string(*what.fields.ports) : "any", files.keep);
  const auto routing = routing_of(what.fields);
  const auto reads =
    fmt::format("reads {} patience {}", int(routing.reads), routing.read_patience.count());
  switch (what.self().role) {
  case role::coordinator: {
    const auto setup = setup_of(what, in);
    const auto& period = setup.options.checkpointing;
    const auto& rules = setup.options.stragglers;
    text += fmt::format("every {} {}, scrubs {}, rounds {}, strongest {}, etcd {}",
                        period.interval.count(), period.clocks, setup.scrub_interval.count(),
                        rules ? rules->round.count() : 0, rules ? int(rules->strongest) : -1,
                        what.fields.etcd
                          ? to_string(etcd_of(what.fields, what.checkpoints).endpoints.back())
                          : "none");
    break;
  }
  case role::server: {
    const auto how = options_of_server(what, in);
    text += fmt::format("applies {}, compares {}, records {}", how.apply_batch, how.verify_replicas,
                        how.record ? how.record->directory.string() : "nothing");
    break;
  }
  case role::actor: text += reads; break; // Of what it pulls.
  case role::observer: break;             // No launcher starts it.
  case role::worker:
    for (const auto& who : what.members) {
      const auto how = options_of_worker(what, who, in);
      text += fmt::format("worker {} ahead {} delta {} slower {}, ", who.index,
                          how.step_planner.ahead_max, how.delta_pulls,
                          how.slowness ? how.slowness().count() : 0);
    }
    text += reads;
  }
  return text;
}

/// Returns the plans as a process reads them.
member_plans through_file(const member_plans& plans) {
  const storage::temporary_directory folder;
  cluster_file written;
  written.members = plans;
  REQUIRE(write_cluster_file(folder.path(), written));
  const auto read = read_cluster_file(folder.path());
  REQUIRE(read);
  return read->members;
}

} // namespace

TEST_CASE("each_field_that_a_role_reads_is_in_the_options_of_its_actors_in_all_ways_to_run") {
  actor_config config;
  caf::actor_system system{config};
  const surroundings in{.system = system};
  for (const auto& row : rows_of(all_fields())) {
    if (row.readers.empty())
      continue;
    CAPTURE(row.option);
    const auto other = std::ranges::find(other_values, row.option, &other_value::option);
    REQUIRE(other != other_values.end());
    auto what = base();
    if (!other->instead_of.empty())
      REQUIRE(row_of(other->instead_of).kind.take("true", what.options));
    const auto before = member_plans_of(what);
    const auto comma = row.kind.repeats ? other->text.find(',') : std::string::npos;
    REQUIRE(row.kind.take(other->text.substr(0, comma), what.options));
    if (comma != std::string::npos)
      REQUIRE(row.kind.take(other->text.substr(comma + 1), what.options));
    const auto in_one_process = member_plans_of(what);
    const auto in_processes = through_file(in_one_process);
    for (const role reader : started_roles()) {
      CAPTURE(traits_of(reader).name);
      const bool reads = std::ranges::find(row.readers, reader) != row.readers.end();
      const member_id self{reader, 0, {1}};
      const auto at_actors = actors_of(in_one_process.of(self), in);
      CHECK((at_actors != actors_of(before.of(self), in)) == reads);
      CHECK(at_actors == actors_of(in_processes.of(self), in));
    }
  }
}

TEST_CASE("a_members_plan_names_what_it_is_and_what_it_holds") {
  auto what = base();
  what.options.resume = true;
  const auto plans = through_file(member_plans_of(what));
  const auto worker = plans.of({role::worker, 0, {7}});
  CHECK(worker.members
        == std::vector{member_id{role::worker, 0, {7}}, member_id{role::worker, 1, {8}}});
  CHECK(worker.node == "learners:0");
  CHECK(worker.job == what.job);
  CHECK(worker.checkpoints == "/tmp/checkpoints");
  CHECK(worker.resume);
  const auto server = plans.of({role::server, 1, {7}});
  CHECK(server.members == std::vector{member_id{role::server, 1, {7}}});
  CHECK(server.node == "model:1");
  CHECK(plans.of({role::coordinator, 0, {7}}).node.empty());
}

TEST_CASE("values_of_files_are_in_a_checkpoint_unless_the_process_has_read_them") {
  actor_config config;
  caf::actor_system system{config};
  surroundings in{.system = system};
  auto what = base();
  const auto resumes = [&] {
    return setup_of(member_plans_of(what).of({role::coordinator, 0, {1}}), in).options.resume;
  };
  CHECK_FALSE(resumes());
  what.job.tables.front().values_checksum = 5;
  CHECK(resumes());
  in.given = {{0, std::make_shared<const std::vector<float>>(9000)}};
  CHECK_FALSE(resumes());
  what.options.resume = true;
  CHECK(resumes());
}

TEST_CASE("a_server_keeps_local_states_if_its_process_may_start_again") {
  actor_config config;
  caf::actor_system system{config};
  const auto mine = member_plans_of(base()).of({role::server, 0, {1}});
  CHECK(options_of_server(mine, {.system = system}).directory.empty());
  CHECK(options_of_server(mine, {.system = system, .may_start_again = true}).directory
        == "/tmp/checkpoints");
}

} // namespace play_test
