#include "base/notes.hpp"

#include "doctest/doctest.h"

#include <string>
#include <vector>

namespace notes_test {

using namespace troupe;

TEST_CASE("counts of a name add up, and a line is logged and counted") {
  std::vector<std::string> lines;
  program_notes all{[&](log_level, const std::string& line) { lines.push_back(line); }};
  const node_notes privacy{&all, "privacy"}, learners{&all, "learners"};
  privacy.count("clipped");
  privacy.count("clipped", 4);
  learners.count("clipped");
  learners.log("a\nb");
  learners.log("a\nb");
  CHECK(all.all()
        == std::vector<program_note>{{"privacy.clipped", 5, false},
                                     {"learners.clipped", 1, false},
                                     {"learners: a\\x0ab", 2, true}});
  CHECK(lines == std::vector<std::string>{"learners: a\nb", "learners: a\nb"});
}

TEST_CASE("notes beyond the limit are counted together") {
  program_notes all;
  const node_notes some{&all, "some"};
  for (std::size_t i = 0; i < 2 * program_counts_max; ++i)
    some.log("line " + std::to_string(i)); // Lines take no room from counts.
  for (std::size_t i = 0; i < 2 * program_counts_max; ++i)
    some.count("count" + std::to_string(i), 7);
  some.count("count0", 7);
  const auto notes = all.all();
  REQUIRE(notes.size() == 2 * program_counts_max + 1);
  CHECK(notes.size() <= program_notes_max);
  CHECK(notes[program_counts_max]
        == program_note{"notes that are not listed", 2 * program_counts_max, false});
  CHECK(notes[program_counts_max + 1] == program_note{"some.count0", 14, false});
}

TEST_CASE("a long note fits into a message") {
  program_notes all;
  std::string wide;
  for (int i = 0; i < 1000; ++i)
    wide += "\U0001f40e";
  all.log("some", wide);
  CHECK(all.all().front().name.size() <= program_note_bytes_max);
}

TEST_CASE("notes without a receiver are dropped") {
  const node_notes none;
  none.count("clipped");
  none.log("a line");
}

} // namespace notes_test
