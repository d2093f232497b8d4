#include "kernels/schedules/cost.hpp"

#include <algorithm>
#include <cassert>
#include <functional>
#include <limits>
#include <queue>
#include <span>
#include <utility>

namespace troupe::kernels {

namespace {

struct transfer {
  std::uint32_t step = 0;
  double remaining = 0; ///< Bytes.
  double rate = 0;
  std::span<const std::uint32_t> resources;
};

/// Assigns rates by progressive filling: all rates rise together. A full resource fixes the rates
/// of its transfers; the others go on.
class fair_rates {
public:
  explicit fair_rates(std::span<const double> capacities)
      : capacities_(capacities), left_(capacities.size()), users_(capacities.size()) {}

  void assign(std::vector<transfer>& all) {
    std::ranges::copy(capacities_, left_.begin());
    std::ranges::fill(users_, 0);
    open_.clear();
    for (auto& each : all) {
      open_.push_back(&each);
      for (const auto resource : each.resources)
        ++users_[resource];
    }
    while (!open_.empty())
      fix_the_lowest();
  }

private:
  double share(const transfer& x) const {
    double least = std::numeric_limits<double>::infinity();
    for (const auto resource : x.resources)
      least = std::min(least, left_[resource] / users_[resource]);
    return least;
  }

  void fix_the_lowest() {
    double lowest = std::numeric_limits<double>::infinity();
    for (const auto* const each : open_)
      lowest = std::min(lowest, share(*each));
    const auto is_full = [&](const transfer* x) {
      return share(*x) <= lowest * (1 + 1e-9); // Equal shares, except for rounding.
    };
    const auto middle = std::partition(open_.begin(), open_.end(), std::not_fn(is_full));
    for (auto at = middle; at != open_.end(); ++at) {
      (*at)->rate = lowest;
      for (const auto resource : (*at)->resources) {
        left_[resource] -= lowest;
        --users_[resource];
      }
    }
    open_.erase(middle, open_.end());
  }

  std::span<const double> capacities_;
  std::vector<double> left_;
  std::vector<std::uint32_t> users_;
  std::vector<transfer*> open_;
};

class simulation {
public:
  simulation(const schedule& plan, const routing& ways, double bytes)
      : plan_(plan), ways_(ways), chunk_bytes_(bytes / plan.chunks),
        places_(plan.devices + plan.staging), followers_(plan.steps.size()),
        missing_(plan.steps.size()), pairs_(places_ * places_), rates_(ways.resource_rates()) {
    cost_.steps.resize(plan.steps.size());
    cost_.link_bytes.resize(ways.directed_links());
    const auto before = dependencies(plan);
    for (std::uint32_t i = 0; i < before.size(); ++i) {
      missing_[i] = before[i].size();
      for (const auto j : before[i])
        followers_[j].push_back(i);
      if (before[i].empty())
        enqueue(i);
    }
  }

  schedule_cost run() {
    for (auto& each : pairs_)
      begin_next(each);
    while (!active_.empty() || !waiting_.empty())
      advance();
    add_loads();
    return std::move(cost_);
  }

private:
  struct pair_state { // Of a sender and a receiver.
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
    bool is_busy = false;
  };

  pair_state& pair_of(std::uint32_t step) {
    return pairs_[plan_.steps[step].from * places_ + plan_.steps[step].to];
  }

  void enqueue(std::uint32_t step) { pair_of(step).ready.push(step); }

  void begin_next(pair_state& pair) {
    if (pair.is_busy || pair.ready.empty())
      return;
    const auto i = pair.ready.top();
    pair.ready.pop();
    pair.is_busy = true;
    cost_.steps[i].begin = now_;
    const auto& step = plan_.steps[i];
    waiting_.emplace(now_ + ways_.latency_seconds(step.from, step.to), i);
  }

  void advance() {
    if (is_changed_)
      rates_.assign(active_);
    is_changed_ = false;
    double until =
      waiting_.empty() ? std::numeric_limits<double>::infinity() : waiting_.top().first;
    for (const auto& each : active_)
      until = std::min(until, now_ + each.remaining / each.rate);
    for (auto& each : active_)
      each.remaining -= each.rate * (until - now_);
    now_ = until;
    finish_transfers();
    while (!waiting_.empty() && waiting_.top().first <= now_ + tolerance()) {
      const auto& step = plan_.steps[waiting_.top().second];
      active_.push_back(
        {waiting_.top().second, chunk_bytes_, 0, ways_.resources(step.from, step.to)});
      waiting_.pop();
      is_changed_ = true;
    }
  }

  /// Seconds; times closer than this are equal up to rounding.
  double tolerance() const { return 1e-12 * now_; }

  void finish_transfers() {
    const auto is_done = [&](const transfer& x) {
      // The rest would take less time than the precision of `now_`.
      return x.remaining <= 1e-9 * chunk_bytes_ || x.remaining <= tolerance() * x.rate;
    };
    const auto done = std::ranges::partition(active_, std::not_fn(is_done));
    finished_.clear();
    for (const auto& each : done)
      finished_.push_back(each.step);
    active_.erase(done.begin(), done.end());
    is_changed_ = is_changed_ || !finished_.empty();
    for (const auto i : finished_) {
      cost_.steps[i].end = now_;
      cost_.seconds = now_;
      pair_of(i).is_busy = false;
      for (const auto next : followers_[i])
        if (--missing_[next] == 0)
          enqueue(next);
    }
    for (const auto i : finished_) {
      begin_next(pair_of(i));
      for (const auto next : followers_[i])
        begin_next(pair_of(next));
    }
  }

  void add_loads() {
    std::vector<double> loads(ways_.resource_rates().size());
    for (const auto& step : plan_.steps) {
      for (const auto link : ways_.links(step.from, step.to))
        cost_.link_bytes[link] += chunk_bytes_;
      for (const auto resource : ways_.resources(step.from, step.to))
        loads[resource] += chunk_bytes_;
    }
    for (std::uint32_t i = 0; i < loads.size(); ++i)
      if (const double seconds = loads[i] / ways_.resource_rates()[i];
          seconds > cost_.busiest_seconds) {
        cost_.busiest = i;
        cost_.busiest_bytes = loads[i];
        cost_.busiest_seconds = seconds;
      }
  }

  const schedule& plan_;
  const routing& ways_;
  double chunk_bytes_;
  std::size_t places_;
  std::vector<std::vector<std::uint32_t>> followers_;
  std::vector<std::size_t> missing_; ///< Number of unfinished dependencies.
  std::vector<pair_state> pairs_;
  fair_rates rates_;
  std::vector<transfer> active_;
  std::priority_queue<std::pair<double, std::uint32_t>,
                      std::vector<std::pair<double, std::uint32_t>>, std::greater<>>
    waiting_; ///< Transfers whose latency has not passed.
  std::vector<std::uint32_t> finished_;
  double now_ = 0;
  bool is_changed_ = false;
  schedule_cost cost_;
};

} // namespace

schedule_cost cost_of(const schedule& plan, const routing& ways, double bytes) {
  assert(plan.devices == ways.devices() && plan.staging <= ways.hosts());
  return simulation(plan, ways, bytes).run();
}

} // namespace troupe::kernels
