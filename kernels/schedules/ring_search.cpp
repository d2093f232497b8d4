#include "kernels/schedules/ring_search.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

namespace troupe::kernels {

namespace {

using rates = std::vector<std::vector<double>>; // Symmetric; 0: no link.
using order = std::vector<std::uint32_t>;

constexpr double rounding = 1 - 1e-9; // Rates that differ by less are equal.

bool is_connected(const rates& graph, double at_least) {
  order reached{0};
  std::vector<bool> seen(graph.size());
  seen[0] = true;
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (std::uint32_t next = 0; next < graph.size(); ++next)
      if (!seen[next] && graph[reached[i]][next] >= at_least) {
        seen[next] = true;
        reached.push_back(next);
      }
  return reached.size() == graph.size();
}

/// Searches depth-first for Hamiltonian cycles over links of at least one rate, fast links first.
class cycle_search {
public:
  /// `found` returns whether to stop. `budget` counts down with every step of the search.
  cycle_search(const rates& graph, double at_least, long& budget,
               std::function<bool(const order&)> found)
      : graph_(graph), at_least_(at_least), budget_(budget), found_(std::move(found)),
        used_(graph.size()) {}

  void run() {
    if (!is_connected(graph_, at_least_))
      return;
    path_ = {0};
    used_[0] = true;
    extend();
  }

private:
  bool extend() { // Returns whether to stop.
    if (--budget_ < 0)
      return true;
    const auto at = path_.back();
    if (path_.size() == graph_.size())
      return graph_[at][0] >= at_least_ && found_(path_);
    order choices;
    for (std::uint32_t next = 0; next < graph_.size(); ++next)
      if (!used_[next] && graph_[at][next] >= at_least_)
        choices.push_back(next);
    std::ranges::stable_sort(choices, std::greater<>{},
                             [&](auto next) { return graph_[at][next]; });
    for (const auto next : choices) {
      path_.push_back(next);
      used_[next] = true;
      if (extend())
        return true;
      path_.pop_back();
      used_[next] = false;
    }
    return false;
  }

  const rates& graph_;
  double at_least_;
  long& budget_;
  std::function<bool(const order&)> found_;
  std::vector<bool> used_;
  order path_;
};

double rate_of(const rates& graph, const order& ring) {
  double least = graph[ring.back()][ring.front()];
  for (std::size_t i = 1; i < ring.size(); ++i)
    least = std::min(least, graph[ring[i - 1]][ring[i]]);
  return least;
}

/// Returns a ring of the highest rate for which the search finds one. Levels are searched by
/// halving: a ring at one rate is a ring at all lower rates too.
std::optional<order> widest(const rates& graph, long budget_each) {
  std::set<double, std::greater<>> all;
  for (const auto& row : graph)
    all.insert(row.begin(), row.end());
  all.erase(0);
  const std::vector<double> levels(all.begin(), all.end());
  std::optional<order> best;
  for (std::size_t from = 0, to = levels.size(); from < to;) {
    const auto middle = (from + to) / 2;
    long budget = budget_each;
    bool is_found = false;
    cycle_search(graph, levels[middle] * rounding, budget, [&](const order& found) {
      best = found;
      is_found = true;
      return true;
    }).run();
    if (is_found)
      to = middle;
    else
      from = middle + 1;
  }
  return best;
}

rates without(rates graph, const order& ring, double rate) {
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const auto a = ring[i], b = ring[(i + 1) % ring.size()];
    const double left = graph[a][b] - rate;
    graph[a][b] = graph[b][a] = left > rate * 1e-9 ? left : 0;
  }
  return graph;
}

/// Returns a bound for two rings together: each takes two links of every device.
double most_of_two(const rates& graph) {
  double most = std::numeric_limits<double>::infinity();
  double fastest = 0;
  for (const auto& row : graph) {
    most = std::min(most, std::accumulate(row.begin(), row.end(), 0.0) / 2);
    fastest = std::max(fastest, *std::ranges::max_element(row));
  }
  return std::min(most, 2 * fastest);
}

/// Returns the two numbers up to 8 that waste least when shares are in proportion to the rates.
std::pair<std::uint32_t, std::uint32_t> shares_of(double first, double second) {
  std::pair<std::uint32_t, std::uint32_t> best{1, 1};
  double best_time = std::numeric_limits<double>::infinity();
  for (std::uint32_t a = 1; a <= 8; ++a)
    for (std::uint32_t b = 1; b <= 8; ++b)
      if (const double time = std::max(a / first, b / second) / (a + b);
          time < best_time * rounding) {
        best_time = time;
        best = {a, b};
      }
  return best;
}

rates rates_of(const routing& ways, double (routing::*rate)(std::uint32_t, std::uint32_t) const) {
  rates graph(ways.devices(), std::vector<double>(ways.devices()));
  for (std::uint32_t a = 0; a < ways.devices(); ++a)
    for (std::uint32_t b = 0; b < ways.devices(); ++b)
      if (a != b)
        graph[a][b] = (ways.*rate)(a, b);
  return graph;
}

} // namespace

ring_path widest_ring(const routing& ways) {
  const auto found = widest(rates_of(ways, &routing::rate), 50'000);
  return found ? ring_path{*found, 1} : ring_in_order(ways.devices());
}

std::optional<std::pair<ring_path, ring_path>> two_rings(const routing& ways) {
  if (ways.devices() < 3) // A ring of two is one link.
    return {};
  const auto graph = rates_of(ways, &routing::direct_rate);
  const double most = most_of_two(graph);
  std::optional<std::pair<ring_path, ring_path>> best;
  double best_sum = 0;
  long budget = 1'000'000;
  int second_rings_left = 500; // Searches for a second ring, of 2000 steps for each level.
  cycle_search(graph, most * 1e-6, budget, [&](const order& first) {
    const double rate = rate_of(graph, first);
    const auto left = without(graph, first, rate);
    if (const auto second = widest(left, 2'000)) {
      const double other = rate_of(left, *second);
      if (rate + other > best_sum) {
        best_sum = rate + other;
        const auto [a, b] = shares_of(rate, other);
        best = {ring_path{first, a}, ring_path{*second, b}};
      }
    }
    return best_sum >= most * rounding || --second_rings_left == 0;
  }).run();
  return best;
}

} // namespace troupe::kernels
