#include "base/system/directory_lock.hpp"

#include "tests/storage/temporary_directory.hpp"

#include "doctest/doctest.h"

#include <csignal>
#include <cstdint>
#include <fstream>
#include <optional>
#include <sys/wait.h>
#include <utility>

namespace troupe::storage::directory_lock_test {

TEST_CASE("a directory that is locked names itself and the pid of its owner") {
  const temporary_directory home;
  const auto first = directory_lock::acquire(home.path() / "a/b");
  REQUIRE(first);
  const auto second = directory_lock::acquire(home.path() / "a/b");
  REQUIRE(!second);
  CHECK(second.error().code == errc::in_use);
  CHECK(second.error().text
        == "another process uses the directory: " + (home.path() / "a/b").string() + ", pid "
             + std::to_string(::getpid()));
}

TEST_CASE("a lock moves with its owner and ends with it") {
  const temporary_directory home;
  {
    auto first = directory_lock::acquire(home.path());
    REQUIRE(first);
    const auto moved = *std::move(first);
    CHECK(!directory_lock::acquire(home.path()));
  }
  CHECK(directory_lock::acquire(home.path()));
}

TEST_CASE("each holder draws a mark that others can read") {
  const temporary_directory home;
  CHECK(!directory_mark(home.path()));
  std::optional<std::uint64_t> first;
  {
    const auto lock = directory_lock::acquire(home.path());
    REQUIRE(lock);
    first = directory_mark(home.path());
    REQUIRE(first);
    CHECK(*first != 0);
  }
  const auto again = directory_lock::acquire(home.path());
  REQUIRE(again);
  CHECK(directory_mark(home.path()) != first);
  std::ofstream{home.path() / "LOCK"} << "4711\n"; // Earlier versions wrote only the pid.
  CHECK(!directory_mark(home.path()));
  std::ofstream{home.path() / "LOCK"} << "4711 x\n";
  CHECK(!directory_mark(home.path()));
}

TEST_CASE("a process that is killed leaves no lock behind") {
  const temporary_directory home;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const auto child = ::fork();
  if (child == 0) {
    const auto lock = directory_lock::acquire(home.path());
    const char answer = lock ? 'y' : 'n';
    (void)!::write(ready[1], &answer, 1);
    while (true)
      ::pause();
  }
  char answer = 0;
  REQUIRE(::read(ready[0], &answer, 1) == 1);
  CHECK(answer == 'y');
  const auto refused = directory_lock::acquire(home.path());
  REQUIRE(!refused);
  CHECK(refused.error().text.find("pid " + std::to_string(child)) != std::string::npos);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  CHECK(directory_lock::acquire(home.path()));
}

TEST_CASE("a directory that cannot be made is io_failed") {
  const temporary_directory home;
  std::ofstream{home.path() / "file"} << "x";
  const auto refused = directory_lock::acquire(home.path() / "file/below");
  REQUIRE(!refused);
  CHECK(refused.error().code == errc::io_failed);
}

} // namespace troupe::storage::directory_lock_test
