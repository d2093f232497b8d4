#include "actors/graph/report/run_result.hpp"

#include "actors/graph/report/run_console.hpp"
#include "storage/tensor_file.hpp"
#include "tests/actors/tiny_training.hpp"
#include "tests/storage/temporary_directory.hpp"

#include "doctest/doctest.h"

#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace run_result_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;
using storage::temporary_directory;

namespace {

job_spec job_of_tables() {
  job_spec job;
  job.tables = {table_of("w", 3), table_of("bias", 1)};
  job.batch_samples = 1;
  job.samples = 10;
  return job;
}

} // namespace

TEST_CASE("parameters_are_exported_under_the_names_of_their_tables") {
  const temporary_directory folder;
  const auto file = folder.path() / "p.npz";
  REQUIRE(export_parameters(file, job_of_tables(), {{1, 2, 3}, {4}}));
  const auto read = storage::read_tensors(file);
  REQUIRE(read);
  REQUIRE(read->size() == 2);
  CHECK((*read)[0].name == "w");
  CHECK((*read)[0].values == std::vector<float>{1, 2, 3});
  CHECK((*read)[1].name == "bias");
  CHECK((*read)[1].shape == std::vector<std::uint64_t>{1});
}

TEST_CASE("a_report_is_written_or_says_why_not") {
  const temporary_directory folder;
  const run_statistics statistics{job_of_tables()};
  std::vector<std::string> said;
  run_console console{"test", [&](log_level, const std::string& line) { said.push_back(line); }};
  run_options options;
  const auto leave = [&](const std::filesystem::path& file) {
    options.report_file = file.string();
    return leave_report(options, {"test", "--workers", "2"}, statistics, console);
  };
  const auto file = folder.path() / "report.json";
  REQUIRE(leave(file));
  std::stringstream text;
  text << std::ifstream{file}.rdbuf();
  CHECK(text.str() == statistics.to_json("test --workers 2") + "\n");
  const auto nowhere = folder.path() / "missing" / "report.json";
  const auto why = "cannot write " + nowhere.string() + ": No such file or directory";
  CHECK(leave(nowhere).error() == failure{errc::io_failed, why});
  CHECK(said == std::vector{why});
  CHECK_FALSE(leave("/dev/full"));
}

TEST_CASE("a_run_that_was_stopped_says_how_it_goes_on") {
  run_options options;
  options.checkpoint_directory = "some/where";
  CHECK(text_of_stop(0, true, options, false) == "stopped; no checkpoint was written");
  CHECK(text_of_stop(3, true, options, false)
        == "stopped; continue with --resume --checkpoint some/where");
  CHECK(text_of_stop(3, false, options, false)
        == "stopped; the last checkpoint was not written, so work after checkpoint 3 is lost; "
           "continue with --resume --checkpoint some/where");
  CHECK(text_of_stop(0, false, options, false) == "stopped; no checkpoint was written");
  options.export_file = "p.npz";
  CHECK(text_of_stop(0, true, options, false)
        == "stopped; no checkpoint was written; p.npz was not written: only a finished run exports "
           "parameters");
  CHECK(text_of_stop(0, true, options, true) == "stopped; no checkpoint was written");
}

TEST_CASE("the_summary_tells_accuracy_and_recoveries_where_there_are_any") {
  run_statistics run{job_of_tables()};
  CHECK(summary(run).empty());
  run.evaluated(1, {.loss = 0.5, .accuracy = 0.75}, 1s);
  run.process_died({role::worker, 0, {1}}, 1s, 1s);
  CHECK(summary(run)
        == "test accuracy 0.7500 after 1 of 1 epochs\n0 of 1 lost processes recovered\n");
}

TEST_CASE("the_summary_has_the_measures_and_no_accuracy_that_there_is_not") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(text_of({.loss = 0.5, .measures = {{"rmse", 0.93841}}}) == "rmse 0.9384");
  CHECK(text_of({.accuracy = 0.5, .measures = {{"perplexity", 841.2}, {"most", 2e9}}})
        == "accuracy 0.5000, perplexity 841.2000, most 2e+09");
  CHECK(text_of({.loss = 0.5}) == "loss 0.5000");
  CHECK(text_of({.measures = {{"rmse", nan}}}) == "rmse nan");
}

} // namespace run_result_test
