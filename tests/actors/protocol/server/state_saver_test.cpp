#include "actors/protocol/server/state_saver.hpp"

#include "tests/actors/host_effect_lines.hpp"

#include "doctest/doctest.h"

#include <string>
#include <vector>

namespace troupe::state_saver_test {

namespace {

using lines = std::vector<std::string>;

job_spec job_of(durability_mode durability, consistency_mode mode, bool is_sparse = false) {
  job_spec job;
  job.replicas = 2;
  job.durability = durability;
  table_spec table;
  table.sync.mode = mode;
  if (is_sparse)
    table.kind = table_kind::sparse;
  job.tables.push_back(table);
  return job;
}

lines saved(state_saver& saver, std::uint64_t checkpoint, const result<checkpoint_part>& done,
            bool is_present = true) {
  return test::lines_of(
    [&](host_effects& effects) { saver.saved(checkpoint, done, is_present, effects); });
}

} // namespace

TEST_CASE("a checkpoint is due until it was cut, or could not be") {
  state_saver saver{true, true};
  CHECK_FALSE(saver.is_due(0));
  CHECK(saver.is_due(3));
  saver.cut(3);
  CHECK_FALSE(saver.is_due(3));
  CHECK(saver.is_due(4));
  const auto told = test::lines_of([&](host_effects& effects) { saver.is_late(4, effects); });
  CHECK(told == lines{"report"});
  CHECK_FALSE(saver.is_due(4));
  CHECK(saver.failed() == 4);
  CHECK(saver.why_failed() == "the clock of the cut had passed when the order came");
}

TEST_CASE("without checkpoints none is due") { CHECK_FALSE(state_saver(false, false).is_due(3)); }

TEST_CASE("a part is reported in its generation, a failure always") {
  state_saver saver{true, true};
  saver.cut(4);
  CHECK(saved(saver, 3, checkpoint_part{3, {0}, {}, 9}) == lines{"report"});
  CHECK(saver.part().version == 9);
  CHECK(saved(saver, 4, checkpoint_part{4, {0}, {}, 10}, false).empty());
  CHECK(saver.part().checkpoint == 3);
  CHECK(saved(saver, 4, failure{errc::io_failed, "disk full"}, false) == lines{"report"});
  CHECK(saver.failed() == 4);
  CHECK(saver.why_failed() == "disk full");
  saver.begin_generation();
  CHECK(saver.part().checkpoint == 0);
  CHECK(saver.failed() == 4);
}

TEST_CASE("a local state is kept once for each checkpoint, as often as parts are cut") {
  const auto job = job_of(durability_mode::log, consistency_mode::asp);
  state_saver saver{true, true};
  CHECK(saver.is_kept_due(job, 3));
  saver.keep(3);
  CHECK_FALSE(saver.is_kept_due(job, 3));
  saver.cut(4);
  CHECK_FALSE(saver.is_kept_due(job, 4));
  CHECK(saver.is_kept_due(job, 5));
}

TEST_CASE("states are kept where they outlive a process, or make copies smaller") {
  const auto memory = job_of(durability_mode::memory, consistency_mode::asp);
  const auto log = job_of(durability_mode::log, consistency_mode::asp);
  auto sparse = job_of(durability_mode::memory, consistency_mode::asp, true);
  const state_saver saver{true, true};
  CHECK_FALSE(saver.keeps_states(memory));
  CHECK(saver.keeps_states(log));
  CHECK(saver.writes_log(log));
  CHECK(saver.keeps_states(sparse));
  CHECK_FALSE(saver.writes_log(sparse));
  sparse.replicas = 1;
  CHECK_FALSE(saver.keeps_states(sparse));
  CHECK_FALSE(state_saver(true, false).keeps_states(log));
}

TEST_CASE("a save has a base where states are kept, and begins a log where there is one") {
  const state_saver saver{true, true};
  const auto save = [&](const job_spec& job) {
    return test::lines_of([&](host_effects& effects) {
      saver.save({1, save_purpose::checkpoint, 3}, {}, job, {0, {1}, {1}, false}, {}, effects);
    });
  };
  CHECK(save(job_of(durability_mode::memory, consistency_mode::asp)) == lines{"save checkpoint"});
  CHECK(save(job_of(durability_mode::memory, consistency_mode::asp, true))
        == lines{"save checkpoint base"});
  CHECK(save(job_of(durability_mode::log, consistency_mode::asp))
        == lines{"save checkpoint base log"});
  CHECK(save(job_of(durability_mode::log, consistency_mode::bsp))
        == lines{"save checkpoint base log beside the last one"});
}

} // namespace troupe::state_saver_test
