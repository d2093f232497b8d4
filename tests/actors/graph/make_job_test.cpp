#include "actors/graph/make_job.hpp"

#include "doctest/doctest.h"

#include <memory>
#include <string>
#include <vector>

namespace make_job_test {

using namespace troupe;

TEST_CASE("who_joins_is_told_which_of_its_options_do_not_count") {
  job_spec mine;
  mine.epochs = 10;
  mine.tables.resize(1);
  mine.tables.front().name = "w";
  mine.tables.front().shape = {4};
  auto theirs = mine;
  run_options options;
  options.given = {"--epochs", "--lr"};
  CHECK(overruled(options, mine, theirs).empty());
  theirs.epochs = 3;
  theirs.tables.front().sync = {consistency_mode::bsp, 0}; // This option was not given here.
  CHECK(overruled(options, mine, theirs)
        == "using the main host's --epochs 3; this host's value is ignored");
  options.given = {};
  CHECK(overruled(options, mine, theirs).empty());
  options.given = {"--epochs", "--sync"};
  CHECK(overruled(options, mine, theirs)
          .starts_with("using the main host's --epochs 3, --sync bsp; this"));
}

TEST_CASE("a_worker_with_other_data_is_told_that_the_data_differ") {
  run_options options;
  graph described;
  table_spec table;
  table.name = "w";
  table.shape = {4};
  described.servers({table});
  described.workers(100, trainer_factory{[] { return std::unique_ptr<trainer>{}; }});
  described.dataset_id("data 17");
  const auto theirs = make_job("tiny", described, options);
  CHECK(graph_difference(theirs, described, options).empty());
  auto other = described;
  other.dataset_id("data 18");
  CHECK(graph_difference(theirs, other, options)
        == "this worker's graph belongs to another data set: it is "
           "'data 17' there and 'data 18' here: the files, or the options that read them, differ");
  options.seed = 99;
  CHECK(graph_difference(theirs, described, options)
          .ends_with("another job: the seed is 1 there "
                     "and 99 here"));
}

TEST_CASE("remarks_of_a_graph_keep_their_order") {
  graph described;
  described.remark("one");
  described.remark("two");
  CHECK(described.remarks() == std::vector<std::string>{"one", "two"});
}

} // namespace make_job_test
