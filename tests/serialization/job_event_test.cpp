#include "serialization/job_event.hpp"

#include "doctest/doctest.h"

#include <set>
#include <string>

namespace troupe::job_event_test {

TEST_CASE("each kind has a name of its own, by which it is found") {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < event_kinds; ++i) {
    const auto kind = static_cast<event_kind>(i);
    CHECK(names.insert(name_of(kind)).second);
    CHECK(event_kind_of(name_of(kind)) == kind);
  }
  CHECK_FALSE(event_kind_of("worker_promoted"));
  CHECK_FALSE(event_kind_of(""));
}

TEST_CASE("a sentence has the event's fields") {
  CHECK(text_of(note_of("read 3 rows")) == "read 3 rows");
  CHECK(text_of({event_kind::checkpoint_failed,
                 {{"checkpoint", std::uint64_t{12}}, {"reason", "the disk is full"}}})
        == "checkpoint 12 failed: the disk is full");
  CHECK(text_of({event_kind::progress, {}}).empty());
}

TEST_CASE("counts have their noun, and durations their unit") {
  const auto lost = [](std::uint64_t batches) {
    return text_of({event_kind::worker_lost,
                    {{"member", "worker 1"}, {"reason", "evicted"}, {"batches", batches}}});
  };
  CHECK(lost(1) == "worker 1 lost (evicted): 1 batch reassigned");
  CHECK(lost(0) == "worker 1 lost (evicted): 0 batches reassigned");
  const auto healthy = [](double seconds) {
    return text_of({event_kind::worker_healthy, {{"member", "worker 1"}, {"seconds", seconds}}});
  };
  CHECK(healthy(0.25) == "worker 1 healthy again: not slow for 250 ms");
  CHECK(healthy(61.4) == "worker 1 healthy again: not slow for 61 s");
}

TEST_CASE("a part in brackets needs its fields, and a field that is missing is a question mark") {
  job_event out{event_kind::worker_evicted,
                {{"member", "worker 1"}, {"seconds", 30.0}, {"reason", "slow"}}};
  CHECK(text_of(out) == "worker 1 evicted for 30 s: it stayed slow; ?");
  out.fields.push_back({"figures", "9 ms"});
  out.fields.push_back({"host", "b"});
  CHECK(text_of(out) == "worker 1 evicted for 30 s, with its host b: it stayed slow; 9 ms");
}

TEST_CASE("fields are found by name and type") {
  const job_event what{event_kind::server_placed,
                       {{"member", "server 1"}, {"shards", std::uint64_t{4}}}};
  CHECK(what.text("member") == "server 1");
  CHECK(what.number("shards") == 4);
  CHECK(what.number("member") == 0);
  CHECK(what.text("shards").empty());
  CHECK(what.find("reason") == nullptr);
}

} // namespace troupe::job_event_test
