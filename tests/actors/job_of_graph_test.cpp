#include "actors/graph/job_of_graph.hpp"

#include "doctest/doctest.h"

namespace job_of_graph_test {

using namespace troupe;

TEST_CASE("who_joins_is_told_which_of_its_options_do_not_count") {
  job_spec mine;
  mine.passes = 10;
  mine.tables.resize(1);
  mine.tables.front().name = "w";
  mine.tables.front().shape = {4};
  auto theirs = mine;
  run_options options;
  options.given = {"--epochs", "--lr"};
  CHECK(overruled(options, mine, theirs).empty());
  theirs.passes = 3;
  theirs.tables.front().sync = {consistency_mode::bsp, 0}; // Not given here.
  CHECK(overruled(options, mine, theirs)
        == "the job has --epochs 3, as its main host says: what this host says is not used");
  options.given = {};
  CHECK(overruled(options, mine, theirs).empty());
  options.given = {"--epochs", "--sync"};
  CHECK(overruled(options, mine, theirs).starts_with("the job has --epochs 3, --sync bsp, as"));
}

} // namespace job_of_graph_test
