// Random fleets in virtual time before the judge of stragglers: steps with log-normal jitter and
// pauses, workers that are slow in every way of the rules, a slow server, a judge that oversleeps.
// Nobody healthy is put out, the budget holds at every moment, and real stragglers are out in time.
#include "actors/cluster/straggler_judge.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace troupe {
namespace {

using namespace std::chrono_literals;

time_point after(double seconds) {
  return std::chrono::duration_cast<time_point>(std::chrono::duration<double>(seconds));
}
double seconds(time_point span) { return std::chrono::duration<double>(span).count(); }

/// How one worker differs from a healthy one.
struct habit {
  double slowness = 1.0;
  time_point from = 0s;
  time_point on_off = 0s; ///< Slow and not slow for so long in turn; 0: always slow.
  double data = 1.0;      ///< Samples of its steps, and time for them.
  double blocked = 0.0;   ///< By us, s a step in the mean, from `from` on.
};

struct world_options {
  std::uint32_t workers = 10;
  double step = 0.5;    ///< Median, s.
  double jitter = 0.25; ///< Of the logarithm of a step's time.
  double pauses = 2e-4; ///< Share of steps with one of 2 to 8 s.
  time_point length = 30min;
  bool judge_sleeps = false; ///< For 3 to 15 s, each 2 min or so.
  straggler_options judge;
};

struct tally {
  double worker_hours = 0.0;
  std::uint64_t steps = 0;
  int healthy_out = 0;
  int stragglers_out = 0;
  int forced = 0; ///< Verdicts by which a healthy worker lost some duty.
  int stuck = 0;
  int cluster_slow = 0;
  int sleeps = 0;
  int over_budget = 0; ///< Moments with too many out, too few at work, evictions too near.
  std::size_t out_max = 0;
  double out_after_max = 0.0; ///< s from the onset to the first eviction of a straggler.
  int never_out = 0;          ///< Stragglers.

  void add(const tally& other) {
    worker_hours += other.worker_hours;
    steps += other.steps;
    healthy_out += other.healthy_out;
    stragglers_out += other.stragglers_out;
    forced += other.forced;
    stuck += other.stuck;
    cluster_slow += other.cluster_slow;
    sleeps += other.sleeps;
    over_budget += other.over_budget;
    out_max = std::max(out_max, other.out_max);
    out_after_max = std::max(out_after_max, other.out_after_max);
    never_out += other.never_out;
  }
};

class world {
public:
  world(world_options options, std::uint64_t seed)
      : options_(options), random_(seed), judge_(options.judge), members_(options.workers) {
    for (auto& one : members_)
      one.speed = std::exp(0.05 * normal_(random_)); // No two machines are equal.
  }

  habit& operator[](std::uint32_t worker) { return members_[worker].habit; }

  tally run() {
    for (std::uint32_t i = 0; i < options_.workers; ++i)
      join(i, 0s);
    auto round = 1000ms + after(uniform(0.0, 0.1));
    time_point sleeps_at = options_.judge_sleeps ? after(uniform(60, 180)) : options_.length;
    while (round < options_.length) {
      work_until(round);
      if (round >= sleeps_at) {
        wake(round);
        sleeps_at = round + after(uniform(60, 180));
        round += after(uniform(3, 15)); // What comes meanwhile is handled then.
        asleep_ = true;
        ++tally_.sleeps;
        continue;
      }
      if (asleep_)
        wake(round);
      else
        tick(round);
      round += 1000ms + after(uniform(0.0, 0.02));
    }
    tally_.worker_hours = options_.workers * seconds(options_.length) / 3600.0;
    for (const auto& one : members_)
      tally_.never_out += is_straggler(one) && !one.was_out ? 1 : 0;
    return tally_;
  }

private:
  struct member {
    troupe::habit habit;
    double speed = 1.0;
    bool working = false;
    std::uint32_t life = 0; ///< Events of former ones are dropped.
    worker_progress done;
    double wait = 0.0; ///< Rest of the time for which it is blocked.
    bool computing = false;
    bool was_out = false;
  };
  struct event {
    time_point at;
    std::uint32_t worker;
    std::uint32_t life;
    bool joins;
    bool operator>(const event& other) const {
      return std::pair{at, worker} > std::pair{other.at, other.worker};
    }
  };
  struct late_report {
    std::uint32_t worker;
    worker_progress done;
  };

  static bool is_straggler(const member& one) { return one.habit.slowness > 1.0; }
  double uniform(double low, double high) {
    return std::uniform_real_distribution<>(low, high)(random_);
  }

  void join(std::uint32_t i, time_point now) {
    judge_.joined({i}, "host" + std::to_string(i / 2), now, verdicts_);
    members_[i].done = {};
    if (judge_.duty({i}) != worker_duty::out)
      begin(i, now);
  }

  void begin(std::uint32_t i, time_point now) {
    auto& one = members_[i];
    one.working = true;
    one.computing = false;
    one.wait = 0.0;
    events_.push({now + after(uniform(0.0, 5.0)), i, ++one.life, false});
  }

  void work_until(time_point end) {
    while (!events_.empty() && events_.top().at < end) {
      const auto next = events_.top();
      events_.pop();
      if (next.joins)
        join(next.worker, next.at);
      else if (next.life == members_[next.worker].life)
        step(next.worker, next.at);
    }
  }

  /// Ends what it was doing, and begins the next: to wait, then to compute.
  void step(std::uint32_t i, time_point now) {
    auto& one = members_[i];
    const auto& how = one.habit;
    if (std::exchange(one.computing, false)) {
      ++tally_.steps;
      ++one.done.steps;
      one.done.samples += static_cast<std::uint64_t>(std::lround(64 * how.data));
      report(i, now);
      if (how.blocked > 0.0 && now >= how.from)
        one.wait = -how.blocked * std::log(uniform(1e-9, 1.0));
    }
    double time = 0.0;
    if (one.wait > 0.0) {
      time = std::min(one.wait, 1.0);
      one.wait -= time;
      one.done.blocked += std::chrono::microseconds(std::llround(time * 1e6));
      report(i, now); // Its wait counts a little early, by a second at most.
    } else {
      const bool slow =
        now >= how.from && (how.on_off == 0s || (now - how.from) / how.on_off % 2 == 0);
      time = options_.step * one.speed * how.data * (slow ? how.slowness : 1.0)
             * std::exp(options_.jitter * normal_(random_));
      if (uniform(0.0, 1.0) < options_.pauses)
        time += uniform(2.0, 8.0);
      one.computing = true;
    }
    events_.push({now + after(time), i, one.life, false});
  }

  void report(std::uint32_t i, time_point now) {
    if (asleep_)
      backlog_.push_back({i, members_[i].done});
    else
      judge_.progress({i}, members_[i].done, now);
  }

  /// The judge's mailbox: its own round is somewhere among the reports.
  void wake(time_point now) {
    asleep_ = false;
    const auto turn =
      static_cast<std::size_t>(uniform(0.0, static_cast<double>(backlog_.size()) + 0.999));
    for (std::size_t i = 0; i <= backlog_.size(); ++i) {
      if (i == turn)
        tick(now);
      if (i < backlog_.size() && members_[backlog_[i].worker].working)
        judge_.progress({backlog_[i].worker}, backlog_[i].done, now);
    }
    backlog_.clear();
  }

  void tick(time_point now) {
    judge_.tick(now, verdicts_);
    for (const auto& one : verdicts_)
      obey(one, now);
    verdicts_.clear();
    const auto cap = std::max<std::size_t>(1, options_.workers / 10);
    if (out_.size() > cap || options_.workers - out_.size() < options_.judge.workers_min)
      ++tally_.over_budget;
    tally_.out_max = std::max(tally_.out_max, out_.size());
  }

  void obey(const straggler_verdict& verdict, time_point now) {
    using kind = straggler_verdict::kind;
    tally_.stuck += verdict.what == kind::stuck ? 1 : 0;
    tally_.cluster_slow += verdict.what == kind::cluster_slow ? 1 : 0;
    if (verdict.what != kind::duty)
      return;
    const auto i = verdict.worker->value;
    auto& one = members_[i];
    if (!is_straggler(one) && verdict.duty != worker_duty::full)
      ++tally_.forced;
    if (verdict.duty == worker_duty::full && out_.erase(i) == 1 && !one.working && one.life > 0)
      begin(i, now);
    if (verdict.duty != worker_duty::out)
      return;
    out_.insert(i);
    if (!one.working) // Held back at its host's door.
      return;
    ++(is_straggler(one) ? tally_.stragglers_out : tally_.healthy_out);
    if (evicted_at_ > 0s && now - evicted_at_ < 10s)
      ++tally_.over_budget;
    evicted_at_ = now;
    if (is_straggler(one) && !std::exchange(one.was_out, true))
      tally_.out_after_max = std::max(tally_.out_after_max, seconds(now - one.habit.from));
    one.working = false;
    ++one.life;
    judge_.left({i}, now);
    events_.push({now + after(uniform(1.0, 5.0)), i, 0, true});
  }

  world_options options_;
  std::mt19937_64 random_;
  std::normal_distribution<> normal_;
  straggler_judge judge_;
  straggler_verdicts verdicts_;
  std::vector<member> members_;
  std::priority_queue<event, std::vector<event>, std::greater<>> events_;
  std::set<std::uint32_t> out_;
  std::vector<late_report> backlog_;
  bool asleep_ = false;
  time_point evicted_at_{0};
  tally tally_;
};

#ifdef TROUPE_SANITIZED // Ten times slower.
constexpr std::uint64_t seeds = 2;
#else
constexpr std::uint64_t seeds = 20;
#endif

/// `prepare(options, random)` chooses a fleet, `spoil(world, options, random)` what is wrong in it.
template <class Prepare, class Spoil>
tally run_seeds(Prepare prepare, Spoil spoil) {
  tally all;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    std::mt19937_64 random(seed * 7919);
    world_options options;
    prepare(options, random);
    world one(options, random());
    spoil(one, options, random);
    const auto counted = one.run();
    INFO("seed ", seed);
    CHECK(counted.healthy_out == 0);
    CHECK(counted.over_budget == 0);
    all.add(counted);
  }
  MESSAGE(seeds, " seeds, ", std::llround(all.worker_hours), " worker-hours, ", all.steps,
          " steps; evicted: ", all.healthy_out, " healthy, ", all.stragglers_out,
          " stragglers, at most ", all.out_max, " out at a time, ", all.over_budget,
          " times over the budget; force on healthy: ", all.forced, ", stuck: ", all.stuck,
          ", cluster slow: ", all.cluster_slow, ", judge asleep: ", all.sleeps);
  return all;
}

std::uint32_t pick(std::mt19937_64& random, std::uint32_t low, std::uint32_t high) {
  return std::uniform_int_distribution<std::uint32_t>(low, high)(random);
}

void any_fleet(world_options& options, std::mt19937_64& random) {
  options.workers = pick(random, 10, 40);
  options.step = std::vector{0.2, 0.5, 1.0}[pick(random, 0, 2)];
  options.jitter = std::uniform_real_distribution<>(0.05, 0.25)(random);
}

const auto nothing = [](auto&...) {};

/// One for each ten workers, beginning at different times.
auto stragglers(double slowness, time_point on_off = 0s) {
  return [=](world& one, const world_options& options, std::mt19937_64& random) {
    for (std::uint32_t i = 0; i < options.workers / 10; ++i)
      one[10 * i] = {.slowness = slowness,
                     .from = std::chrono::seconds(pick(random, 120, 600)),
                     .on_off = on_off};
  };
}

} // namespace

TEST_CASE("a healthy fleet loses nobody, whatever its size, steps and jitter") {
  const auto all = run_seeds(
    [](world_options& options, std::mt19937_64& random) {
      options.workers = pick(random, 5, 60);
      options.step = std::vector{0.5, 1.0, 3.0, 10.0, 30.0}[pick(random, 0, 4)];
      options.jitter = std::uniform_real_distribution<>(0.05, 0.4)(random);
      options.pauses = options.step / 300; // One each 5 min.
      options.length = 4h;
    },
    nothing);
  CHECK(all.worker_hours > 50 * static_cast<double>(seeds));
}

TEST_CASE("a straggler of 5 times the others is out within 60 s") {
  const auto all = run_seeds(
    [](world_options& options, std::mt19937_64& random) {
      any_fleet(options, random);
      options.pauses = 0.0;
    },
    stragglers(5.0));
  MESSAGE("the slowest case took ", all.out_after_max, " s");
  CHECK(all.stragglers_out > static_cast<int>(seeds));
  CHECK(all.never_out == 0);
  CHECK(all.out_after_max <= 60.0);
}

TEST_CASE("one of 3 times is out as well, one of 2 times, at the limit, or not") {
  for (const auto slowness : {2.0, 3.0}) {
    const auto all = run_seeds(any_fleet, stragglers(slowness));
    if (slowness > 2.0)
      CHECK(all.never_out == 0);
  }
}

TEST_CASE("who is slow each other 30 s is out in the end") {
  const auto all = run_seeds(any_fleet, stragglers(5.0, 30s));
  MESSAGE("the slowest case took ", all.out_after_max, " s");
  CHECK(all.never_out == 0);
}

TEST_CASE("half of the workers slow: nobody is out") {
  const auto all = run_seeds(any_fleet, [](world& one, const world_options& options, auto&) {
    for (std::uint32_t i = 0; i < options.workers; i += 2)
      one[i] = {.slowness = 5.0, .from = 10min};
  });
  CHECK(all.stragglers_out == 0);
  CHECK(all.cluster_slow > 0);
}

TEST_CASE("all slow at once: nobody is out") {
  const auto all = run_seeds(any_fleet, [](world& one, const world_options& options, auto&) {
    for (std::uint32_t i = 0; i < options.workers; ++i)
      one[i] = {.slowness = 5.0, .from = 10min};
  });
  CHECK(all.stragglers_out == 0);
  CHECK(all.cluster_slow >= static_cast<int>(seeds));
}

TEST_CASE("a slow server blocks everyone, and some more than others: nobody is out") {
  const auto all =
    run_seeds(any_fleet, [](world& one, const world_options& options, std::mt19937_64& random) {
      for (std::uint32_t i = 0; i < options.workers; ++i)
        one[i] = {.from = 10min, .blocked = pick(random, 0, 7) == 0 ? 8.0 : 0.5};
    });
  CHECK(all.forced == 0);
}

TEST_CASE("a judge that oversleeps blames nobody for it, and still finds a straggler") {
  const auto all = run_seeds(
    [](world_options& options, std::mt19937_64& random) {
      any_fleet(options, random);
      options.judge_sleeps = true;
    },
    stragglers(5.0));
  CHECK(all.forced == 0);
  CHECK(all.never_out == 0);
  CHECK(all.sleeps > 8 * static_cast<int>(seeds));
}

TEST_CASE("twice the data in a step, in twice the time, is not slow") {
  const auto all = run_seeds(any_fleet, [](world& one, const world_options&, auto&) {
    one[1].data = 2.0;
    one[2].data = 6.0;
  });
  CHECK(all.forced == 0);
}

TEST_CASE("two slow of four: no verdict") {
  const auto all = run_seeds(
    [](world_options& options, std::mt19937_64& random) {
      any_fleet(options, random);
      options.workers = 4;
    },
    [](world& one, const world_options&, auto&) {
      one[0] = {.slowness = 5.0, .from = 5min};
      one[1] = {.slowness = 5.0, .from = 15min};
    });
  CHECK(all.stragglers_out == 0);
  CHECK(all.cluster_slow == 0);
}

} // namespace troupe
