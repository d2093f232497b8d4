#include "cli/record.hpp"

#include "doctest/doctest.h"

#include <string>

namespace troupe::record_test {

namespace {

storage::trace_entry record_at(std::uint64_t ms, std::uint64_t version, std::uint64_t base) {
  storage::trace_entry made;
  made.time_ns = ms * 1'000'000;
  made.version = version;
  made.base_version = base;
  made.batch = {version};
  made.worker = {static_cast<std::uint32_t>(version % 2)};
  return made;
}

storage::push_history sample_history() {
  storage::push_history all;
  all.job.name = "tiny";
  all.job.samples = 128;
  all.job.workers = 2;
  all.files = 2;
  all.size_bytes = 400;
  auto& one = all.chains.emplace_back();
  one.generation = {1};
  one.applied = {record_at(1000, 1, 0), record_at(1002, 2, 0), record_at(1502, 3, 0)};
  auto& two = all.chains.emplace_back();
  two.shard = {1};
  two.generation = {2};
  two.base_checkpoint = 4;
  two.applied = {record_at(1001, 7, 6)};
  two.read = {record_at(1001, 0, 6)};
  two.read[0].event = storage::push_event::read;
  return all;
}

} // namespace

TEST_CASE("the_summary_of_a_record") {
  CHECK(record_summary(sample_history())
        == "job 'tiny': 2 batches, 2 workers\n"
           "shard 0, generation 1: 3 pushes in 0.502 s\n"
           "shard 1, generation 2: 1 pushes in 0.000 s, from checkpoint 4\n"
           "shard 1: 1 of 2 batches are missing: the run, or its record, ended before them\n"
           "4 pushes of 2 workers (one that was started again counts twice)\n"
           "1 pushes of batches done twice, which only other shards applied\n"
           "400 bytes in 2 files, 100.0 a push\n"
           "staleness in versions: mean 0.75, median 0, 90 % 2, 99 % 2, max 2\n"
           "shard 0: longest pause 500.0 ms, at 0.002 s\n"
           "shard 1: longest pause 0.0 ms, at 0.000 s\n");
}

TEST_CASE("the_lines_of_a_record") {
  CHECK(record_lines(sample_history())
        == "seconds chain generation version slot worker batch clock base_version\n"
           "0.000000 0 1 1 0 1 1 0 0\n"
           "0.002000 0 1 2 0 0 2 0 0\n"
           "0.502000 0 1 3 0 1 3 0 0\n"
           "0.001000 1 2 7 0 1 7 0 6\n"
           "0.001000 1 2 read 0 0 0 0 6\n");
}

TEST_CASE("a_record_of_reads_alone_begins_with_the_first") {
  auto history = sample_history();
  history.chains.erase(history.chains.begin());
  history.chains[0].applied.clear();
  CHECK(record_lines(history)
        == "seconds chain generation version slot worker batch clock base_version\n"
           "0.000000 1 2 read 0 0 0 0 6\n");
}

} // namespace troupe::record_test
