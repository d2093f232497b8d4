#include "actors/protocol/coordinator/straggler_detector.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace troupe::straggler_detector_test {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using event_kind = straggler_event::kind;

constexpr worker_id slow_one{3};

/// A worker that does one step after the other.
struct fake_worker {
  milliseconds step{100};
  std::uint64_t samples = 32;
  milliseconds blocked{0}; ///< Wait for servers in each step, on top of `step`.
  /// Stops the worker at its next step; `waits`: because it waits for servers.
  bool frozen = false;
  bool waits = false;
  std::function<milliseconds(std::uint64_t)> extra; ///< Time added to the step of this number.

  std::string host;
  milliseconds left_for{-1}; ///< Time until the successor joins; negative: the worker is present.
  milliseconds next{0};
  worker_progress done;
};

/// Workers and their detector. Time moves by 10 ms; the detector is asked every 100 ms.
class fleet {
public:
  explicit fleet(std::uint32_t size, straggler_options options = {}) : detector(options) {
    for (std::uint32_t i = 0; i < size; ++i) {
      workers[{i}].host = "host" + std::to_string(i);
      join({i});
    }
  }

  fake_worker& operator[](worker_id id) { return workers[id]; }

  void join(worker_id id) {
    auto& worker = workers[id];
    worker.done = {};
    worker.next = now + worker.step + worker.blocked;
    detector.joined(id, worker.host, now, events);
  }

  void run(milliseconds span, bool ticks = true) {
    for (const auto end = now + span; now < end;) {
      now += 10ms;
      for (auto& [id, worker] : workers)
        move(id, worker);
      if (ticks && now % 100ms == 0ms)
        tick();
    }
  }

  void tick() {
    auto seen = events.size();
    detector.tick(now, events);
    for (; seen < events.size(); ++seen) {
      const auto one = events[seen];
      if (one.what != event_kind::measure)
        continue;
      INFO(text_of(one.what_happened));
      CHECK(detector.measure(*one.worker) == one.measure);
      if (one.measure == straggler_measure::evicted) {
        detector.left(*one.worker, now);
        workers[*one.worker].left_for = 1000ms;
        out_at.push_back(now);
      }
    }
  }

  straggler_measure measure(worker_id id) const { return detector.measure(id); }
  std::size_t count(event_kind what) const {
    return static_cast<std::size_t>(std::count_if(
      events.begin(), events.end(), [&](const auto& one) { return one.what == what; }));
  }
  std::size_t out() const {
    return static_cast<std::size_t>(
      std::count_if(workers.begin(), workers.end(), [&](const auto& entry) {
        return measure(entry.first) == straggler_measure::evicted;
      }));
  }
  /// Runs until the worker is out; returns the time that took, or -1 ms after an hour.
  milliseconds until_out(worker_id id) {
    const auto since = now;
    while (measure(id) != straggler_measure::evicted)
      if (run(100ms); now - since > 1h)
        return -1ms;
    return now - since;
  }
  milliseconds until_in(worker_id id) {
    const auto since = now;
    while (measure(id) == straggler_measure::evicted)
      if (run(100ms); now - since > 2h)
        return -1ms;
    return now - since;
  }

  straggler_detector detector;
  std::map<worker_id, fake_worker> workers;
  straggler_events events;
  std::vector<milliseconds> out_at;
  milliseconds now{0};

private:
  void move(worker_id id, fake_worker& worker) {
    if (worker.left_for >= 0ms) {
      if (worker.left_for -= 10ms; worker.left_for < 0ms)
        join(id);
      return;
    }
    if (measure(id) == straggler_measure::evicted) {
      worker.next = now + worker.step;
    } else if (worker.frozen) {
      worker.next = now + worker.step;
      if (worker.waits)
        worker.done.blocked += 10ms;
      if (now % 100ms == 0ms)
        detector.progress(id, worker.done, now);
    } else if (now >= worker.next) {
      ++worker.done.steps;
      worker.done.samples += worker.samples;
      worker.done.blocked += worker.blocked;
      worker.next = now + worker.step + worker.blocked;
      if (worker.extra)
        worker.next += worker.extra(worker.done.steps);
      detector.progress(id, worker.done, now);
    }
  }
};

/// Returns a fleet whose windows and warm-up are over.
fleet settled(std::uint32_t size, straggler_options options = {}) {
  fleet all(size, options);
  all.run(60s);
  CHECK(all.events.empty());
  return all;
}

std::vector<straggler_measure> duties_of(const fleet& all, worker_id id) {
  std::vector<straggler_measure> seen;
  for (const auto& one : all.events)
    if (one.what == event_kind::measure && one.worker == id)
      seen.push_back(one.measure);
  return seen;
}

const std::vector by_degrees{straggler_measure::warned, straggler_measure::rebalanced,
                             straggler_measure::demoted, straggler_measure::evicted};

} // namespace

// -- rule 1: measured quantities --

TEST_CASE("time that a worker was blocked by us is not held against it") {
  fleet all(10);
  all[slow_one].blocked = 900ms;
  all.run(5min);
  CHECK(all.events.empty());
}

TEST_CASE("a worker with more data in a step is not slow for that, one with less time is") {
  fleet all(10);
  all[{5}].samples *= 10;
  all[{5}].step *= 10;
  all[slow_one].samples /= 8; // The worker takes the others' time for an eighth of their data.
  const auto out_after = all.until_out(slow_one);
  CHECK(out_after > 0s);
  CHECK(out_after < 60s);
  all.run(5min);
  CHECK(duties_of(all, {5}).empty());
}

TEST_CASE("reports may be lost, come in heaps and be repeated") {
  straggler_detector detector{straggler_options{}};
  straggler_events events;
  for (std::uint32_t i = 0; i < 10; ++i)
    detector.joined({i}, "", 0s, events);
  for (milliseconds now = 100ms; now < 5min; now += 100ms) {
    const auto steps = static_cast<std::uint64_t>(now / 100ms);
    for (std::uint32_t i = 0; i < 10; ++i)
      if (i % 2 == 0 || steps % (5 * i) == 0)
        for (std::uint32_t times = 0; times < 2; ++times)
          detector.progress({i}, {steps, steps * 32, 0us}, now);
    detector.tick(now, events);
  }
  CHECK(events.empty());
}

TEST_CASE("numbers that went back begin a new count") {
  auto all = settled(10);
  all[slow_one].done = {};
  all[{4}].done.samples = 0;
  all.run(1min);
  CHECK(all.events.empty());
  all[{4}].frozen = true;
  all.run(12s);
  CHECK(all.count(event_kind::stalled) == 1);
}

// -- rule 2: slow workers --

TEST_CASE("slow is beyond twice the median, by 50 ms in a step, and beyond 6 deviations") {
  struct one_case {
    milliseconds others, slow;
    bool is_slow;
  };
  for (const auto& one : {one_case{100ms, 190ms, false},
                          {100ms, 210ms, true},
                          {20ms, 60ms, false},
                          {30ms, 90ms, true},
                          {1000ms, 2100ms, true}}) {
    fleet all(10);
    for (auto& [id, worker] : all.workers)
      worker.step = id == slow_one ? one.slow : one.others;
    all.run(2min);
    INFO(one.others.count(), " and ", one.slow.count());
    CHECK((all.measure(slow_one) == straggler_measure::evicted) == one.is_slow);
  }
  fleet uneven(10);
  for (std::uint32_t i = 0; i < 10; ++i)
    uneven[{i}].step = 100ms + 30ms * i; // m = 235 ms, d = 75 ms
  uneven[{9}].step = 650ms;              // 2.7 m, m + 5.4 d
  uneven.run(5min);
  CHECK(uneven.events.empty());
}

TEST_CASE("a window counts by its median: long pauses in between do not make a worker slow") {
  fleet all(10);
  all[slow_one].extra = [](std::uint64_t step) { return step % 10 == 0 ? 2000ms : 0ms; };
  all.run(5min);
  CHECK(all.events.empty());
}

TEST_CASE("two slow windows running are not enough") {
  auto all = settled(10);
  for (int times = 0; times < 20; ++times) {
    all[slow_one].step = 500ms;
    all.run(8s);
    all[slow_one].step = 100ms;
    all.run(8s);
  }
  CHECK(all.events.empty());
}

TEST_CASE("fewer than 5 workers are not compared") {
  for (const std::uint32_t size : {2u, 4u, 5u}) {
    fleet all(size);
    all[{1}].step = 1000ms;
    all.run(5min);
    CHECK((all.out_at.size() > 0) == (size == 5));
    CHECK(all.events.empty() == (size < 5));
  }
}

TEST_CASE("when too few are left to compare, what was found before is dropped") {
  straggler_options options;
  options.force_interval = 32s; // Windows end every 5 s.
  auto all = settled(5, options);
  all[slow_one].step = 1000ms;
  while (all.measure(slow_one) != straggler_measure::demoted)
    all.run(100ms);
  all.run(31500ms); // It would be out in the next round, before its window ends.
  all.detector.left({0}, all.now);
  all[{0}].left_for = 1h;
  all.run(2min);
  CHECK(all.out_at.empty());
}

TEST_CASE("a window ends by time with one step, or with the time of 5 where steps are long") {
  for (const auto step : {1s, 20s}) {
    fleet all(10);
    for (auto& [id, worker] : all.workers)
      worker.step = step;
    all[slow_one].step = 4 * step;
    const auto known = all.now;
    while (all.measure(slow_one) == straggler_measure::full)
      all.run(100ms);
    INFO(step.count());
    CHECK(all.now - known >= 15 * step); // Three windows.
    CHECK(all.now - known <= 25 * step);
  }
}

// -- rule 3: stalled workers --

TEST_CASE("a worker that does not train for 10 s is stalled, and evicted after 20 s") {
  auto all = settled(10);
  all[slow_one].frozen = true;
  all.run(10s);
  CHECK(all.events.empty());
  all.run(2s);
  REQUIRE(all.events.size() == 1);
  CHECK(all.events[0].what == event_kind::stalled);
  CHECK(all.events[0].worker == slow_one);
  all.run(8s);
  CHECK(all.events.size() == 1);
  all.run(2s);
  CHECK(duties_of(all, slow_one) == std::vector{straggler_measure::evicted});
}

TEST_CASE("a worker that waits for the cluster is not stalled") {
  auto all = settled(10);
  all[slow_one].frozen = true;
  all[slow_one].waits = true;
  all.run(10min);
  CHECK(all.events.empty());
}

TEST_CASE("silence is counted in steps where these are long, and of the worker's own size") {
  for (const std::uint64_t size : {1u, 4u}) {
    fleet all(10);
    for (auto& [id, worker] : all.workers)
      worker.step = 5s;
    all[slow_one].step *= size;
    all[slow_one].samples *= size;
    all.run(2min);
    all[slow_one].frozen = true;
    all.run(size * 20s - 1s); // The worker was in the middle of a step.
    CHECK(all.events.empty());
    all.run(size * 5s + 3s);
    CHECK(all.count(event_kind::stalled) == 1);
    all.run(size * 25s);
    CHECK(duties_of(all, slow_one) == std::vector{straggler_measure::evicted});
  }
}

TEST_CASE("the first step may take 2 min") {
  auto all = settled(10);
  all[{10}].frozen = true;
  all.join({10});
  all.run(119s);
  CHECK(all.events.empty());
  all.run(3s);
  CHECK(all.count(event_kind::stalled) == 1);
}

TEST_CASE("an event tells of a stalled worker that cannot be evicted and trains again") {
  straggler_options options;
  options.workers_min = 10;
  auto all = settled(10, options);
  all[slow_one].frozen = true;
  all.run(1min);
  CHECK(all.events.size() == 1);
  all[slow_one].frozen = false;
  all.run(2s);
  REQUIRE(all.events.size() == 2);
  CHECK(duties_of(all, slow_one) == std::vector{straggler_measure::full});
}

TEST_CASE("also in a small cluster one stalled worker is evicted, but not all") {
  auto all = settled(2);
  all[{1}].frozen = true;
  all.run(25s);
  CHECK(all.measure({1}) == straggler_measure::evicted);
  all[{0}].frozen = true;
  all.run(25s);
  CHECK(all.measure({0}) == straggler_measure::full);
}

// -- rule 4: the brake --

TEST_CASE("where all are slow at once nobody is blamed, also not the slowest") {
  auto all = settled(10);
  all.run(10min);
  for (auto& [id, worker] : all.workers)
    worker.step = id == slow_one ? 600ms : 200ms;
  all.run(2min);
  CHECK(all.count(event_kind::cluster_slow) == 1);
  CHECK(duties_of(all, slow_one).empty());
  for (auto& [id, worker] : all.workers)
    worker.step = id == slow_one ? 600ms : 100ms;
  all.run(20s);
  CHECK(all.count(event_kind::cluster_well) == 1);
  CHECK(duties_of(all, slow_one).empty()); // Three windows are counted from there.
  all.run(40s);
  CHECK(duties_of(all, slow_one) == by_degrees);
}

TEST_CASE("a cluster that stays slow is judged again") {
  auto all = settled(10);
  all.run(10min);
  for (auto& [id, worker] : all.workers)
    worker.step = id == slow_one ? 1000ms : 300ms;
  all.run(3min);
  CHECK(duties_of(all, slow_one).empty());
  all.run(15min);
  CHECK(all.count(event_kind::cluster_well) == 1);
  CHECK(all.out_at.size() > 0);
}

TEST_CASE("more than a fifth slow or stalled is the cluster's fault") {
  for (const bool frozen : {false, true})
    for (const std::uint32_t bad : {2u, 3u}) {
      auto all = settled(10);
      for (std::uint32_t i = 0; i < bad; ++i) {
        all[{i}].frozen = frozen;
        all[{i}].step = 500ms;
      }
      all.run(2min);
      CHECK(all.count(event_kind::cluster_slow) == (bad == 3));
      CHECK(all.out_at.empty() == (bad == 3));
    }
}

// -- rule 5: the budget --

TEST_CASE("at most a tenth is out at a time, and one in 10 s") {
  struct one_case {
    std::uint32_t size, bad;
    std::size_t out;
  };
  for (const auto& one : {one_case{9, 1, 1}, {10, 2, 1}, {29, 5, 2}, {30, 5, 3}}) {
    auto all = settled(one.size);
    for (std::uint32_t i = 0; i < one.bad; ++i)
      all[{i}].step = 700ms;
    std::size_t most = 0;
    for (int i = 0; i < 60; ++i) {
      all.run(1s);
      most = std::max(most, all.out());
    }
    CHECK(most == one.out);
    for (std::size_t i = 1; i < all.out_at.size(); ++i)
      CHECK(all.out_at[i] - all.out_at[i - 1] >= 10s);
  }
}

TEST_CASE("the worst one goes first, and who cannot be put out stays a backup") {
  auto all = settled(10);
  all[{2}].step = 600ms;
  all[{7}].step = 900ms;
  all.run(55s);
  CHECK(all.measure({7}) == straggler_measure::evicted);
  CHECK(all.measure({2}) == straggler_measure::demoted);
}

TEST_CASE("never fewer than workers_min work; where they do, others come back early") {
  straggler_options options;
  options.workers_min = 9;
  auto all = settled(10, options);
  all[slow_one].step = 700ms;
  REQUIRE(all.until_out(slow_one) > 0s);
  all.run(2s);
  CHECK(all.measure(slow_one) == straggler_measure::evicted);
  all.detector.left({0}, all.now);
  all[{0}].left_for = 1h;
  all.run(1s);
  CHECK(all.measure(slow_one) == straggler_measure::full);
  all.run(5min);
  CHECK(all.out_at.size() == 1);
}

// -- rule 6: force by degrees --

TEST_CASE("force grows by one degree at a time, 5 s apart at least, each on a new slow window") {
  for (const auto step : {120ms, 500ms, 1000ms}) { // 120 ms: a window is full after 2.4 s.
    fleet all(10);
    for (auto& [id, worker] : all.workers)
      worker.step = step / 5;
    all.run(1min);
    all[slow_one].step = step;
    std::vector<milliseconds> changed_at;
    for (auto known = all.events.size(); all.measure(slow_one) != straggler_measure::evicted;) {
      all.run(100ms);
      REQUIRE(all.now < 5min);
      if (all.events.size() > known)
        changed_at.push_back(all.now);
      known = all.events.size();
    }
    CHECK(duties_of(all, slow_one) == by_degrees);
    REQUIRE(changed_at.size() == 4);
    CHECK(all.now - 1min <= 60s);
    for (std::size_t i = 1; i < 4; ++i)
      CHECK(changed_at[i] - changed_at[i - 1] >= 5s);
  }
}

TEST_CASE("one slow window is one degree of force, however long the next takes") {
  straggler_options options;
  options.window_time = 20s;
  auto all = settled(10, options);
  all[slow_one].step = 1000ms; // A window is 20 s.
  all.run(90s);
  CHECK(duties_of(all, slow_one).size() == 2);
}

TEST_CASE("who was not slow for a minute has its full duty back") {
  auto all = settled(10);
  all[slow_one].step = 500ms;
  while (all.measure(slow_one) != straggler_measure::demoted)
    all.run(100ms);
  all[slow_one].step = 100ms;
  all.run(50s);
  CHECK(all.measure(slow_one) == straggler_measure::demoted);
  all.run(20s);
  CHECK(all.measure(slow_one) == straggler_measure::full);
}

TEST_CASE("a flapping worker keeps what it came to, and is out in the end") {
  auto all = settled(10);
  int bad_times = 0;
  while (all.out_at.empty() && bad_times < 10) {
    all[slow_one].step = 500ms;
    all.run(25s);
    all[slow_one].step = 100ms;
    all.run(15s);
    ++bad_times;
  }
  CHECK(bad_times > 1);
  CHECK(bad_times < 5);
  CHECK(duties_of(all, slow_one) == by_degrees);
}

// -- rule 7: evicted workers --

TEST_CASE("who is out stays out, whatever it reports and however often it comes") {
  auto all = settled(10);
  all[slow_one].step = 700ms;
  REQUIRE(all.until_out(slow_one) > 0s);
  straggler_events events;
  for (int i = 0; i < 10; ++i) {
    all.detector.progress(slow_one, {1000u + i, 100'000, 0us}, all.now);
    all.detector.left(slow_one, all.now);
    all.detector.joined(slow_one, "elsewhere", all.now, events);
    all.run(2s);
    CHECK(all.measure(slow_one) == straggler_measure::evicted);
  }
  CHECK(events.empty());
}

TEST_CASE("a new incarnation begins with full duty and is measured anew") {
  auto all = settled(10);
  all[slow_one].step = 500ms;
  while (all.measure(slow_one) != straggler_measure::demoted)
    all.run(100ms);
  all.join(slow_one);
  CHECK(all.measure(slow_one) == straggler_measure::full);
  all.events.clear();
  all.run(12s); // Less than three windows.
  CHECK(all.events.empty());
  all.run(35s);
  CHECK(duties_of(all, slow_one) == by_degrees);
}

// -- rule 8: return --

TEST_CASE("each eviction keeps a worker out 30 s longer, 5 min at most") {
  straggler_options options;
  options.host_evictions = 1000;
  auto all = settled(10, options);
  all[slow_one].step = 700ms;
  for (int times = 1; times <= 12; ++times) {
    REQUIRE(all.until_out(slow_one) > 0s);
    const auto out = all.until_in(slow_one);
    CHECK(out >= std::min(times * 30s, 300s));
    CHECK(out <= std::min(times * 30s, 300s) + 1s);
  }
}

TEST_CASE("ten healthy minutes halve the evictions that count") {
  straggler_options options;
  options.host_evictions = 1000;
  auto all = settled(10, options);
  const auto evict_times = [&](int times) {
    milliseconds out{0};
    all[slow_one].step = 700ms;
    for (; times > 0; --times) {
      REQUIRE(all.until_out(slow_one) > 0s);
      if (times == 1)
        all[slow_one].step = 100ms;
      out = all.until_in(slow_one);
    }
    return out;
  };
  const auto near = [](milliseconds out, milliseconds wanted) {
    return out >= wanted && out <= wanted + 1s;
  };
  CHECK(near(evict_times(4), 120s));
  all.run(9min);
  CHECK(near(evict_times(1), 150s));
  all.run(11min); // 5 evictions become 2.
  CHECK(near(evict_times(1), 90s));
  all.run(22min); // 3, 1, 0
  CHECK(near(evict_times(1), 30s));
}

TEST_CASE("a host is held back after 3 evictions within an hour, and not for ever") {
  auto all = settled(30);
  for (std::uint32_t i = 0; i < 4; ++i)
    all[{i}].host = "bad";
  for (std::uint32_t i = 0; i < 4; ++i)
    all.join({i});
  const auto evict = [&](worker_id id) {
    REQUIRE(all.until_out(id) >= 0s);
    all[id].step = 100ms;
  };
  all[{0}].step = 700ms;
  evict({0});
  CHECK(all.until_in({0}) <= 31s);
  all[{1}].step = all[{2}].step = 700ms;
  evict({1});
  evict({2});
  all.events.clear();
  all.join({3}); // It restarts on the bad host. Two are out; a third may be.
  REQUIRE(all.events.size() == 1);
  CHECK(all.events[0].measure == straggler_measure::evicted);
  all.join({0}); // The budget is used up, so the worker works.
  CHECK(all.measure({0}) == straggler_measure::full);
  all.run(29min);
  CHECK(all.out() == 3);
  all.run(2min);
  CHECK(all.out() == 0);
  all.join({3});
  CHECK(all.measure({3}) == straggler_measure::full);
}

TEST_CASE("evictions of a host more than an hour apart do not count together") {
  auto all = settled(10);
  for (int times = 0; times < 4; ++times) {
    all[slow_one].step = 700ms;
    REQUIRE(all.until_out(slow_one) > 0s);
    all[slow_one].step = 100ms;
    CHECK(all.until_in(slow_one) <= 61s);
    all.run(31min);
  }
}

// -- rule 9: the detector itself --

TEST_CASE("what the judge missed while it was late is not silence") {
  for (const auto step : {100ms, 5000ms}) {
    fleet all(10);
    for (auto& [id, worker] : all.workers)
      worker.step = step;
    all.run(2min);
    all.now += step == 100ms ? 15s : 70s; // No report arrives, and one worker's comes last.
    for (auto& [id, worker] : all.workers)
      if (id != slow_one)
        all.detector.progress(id, {++worker.done.steps, worker.done.samples += 32, 0us}, all.now);
    all[slow_one].next = all.now + step - 10ms;
    all.tick();
    all.run(1min);
    CHECK(all.events.empty());
  }
}

TEST_CASE("a late round uses no force, whatever was found before") {
  straggler_options options;
  options.force_interval = 32s; // Windows end every 5 s.
  auto all = settled(10, options);
  all[slow_one].step = 1000ms;
  while (all.measure(slow_one) == straggler_measure::full)
    all.run(100ms);
  all.run(31500ms);
  all.run(3s, false);
  all.tick();
  CHECK(all.measure(slow_one) == straggler_measure::warned);
  all.run(1s);
  CHECK(all.measure(slow_one) == straggler_measure::rebalanced);
}

TEST_CASE("windows that a late round ends are no suspicion") {
  auto all = settled(10);
  all[slow_one].step = 500ms;
  for (int times = 0; times < 60; ++times) { // A round every 2.1 s.
    all.run(2100ms, false);
    all.tick();
  }
  CHECK(all.events.empty());
  all.run(45s);
  CHECK(duties_of(all, slow_one) == by_degrees);
}

TEST_CASE("reports that come in a heap, before or after a late round, are not measured") {
  for (const bool before : {true, false}) {
    auto all = settled(10);
    for (int times = 0; times < 20; ++times) {
      all.now += 4s;
      if (!before)
        all.tick();
      for (auto& [id, worker] : all.workers) {
        worker.next = all.now + worker.step;
        if (id == slow_one) // It paused: its times equal the others' and are not too short.
          continue;
        for (int step = 0; step < 40; ++step)
          all.detector.progress(id, {++worker.done.steps, worker.done.samples += 32, 0us}, all.now);
      }
      if (before)
        all.tick();
      all.run(3200ms);
    }
    CHECK(all.events.empty());
  }
}

TEST_CASE("a judge that was late is more patient for a while") {
  auto all = settled(10);
  for (int times = 0; times < 4; ++times) {
    all.run(2100ms, false);
    all.tick();
  }
  all[slow_one].frozen = true;
  all.run(29s);
  CHECK(all.events.empty());
  all.run(6s);
  CHECK(all.count(event_kind::stalled) == 1);
}

// -- all rules together --

TEST_CASE("a reason says who, what follows, and the numbers") {
  auto all = settled(10);
  all[slow_one].step = 500ms;
  all.run(1min);
  REQUIRE(all.events.size() >= 4);
  CHECK(text_of(all.events[0].what_happened)
        == "worker 3 is slow, it is watched; 500 ms for 32 samples, the median of 10 workers is "
           "100 ms, the limit 200 ms");
  CHECK(text_of(all.events[3].what_happened)
        == "worker 3 evicted for 30 s: it stayed slow; 500 ms for 32 samples, the median of 10 "
           "workers is 100 ms, the limit 200 ms");
}

TEST_CASE("calls for a worker that did not join do nothing") {
  straggler_detector detector{straggler_options{}};
  straggler_events events;
  detector.left({7}, 1s);
  detector.progress({7}, {1, 1, 0us}, 1s);
  for (milliseconds now = 1s; now < 5min; now += 1s)
    detector.tick(now, events);
  CHECK(events.empty());
  CHECK(detector.measure({7}) == straggler_measure::full);
}

TEST_CASE("options that cannot be meant are refused") {
  CHECK(validate(straggler_options{}));
  const std::vector<std::function<void(straggler_options&)>> wrong = {
    [](auto& x) { x.window_steps = 0; },
    [](auto& x) { x.window_time = 0ms; },
    [](auto& x) { x.slow_windows = 0; },
    [](auto& x) { x.slow_ratio = 0.9; },
    [](auto& x) { x.slow_deviations = -1; },
    [](auto& x) { x.reporting_min = 2; },
    [](auto& x) { x.silence = 0ms; },
    [](auto& x) { x.first_step = 1s; },
    [](auto& x) { x.silence_steps = 0.5; },
    [](auto& x) { x.stalled_ratio = 0.5; },
    [](auto& x) { x.window_time_steps = -1; },
    [](auto& x) { x.brake_rise = 1.0; },
    [](auto& x) { x.long_run = 0ms; },
    [](auto& x) { x.brake_share = 1.1; },
    [](auto& x) { x.out_share = -0.1; },
    [](auto& x) { x.probation = -1ms; },
    [](auto& x) { x.probation_max = 1s; },
    [](auto& x) { x.healthy_time = 0ms; },
    [](auto& x) { x.host_evictions = 0; },
    [](auto& x) { x.round = 0ms; },
    [](auto& x) { x.late_ratio = 0.5; },
    [](auto& x) { x.late_memory = 0ms; },
    [](auto& x) { x.out_share = std::nan(""); },
  };
  for (const auto& spoil : wrong) {
    straggler_options options;
    spoil(options);
    const auto outcome = validate(options);
    REQUIRE_FALSE(outcome);
    CHECK(outcome.error().code == errc::invalid_argument);
  }
}

} // namespace troupe::straggler_detector_test
