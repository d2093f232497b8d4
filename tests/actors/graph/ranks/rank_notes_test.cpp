#include "actors/graph/ranks/rank_notes.hpp"

#include "doctest/doctest.h"

#include <memory>
#include <string>
#include <vector>

namespace rank_notes_test {

using namespace troupe;
using notes = std::vector<program_note>;

TEST_CASE("a reader gets the notes of the newest process") {
  const auto shared = std::make_unique<rank_notes>();
  CHECK(shared->read().empty());
  const notes first{{"privacy.clipped", 3}, {"privacy: begins", 1, true}};
  shared->write(first);
  CHECK(shared->read() == first);
  const notes later{{"privacy.clipped", 5}, {"privacy: begins", 1, true}, {"privacy.other", 1}};
  shared->write(later);
  CHECK(shared->read() == later);
  shared->clear();
  CHECK(shared->read().empty());
  shared->write({{"learners.steps", 2}});
  CHECK(shared->read() == notes{{"learners.steps", 2}});
}

TEST_CASE("as many notes fit as a process has, with names of any allowed length") {
  const auto shared = std::make_unique<rank_notes>();
  program_notes process;
  for (int i = 0; i < 100; ++i) {
    process.count("learners", std::to_string(i) + std::string(1000, 'x'), 7);
    process.log("learners", std::to_string(i) + std::string(1000, 'y'));
  }
  const auto all = process.all();
  CHECK(all.size() > 60);
  CHECK(all.front().name.size() > 190);
  shared->write(all);
  CHECK(shared->read() == all);
}

} // namespace rank_notes_test
