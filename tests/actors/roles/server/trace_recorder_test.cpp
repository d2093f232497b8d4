#include "actors/roles/server/trace_recorder.hpp"

#include "storage/push_history.hpp"
#include "tests/storage/temporary_directory.hpp"

#include "doctest/doctest.h"

#include <memory>
#include <optional>

namespace trace_recorder_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

const storage::trace_header header{1, {0}, {1}, 0, {role::server, 0, {5}}, {{0}}};

step_header step_of(std::uint32_t worker, std::uint64_t batch) {
  return {{worker}, {100 + worker}, {1}, {batch}, batch};
}

push_request push_of(std::uint32_t worker, std::uint64_t batch, std::uint64_t base_version) {
  push_request push;
  push.step = step_of(worker, batch);
  push.base_version = base_version;
  return push;
}

struct recording {
  storage::temporary_directory folder;
  std::optional<trace_recorder> recorder{std::in_place, record_options{folder.path()}, header};

  void apply(std::uint64_t version, const push_request& push) {
    const push_request* const only = &push;
    recorder->applied(1s, version, {&only, 1}, false);
  }
  std::vector<storage::trace_entry> records() {
    recorder->flush();
    const auto read = storage::read_trace_file(folder.path() / storage::trace_name(header));
    REQUIRE(read);
    return read->records;
  }
};

} // namespace

TEST_CASE("a_push_is_recorded_with_what_it_was_computed_from") {
  recording x;
  x.recorder->answered(step_of(2, 9), 3);
  x.apply(6, push_of(2, 9, 3));
  x.recorder->set_workers(2s, {});
  const auto all = x.records();
  REQUIRE(all.size() == 1);
  CHECK(all[0].event == storage::push_event::applied);
  CHECK(all[0].time_ns == 1'000'000'000);
  CHECK(all[0].version == 6);
  CHECK(all[0].base_version == 3);
  CHECK(all[0].batch == batch_id{9});
  CHECK(all[0].worker == worker_id{2});
  CHECK(all[0].incarnation == incarnation_id{102});
}

TEST_CASE("slots_of_a_clock_are_computed_from_the_version_before_it") {
  const auto first = push_of(0, 4, 77);
  const auto second = push_of(1, 5, 78);
  const push_request* const both[] = {&first, &second};
  auto sum = first;
  sum.others = {second.step};
  const push_request* const sum_of_both = &sum;
  recording x;
  SUBCASE("each push is there") { x.recorder->applied(1s, 3, both, true); }
  SUBCASE("their sum is") { x.recorder->applied(1s, 3, {&sum_of_both, 1}, true); }
  const auto all = x.records();
  REQUIRE(all.size() == 2);
  CHECK(all[0].base_version == 2);
  CHECK(all[0].slots == 2);
  CHECK(all[1].slot == 1);
  CHECK(all[1].batch == batch_id{5});
  CHECK(all[1].version == 3);
}

TEST_CASE("what_a_worker_had_read_when_it_left_is_recorded") {
  recording x;
  x.recorder->answered(step_of(0, 1), 10);
  x.recorder->answered(step_of(1, 2), 11);
  x.recorder->answered(step_of(1, 2), 12);
  x.recorder->set_workers(1s, {{{0}, {100}, 0, true}, {{1}, {999}, 0, true}});
  x.recorder->set_workers(2s, {{{0}, {100}, 0, true}});
  const auto all = x.records();
  REQUIRE(all.size() == 1);
  CHECK(all[0].event == storage::push_event::read);
  CHECK(all[0].batch == batch_id{2});
  CHECK(all[0].incarnation == incarnation_id{101});
  CHECK(all[0].base_version == 12);
}

TEST_CASE("a_repeated_push_tells_what_it_was_computed_from") {
  recording x;
  x.recorder->answered(step_of(0, 1), 10);
  x.recorder->repeated(1s, step_of(0, 1), 10);
  x.recorder->set_workers(1s, {});
  const auto all = x.records();
  REQUIRE(all.size() == 1);
  CHECK(all[0].event == storage::push_event::read);
  CHECK(all[0].base_version == 10);
}

TEST_CASE("who_cannot_write_complains_once") {
  int complaints = 0;
  trace_recorder recorder{{"/proc/no such directory",
                           [&](const std::string& why) {
                             CHECK(why.starts_with("the record of this run ends here: cannot "));
                             ++complaints;
                           }},
                          header};
  for (int i = 0; i < 3; ++i) {
    recorder.repeated(1s, step_of(0, 1), 10);
    recorder.flush();
  }
  CHECK(complaints == 1);
}

} // namespace trace_recorder_test
