#include "base/near_name.hpp"

#include "base/command_line.hpp"

#include "doctest/doctest.h"

#include <string>
#include <vector>

namespace troupe::test::near_name_test {

TEST_CASE("the nearest name is found, if one is near") {
  const std::vector<std::string> names{"--epochs", "--lr", "--workers", "--work-dir"};
  CHECK(near_name("--epoch", names) == "--epochs");
  CHECK(near_name("--eopchs", names) == "--epochs");
  CHECK(near_name("--worker", names) == "--workers");
  CHECK(near_name("--wo", names) == "--workers"); // It begins so, as does --work-dir.
  CHECK(near_name("--lrr", names) == "--lr");
  CHECK(near_name("--lxx", names).empty());
  CHECK(near_name("--unlike", names).empty());
  CHECK(near_name("", names).empty());
  CHECK(near_name("--epoch", {}).empty());
  CHECK(near_name("--epochs" + std::string(60, 's'), names).empty());
}

/// Returns what is wrong with these words for a program with a group of options; empty if nothing.
std::string problem_with(std::vector<std::string> words) {
  CLI::App app{"A program.", "app"};
  int epochs = 0, hidden = 0;
  app.add_option_group("Training")->add_option("--epochs", epochs);
  app.add_option("--child", hidden)->group("");
  std::ranges::reverse(words); // CLI11 takes them from the back.
  try {
    app.parse(words);
    return "";
  } catch (const CLI::ParseError& problem) {
    return problem_text(app, problem);
  }
}

TEST_CASE("a command line that cannot be parsed is explained in the order of its words") {
  CHECK(problem_with({"--epochs", "2"}).empty());
  CHECK(problem_with({"--epoch", "2"}) == "no option '--epoch'; did you mean '--epochs'?");
  CHECK(problem_with({"--epoch=2"}) == "no option '--epoch'; did you mean '--epochs'?");
  CHECK(problem_with({"--chil", "2"}) == "no option '--chil'"); // Internal options are not named.
  CHECK(problem_with({"--epochs", "2", "3", "4"}) == "unexpected argument '3'");
  CHECK(problem_with({"--epochs", "2", "--epochs=2"}) == "--epochs is given 2 times: give it once");
  CHECK(problem_with({"-\x1b[31m"}) == "no option '-\\x1b[31m'");
  CHECK(problem_with({"--epochs", "many"}).find("many") != std::string::npos);
}

} // namespace troupe::test::near_name_test
