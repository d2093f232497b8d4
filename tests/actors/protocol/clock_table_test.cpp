#include "actors/protocol/clock_table.hpp"

#include "doctest/doctest.h"

namespace troupe::clock_table_test {

namespace {

clock_entry known(std::uint32_t worker, std::uint64_t incarnation, std::uint64_t clock = 0) {
  return {{worker}, {incarnation}, clock, true};
}
clock_entry admitted(std::uint32_t worker, std::uint64_t incarnation) {
  return {{worker}, {incarnation}, 0, false};
}

TEST_CASE("a worker being admitted is promised a clock, fixed at first sight") {
  clock_table table;
  table.list({admitted(0, 10)}, 5);
  CHECK(table.entries() == std::vector{known(0, 10, 5)});
  table.list({admitted(0, 10)}, 9);
  CHECK(table.entries() == std::vector{known(0, 10, 5)});
}

TEST_CASE("an admitted worker moves to its start clock unless it was heard of") {
  clock_table table;
  table.list({admitted(0, 10), admitted(1, 11)}, 5);
  table.advance({1}, {11}, 6, 6);
  table.list({known(0, 10, 8), known(1, 11, 8)}, 9);
  CHECK(table.entries() == std::vector{known(0, 10, 8), known(1, 11, 6)});
}

TEST_CASE("a start clock below the promise does not lower the entry") {
  clock_table table;
  table.list({admitted(0, 10)}, 5);
  table.list({known(0, 10, 3)}, 5);
  CHECK(table.entries() == std::vector{known(0, 10, 5)});
}

TEST_CASE("a known worker that is new here is unheard until its first request") {
  clock_table table;
  table.list({known(0, 10, 7), known(1, 11, 7)}, 0);
  CHECK(table.entries() == std::vector{admitted(0, 10), admitted(1, 11)});
  CHECK_FALSE(table.min());
  CHECK(table.laggard(0) == admitted(0, 10));
  table.advance({0}, {10}, 4, 4);
  CHECK(table.entries() == std::vector{known(0, 10, 4), admitted(1, 11)});
  CHECK(table.min() == 4);
  CHECK(table.laggard(0) == admitted(1, 11));
}

TEST_CASE("an unheard worker that is admitted again gets a promise") {
  clock_table table;
  table.list({known(0, 10)}, 0);
  table.list({admitted(0, 10)}, 3);
  CHECK(table.entries() == std::vector{known(0, 10, 3)});
}

TEST_CASE("clocks never fall") {
  clock_table table;
  table.list({admitted(0, 10)}, 5);
  table.advance({0}, {10}, 2, 2);
  CHECK(table.min() == 5);
  table.advance({0}, {10}, 9, 9);
  table.advance({0}, {10}, 8, 8);
  CHECK(table.min() == 9);
}

TEST_CASE("the laggard is the slowest worker below the floor") {
  clock_table table;
  table.list({admitted(0, 10), admitted(1, 11), admitted(2, 12)}, 0);
  table.advance({0}, {10}, 4, 4);
  table.advance({1}, {11}, 2, 2);
  table.advance({2}, {12}, 3, 3);
  CHECK(table.laggard(5) == known(1, 11, 2));
  CHECK(table.laggard(3) == known(1, 11, 2));
  CHECK_FALSE(table.laggard(2));
}

TEST_CASE("a worker gone from the list leaves the table") {
  clock_table table;
  table.list({admitted(0, 10), admitted(1, 11)}, 0);
  table.list({known(1, 11)}, 0);
  CHECK(table.entries() == std::vector{known(1, 11)});
  CHECK(table.rejection_of({0}, {10})->code == errc::not_ready);
}

TEST_CASE("a predecessor is fenced, a stranger has to wait") {
  clock_table table;
  table.list({admitted(0, 10)}, 0);
  CHECK_FALSE(table.rejection_of({0}, {10}));
  CHECK(table.rejection_of({0}, {20})->code == errc::not_ready);
  CHECK(table.rejection_of({3}, {10})->code == errc::not_ready);
  table.list({admitted(0, 20)}, 0);
  CHECK(table.rejection_of({0}, {10})->code == errc::fenced);
  CHECK(table.rejection_of({0}, {30})->code == errc::not_ready);
}

TEST_CASE("a later start does not inherit the clock of its predecessor") {
  clock_table table;
  table.list({admitted(0, 10)}, 0);
  table.advance({0}, {10}, 50, 50);
  table.list({admitted(0, 20)}, 7);
  CHECK(table.entries() == std::vector{known(0, 20, 7)});
}

TEST_CASE("a worker that left is fenced only while a successor is listed") {
  clock_table table;
  table.list({admitted(0, 10)}, 0);
  table.list({}, 0);
  CHECK(table.rejection_of({0}, {10})->code == errc::not_ready);
  table.list({known(0, 10)}, 0);
  CHECK_FALSE(table.rejection_of({0}, {10}));
  table.list({known(0, 20)}, 0);
  CHECK(table.rejection_of({0}, {10})->code == errc::fenced);
}

TEST_CASE("only the last 1024 that left are remembered") {
  clock_table table;
  for (std::uint64_t start = 1; start <= 1026; ++start)
    table.list({admitted(0, start)}, 0);
  CHECK(table.rejection_of({0}, {1})->code == errc::not_ready);
  CHECK(table.rejection_of({0}, {2})->code == errc::fenced);
  CHECK(table.rejection_of({0}, {1025})->code == errc::fenced);
}

TEST_CASE("nobody waits for a worker that is listed as unbound, whatever it does, until it left") {
  clock_table table;
  table.list({known(0, 10), known(1, 11)}, 0);
  table.advance({0}, {10}, 3, 3);
  table.advance({1}, {11}, 8, 8);
  table.list({known(0, 10, unbound_clock), known(1, 11)}, 0);
  table.advance({0}, {10}, 4, 4);
  CHECK_FALSE(table.laggard(8));
  CHECK(table.min() == 8);
  table.list({known(0, 10, 9), known(1, 11)}, 0); // Clock 9 would break promises to readers.
  CHECK_FALSE(table.laggard(8));
  table.list({known(1, 11)}, 0);
  table.list({admitted(0, 10), known(1, 11)}, 6);
  CHECK(table.laggard(8) == known(0, 10, 6));
}

TEST_CASE("an unbound worker that is new here is not waited for") {
  clock_table table;
  table.list({known(0, 10, unbound_clock)}, 0);
  CHECK_FALSE(table.laggard(8));
}

} // namespace

} // namespace troupe::clock_table_test
