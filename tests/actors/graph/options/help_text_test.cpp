#include "actors/graph/program.hpp"

#include "CLI/CLI.hpp"
#include "doctest/doctest.h"

#include <sstream>
#include <string>

namespace help_text_test {

using namespace troupe;

TEST_CASE("--help has a title for each group of options, and fits 100 columns") {
  program some{"some", "Does something."};
  some.command_line().add_option("--own", "An option of its own");
  const auto help = some.command_line().help();
  for (const auto* title : {"\nOptions:\n", "\nTraining:\n", "\nCluster:\n", "\nFiles:\n"})
    CHECK(help.find(title) != std::string::npos);
  CHECK(help.find("--child") == std::string::npos);
  CHECK(help.find("-h,--help") == help.rfind("-h,--help")); // It is listed once only.
  CHECK(help.find("\n\n\n") == std::string::npos);
  std::istringstream lines{help};
  for (std::string line; std::getline(lines, line);)
    CHECK_MESSAGE(line.size() <= 100, line);
  // A description is cut into lines; the later lines begin in the column of the first.
  CHECK(help.find(";\n" + std::string(30, ' ') + "allreduce") != std::string::npos);
}

} // namespace help_text_test
