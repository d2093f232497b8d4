#include "actors/graph/options/compression.hpp"

#include "tests/actors/router_fixture.hpp"

#include "doctest/doctest.h"

#include <string>

namespace compression_test {

using namespace troupe;

namespace {

job_spec mixed_job() {
  auto job = test::routed_job();
  table_spec rows;
  rows.name = "rows";
  rows.kind = table_kind::sparse;
  rows.width = 4;
  job.tables.push_back(rows);
  return job;
}

std::string rejection_of(const run_options& options, const job_spec& job = mixed_job()) {
  const auto made = compression_of(options, job);
  return made ? "" : made.error().text;
}

} // namespace

TEST_CASE("a_table_is_compressed_as_is_said_of_it_or_else_of_all") {
  run_options options;
  CHECK(!*compression_of(options, mixed_job()));
  options.codec.pushes = {{"", {encoding::topk, 0.1}}, {"b", {encoding::int8, 0}}};
  const auto made = **compression_of(options, mixed_job());
  CHECK(made.pushes
        == std::vector<compression>{{encoding::topk, 0.1}, {encoding::int8, 0}, {}}); // Rows: f32.
  options.codec.pushes = {{"a", {}}};
  CHECK(!*compression_of(options, mixed_job()));
  options.codec.pulls = encoding::bf16;
  CHECK((*compression_of(options, mixed_job()))->sends() == only(encoding::bf16));
}

TEST_CASE("tables_that_cannot_be_compressed_are_refused_by_name") {
  run_options options;
  options.codec.pushes = {{"c", {encoding::fp16, 0}}};
  CHECK(rejection_of(options) == "--compress: the job has no table 'c'");
  options.codec.pushes = {{"rows", {encoding::fp16, 0}}};
  CHECK(rejection_of(options)
        == "--compress: table 'rows' is sparse, and its rows are sent as they are: only dense "
           "tables can be compressed");
  options.codec.pushes = {{"rows", {}}};
  CHECK(rejection_of(options).empty());
  auto sparse = mixed_job();
  sparse.tables.erase(sparse.tables.begin(), sparse.tables.begin() + 2);
  CHECK(rejection_of({}, sparse).empty());
  options.codec.pushes = {{"", {encoding::fp16, 0}}};
  CHECK(rejection_of(options).empty());
  CHECK(rejection_of(options, sparse)
        == "the job's tables are all sparse, and their rows are sent as they are: leave out "
           "--compress and --compress-pulls");
}

TEST_CASE("bsp_with_error_feedback_is_remarked_upon") {
  run_options options;
  auto job = mixed_job();
  options.codec.pushes = {{"", {encoding::onebit, 0}}};
  CHECK(remark_on_compression(options, job).empty());
  job.tables[0].sync.mode = consistency_mode::bsp;
  CHECK(remark_on_compression(options, job)
        == "--sync bsp with --compress onebit: what is sent depends on what a worker has not sent "
           "yet, so where batches are done again, runs may differ in bytes");
  options.codec.pushes = {{"", {encoding::int8, 0}}};
  CHECK(remark_on_compression(options, job).empty());
}

} // namespace compression_test
