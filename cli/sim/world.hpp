// Is the base of simulated worlds: virtual time, chance, a network that fails, and a history's
// trace. Everything is a function of the seed.
#pragma once

#include "base/clock.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::sim {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

/// A property that does not hold; its text begins with the property's name.
struct violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void require(bool holds, const char* what) {
  if (!holds)
    throw violation(what);
}
inline void require(bool holds, const std::string& what) { require(holds, what.c_str()); }

/// Throws a violation for an assert that does not hold; cli/sim/asserts/cassert calls it.
[[noreturn]] void assert_failed(const char* what, std::string_view file, int line,
                                const char* function);

/// One count of a tally, and its least average over histories if the simulator tests enough.
template <class Tally>
struct minimum {
  const char* what;
  std::uint64_t Tally::*count;
  double each;
  bool (*happens_in)(std::size_t kind) = nullptr; ///< Null: in each kind of history.
};

class world {
public:
  using trace_function = std::function<void(const std::string&)>;

  /// Returns the hash of all events in their order: equal for equal seeds.
  std::uint64_t hash() const { return hash_; }

protected:
  /// Number of a process, as each world counts them.
  using place = std::uint32_t;

  /// `no_faults`: without faults.
  world(std::uint64_t seed, bool no_faults, trace_function trace)
      : random_(seed), trace_(std::move(trace)), no_faults_(no_faults) {}
  ~world() = default;
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  // -- chance --
  bool chance(double p) { return std::uniform_real_distribution<>(0, 1)(random_) < p; }
  std::uint64_t pick(std::uint64_t low, std::uint64_t high) {
    return std::uniform_int_distribution<std::uint64_t>(low, high)(random_);
  }
  milliseconds pick_ms(std::uint64_t low, std::uint64_t high) {
    return milliseconds{pick(low, high)};
  }
  /// Returns 0 in three of ten histories, else anything up to `max`, more often little than much.
  double intensity(double max);
  /// Returns the rate of a process's clock against the true time.
  double pick_rate() { return std::uniform_real_distribution<>(0.9, 1.1)(random_); }

  // -- time --
  void at(time_point when, std::function<void()> what);
  /// Runs the next event. Returns false if there is none.
  bool step();
  std::uint64_t events() const { return events_happened_; }

  // -- network --
  /// Sends a message, which may be lost, doubled, late, and overtaken by others.
  void post(place from, place to, std::function<void()> arrive);
  /// Sends a message on a link between busy processes: quick, and mostly in order. Only `share` of
  /// these messages meet the faults of others.
  void post_quickly(place from, place to, double share, std::function<void()> arrive);
  struct cut {
    time_point until{0};
    bool holds = false; ///< Messages come when it ends; else never.
  };
  /// Returns null if there is none now.
  const cut* cut_between(place from, place to) const;
  /// Cuts one direction, or by chance both.
  void make_cut(place from, place to, cut what);
  void end_cuts() { cut_.clear(); }
  std::uint64_t messages_lost() const { return messages_lost_; } ///< By chance, not by cuts.
  std::uint64_t messages_doubled() const { return messages_doubled_; }
  bool any_cut() const { return !cut_.empty(); }

  // -- trace --
  bool is_traced() const { return static_cast<bool>(trace_); }
  void note(const std::string& what) const;

  std::mt19937_64 random_;
  time_point now_{0};
  bool quiet_ = false; ///< The faults are over.

  double loss_ = 0.0;
  double repetition_ = 0.0;
  std::uint64_t delay_us_max_ = 1000;
  bool overtaking_ = false; ///< Messages between the same two places may overtake.

private:
  struct happening {
    time_point at{0};
    std::uint64_t order = 0;
    std::function<void()> happen;
    bool operator<(const happening& other) const {
      return std::pair{at, order} > std::pair{other.at, other.order};
    }
  };

  trace_function trace_;

protected:
  const bool no_faults_;

private:
  std::vector<happening> events_; ///< A heap.
  std::uint64_t order_ = 0, hash_ = 0, events_happened_ = 0;
  std::uint64_t messages_lost_ = 0, messages_doubled_ = 0;
  std::map<std::pair<place, place>, cut> cut_;
  /// Arrival of the last message, and of the last quick one.
  std::map<std::pair<place, place>, time_point> in_order_, on_link_;
};

} // namespace troupe::sim
