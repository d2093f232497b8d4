#include "base/system/own_executable.hpp"

#include "tests/storage/temporary_directory.hpp"

#include "doctest/doctest.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace troupe::own_executable_test {

namespace {

/// Returns own_executable() of a process that was started by this name in this directory.
std::filesystem::path started_as(std::string name, const std::filesystem::path& directory) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(directory);
  auto* const own_name = std::exchange(program_invocation_name, name.data());
  auto found = own_executable();
  program_invocation_name = own_name;
  std::filesystem::current_path(before);
  return found;
}

} // namespace

TEST_CASE("the program is started again, not a file of its name in the working directory") {
  const storage::temporary_directory home;
  std::ofstream{home.path() / "program"} << "text";
  CHECK(started_as("program", home.path()) == "/proc/self/exe"); // PATH led to the program.
  CHECK(started_as("/no/such/file", home.path()) == "/proc/self/exe");
  CHECK(started_as(std::filesystem::read_symlink("/proc/self/exe"), home.path())
        == "/proc/self/exe");
  // A dynamic loader runs in this case, with the program as its argument.
  CHECK(started_as("./program", home.path()) == home.path() / "./program");
}

} // namespace troupe::own_executable_test
