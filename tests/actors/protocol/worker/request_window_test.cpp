#include "actors/protocol/worker/request_window.hpp"

#include "serialization/payload.hpp"

#include "doctest/doctest.h"

#include <string>
#include <utility>
#include <vector>

namespace troupe::request_window_test {

using namespace std::chrono_literals;
using lines = std::vector<std::string>;

constexpr std::uint64_t floats = 25; // 100 bytes.

request push_of(std::uint64_t count = floats) {
  request what;
  what.push = push_request{};
  what.push->pieces.push_back({{{0}, 0, count}, nullptr});
  return what;
}

request pull_of(bool latest = false) {
  request what;
  what.pull = pull_request{};
  what.pull->ranges.push_back({{0}, 0, floats});
  what.pull->latest = latest;
  return what;
}

/// A window of `window_bytes` with a timeout of one second. Events return their effects as lines.
struct fixture {
  explicit fixture(std::uint64_t window_bytes = 1000, std::uint64_t memory_bytes = 10'000)
      : memory(std::make_shared<push_quota>(memory_bytes)),
        window(request_window_options{window_bytes, 1s}, memory) {}

  template <class Event>
  lines decide(Event event) {
    window_effects effects;
    event(effects);
    lines all;
    for (const auto& effect : effects)
      all.push_back(std::visit([](const auto& x) { return text(x); }, effect));
    return all;
  }
  lines add(std::uint64_t number, request what) {
    return decide([&](auto& effects) { window.add(number, std::move(what), now, effects); });
  }
  lines open() {
    return decide([&](auto& effects) { window.opened(now, effects); });
  }
  lines flush() {
    return decide([&](auto& effects) { window.flush(effects); });
  }
  lines expire() {
    return decide([&](auto& effects) { window.expire(now, effects); });
  }
  lines lose() {
    return decide([&](auto& effects) { window.lost({errc::peer_lost, "gone"}, effects); });
  }
  /// Answers an open request.
  lines answer(std::uint64_t number) {
    return decide([&](auto& effects) { CHECK(window.answered(number, now, effects)); });
  }
  bool drops_answer(std::uint64_t number) {
    window_effects effects;
    return !window.answered(number, now, effects) && effects.empty();
  }

  static std::string text(const connect_effect&) { return "connect"; }
  static std::string text(const flush_soon_effect&) { return "flush soon"; }
  static std::string text(const send_requests_effect& x) {
    std::string all = "send";
    for (const auto& each : x.requests.items)
      all += " " + std::to_string(each.number);
    return all;
  }
  static std::string text(const end_request_effect& x) {
    return "end " + std::to_string(x.number) + " " + to_string(x.why.code);
  }

  std::shared_ptr<push_quota> memory;
  request_window window;
  time_point now{1s};
};

TEST_CASE("the first request connects, and all leave in their order once the link is open") {
  fixture f;
  CHECK(f.add(1, push_of()) == lines{"connect"});
  CHECK(f.add(2, pull_of()).empty());
  f.now += 30ms;
  CHECK(f.open() == lines{"flush soon"});
  CHECK(f.memory->waited() == 60ms);
  CHECK(f.add(3, push_of()).empty()); // It shares the frame.
  CHECK(f.flush() == lines{"send 1 2 3"});
  CHECK(f.flush().empty());
  CHECK(f.add(4, push_of()) == lines{"flush soon"});
}

TEST_CASE("a request waits for room in the window, and later ones wait behind it") {
  fixture f{250};
  f.add(1, push_of());
  f.open();
  CHECK(f.add(2, push_of()).empty());
  CHECK(f.add(3, push_of(floats * 2)).empty()); // 400 bytes would be on the way.
  CHECK(f.add(4, push_of(1)).empty());
  CHECK(f.flush() == lines{"send 1 2"});
  CHECK(f.answer(1).empty());
  CHECK(f.answer(2) == lines{"flush soon"});
  CHECK(f.flush() == lines{"send 3 4"});
}

TEST_CASE("one request alone may be larger than the window") {
  fixture f{50};
  f.add(1, push_of());
  f.open();
  f.add(2, push_of());
  CHECK(f.flush() == lines{"send 1"});
  f.answer(1);
  CHECK(f.flush() == lines{"send 2"});
}

TEST_CASE("no limit holds a request back if another one may wait for it at the server") {
  const auto limits_with = [](consistency_mode mode) {
    job_spec job;
    job.tables = {{.name = "w", .shape = {floats}, .sync = {mode}}};
    return limits_of(job, {.window_bytes = 150, .memory_bytes = 150});
  };
  const auto bsp = limits_with(consistency_mode::bsp);
  fixture clocks{bsp.window_bytes, bsp.memory_bytes};
  clocks.add(1, push_of()); // A slot of a clock.
  clocks.open();
  CHECK(clocks.add(2, push_of()).empty()); // Another slot of it.
  CHECK(clocks.flush() == lines{"send 1 2"});
  const auto ssp = limits_with(consistency_mode::ssp);
  fixture bounded{ssp.window_bytes, ssp.memory_bytes};
  bounded.add(1, pull_of());
  bounded.open();
  bounded.add(2, pull_of());
  CHECK(bounded.flush() == lines{"send 1 2"});
  CHECK(bounded.add(3, push_of()).empty());
  CHECK(bounded.add(4, push_of()) == lines{"end 4 overloaded"}); // No push waits for another.
  const auto asp = limits_with(consistency_mode::asp);
  CHECK(asp.window_bytes == 150);
  CHECK(asp.memory_bytes == 150);
}

TEST_CASE("a pull of the latest values overtakes requests that wait, in a frame of its own") {
  fixture f{150};
  f.add(1, push_of());
  f.open();
  f.add(2, push_of());
  f.add(3, pull_of(true));
  CHECK(f.flush() == lines{"send 3", "send 1"});
}

TEST_CASE("a frame leaves when it has 16 requests or 64 KiB") {
  fixture f{std::uint64_t{1} << 30, std::uint64_t{1} << 30};
  f.add(1, pull_of());
  f.open();
  for (std::uint64_t number = 2; number < 16; ++number)
    CHECK(f.add(number, pull_of()).empty());
  CHECK(f.add(16, pull_of()) == lines{"send 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16"});
  CHECK(f.add(17, pull_of()).empty()); // The flush is still due.
  CHECK(f.add(18, push_of(together_bytes_max / 4 + 1)) == lines{"send 17", "send 18"});
  CHECK(f.flush().empty());
}

TEST_CASE("a push beyond the memory of the process is refused, until other pushes end") {
  fixture f{1000, 250};
  CHECK(f.add(1, push_of()) == lines{"connect"});
  CHECK(f.add(2, push_of()).empty());
  CHECK(f.add(3, push_of()) == lines{"end 3 overloaded"});
  CHECK(f.add(4, pull_of()).empty()); // A pull takes no memory.
  CHECK(f.open() == lines{"flush soon"});
  CHECK(f.flush() == lines{"send 1"}); // Its copy takes memory, too, so that push 2 has to wait.
  CHECK(f.answer(1) == lines{"flush soon"});
  CHECK(f.flush() == lines{"send 2 4"});
  f.answer(2);
  CHECK(f.memory->take(250)); // All memory was given back.
}

TEST_CASE("memory that another link gives back is noticed with the next request") {
  fixture f{1000, 250};
  f.add(1, pull_of());
  f.open();
  REQUIRE(f.memory->take(100)); // A push of another link.
  CHECK(f.add(2, push_of()).empty());
  f.memory->give_back(100);
  f.add(3, pull_of());
  CHECK(f.flush() == lines{"send 1 2 3"});
}

TEST_CASE("a lost link ends all requests, and the next one connects again") {
  fixture f{150};
  f.add(1, push_of());
  f.open();
  f.flush();
  f.add(2, push_of());
  CHECK(f.lose() == lines{"end 1 peer_lost", "end 2 peer_lost"});
  CHECK(f.window.is_empty());
  CHECK(f.drops_answer(1));
  CHECK(f.flush().empty());
  CHECK(f.add(3, push_of()) == lines{"connect"});
  f.open();
  CHECK(f.flush() == lines{"send 3"});
}

TEST_CASE(
  "requests that miss their deadline end, and those on the way make room for others first") {
  fixture f{150};
  f.add(1, push_of());
  f.open();
  f.add(2, push_of());
  f.flush();
  f.now += 999ms;
  CHECK(f.expire().empty());
  f.now += 1ms;
  CHECK(f.expire() == lines{"end 1 timed_out", "flush soon"});
  CHECK(f.flush() == lines{"send 2"}); // Its time begins anew.
  CHECK(f.drops_answer(1));
  f.now += 1s;
  CHECK(f.expire() == lines{"end 2 timed_out"});
  CHECK(f.window.is_empty());
}

TEST_CASE("requests that could not leave in time end as well") {
  fixture f;
  f.add(1, push_of());
  f.now += 1s;
  CHECK(f.expire() == lines{"end 1 timed_out"}); // The link never opened.
  CHECK(f.open().empty());
}

TEST_CASE("a deadline has the time for the payloads of all open requests") {
  fixture f{std::uint64_t{1} << 30, std::uint64_t{1} << 30};
  f.add(1, push_of(payload_bytes_per_second_min / 4));
  f.open();
  f.flush();
  f.now += 1999ms;
  CHECK(f.expire().empty());
  f.now += 1ms;
  CHECK(f.expire() == lines{"end 1 timed_out"});
}

} // namespace troupe::request_window_test
