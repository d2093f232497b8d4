#include "actors/graph/nodes/path.hpp"

#include "actors/protocol/worker/stage.hpp"

#include "doctest/doctest.h"

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

namespace path_test {

using namespace troupe;
using maker = std::function<std::unique_ptr<stage_decider>()>;

namespace {

/// Makes the stage. Returns the error; empty: there is none.
std::string failure_of(const maker& make) {
  const auto made = own_stage("noise", {}, make);
  try {
    const auto stage = made.get<stage::of_program>()->make();
    return stage ? "" : "none";
  } catch (const std::exception& thrown) {
    return thrown.what();
  }
}

} // namespace

TEST_CASE("a maker of a stage that fails is named") {
  CHECK(failure_of([] { return std::make_unique<pass_through>(); }) == "");
  CHECK(failure_of([] { return nullptr; }) == "the maker of stage 'noise' made no stage");
  CHECK(failure_of([]() -> std::unique_ptr<stage_decider> { throw std::runtime_error{"no data"}; })
        == "stage 'noise': no data");
  CHECK_FALSE(own_stage("noise", {}, maker{}).get<stage::of_program>()->make);
}

} // namespace path_test
