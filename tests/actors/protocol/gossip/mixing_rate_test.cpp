// Mixes first values without gradients, and compares the rate of consensus with theory.
#include "actors/protocol/gossip/mixer.hpp"
#include "actors/protocol/gossip/neighbour_graph.hpp"
#include "base/splitmix64.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace troupe::mixing_rate_test {

namespace {

/// Returns a number in [-1, 1).
double unit(splitmix64& random) { return static_cast<double>(random.next() >> 11) * 0x1p-52 - 1.0; }

std::vector<double> first_values(std::uint32_t peers, std::uint64_t seed) {
  splitmix64 random{seed};
  std::vector<double> all(peers);
  for (double& x : all)
    x = unit(random);
  return all;
}

double sum_of(const std::vector<double>& all) {
  return std::accumulate(all.begin(), all.end(), 0.0);
}

/// Returns the sum of the squared distances from the mean.
double spread_of(const std::vector<double>& all) {
  const double mean = sum_of(all) / static_cast<double>(all.size());
  double spread = 0.0;
  for (const double x : all)
    spread += (x - mean) * (x - mean);
  return spread;
}

/// A graph of mixers whose words come at once, with one number for each copy.
class peers {
public:
  peers(const neighbour_graph& graph, mixing how, std::vector<double> first, std::uint64_t seed)
      : values(std::move(first)), graph_(graph) {
    for (std::uint32_t i = 0; i < graph.size(); ++i) {
      mixers_.push_back(make_mixer({how, i, graph.neighbours_of[i], i + 1, seed}));
      shells_.push_back(std::make_unique<shell>(*this, i));
    }
    for (std::uint32_t i = 0; i < graph.size(); ++i)
      for (std::uint32_t j = 0; j < graph.neighbours_of[i].size(); ++j)
        mixers_[i]->joined(j, {}, *shells_[i]);
    for (std::uint32_t i = 0; i < graph.size(); ++i)
      mixers_[i]->asked({}, *shells_[i]);
    carry();
  }

  /// Lets the worker of a peer push a batch without a gradient.
  void push(std::uint32_t peer, std::uint64_t batch) {
    mixers_[peer]->pushed(batch, true, {}, *shells_[peer]);
  }
  void carry() {
    while (!parcels_.empty()) {
      const auto [from, to, word, value] = parcels_.front();
      parcels_.pop_front();
      const auto& all = graph_.neighbours_of[to];
      const auto place = static_cast<std::uint32_t>(std::ranges::find(all, from) - all.begin());
      shells_[to]->in_hand = value;
      REQUIRE(mixers_[to]->heard(place, word, {}, *shells_[to]));
    }
  }

  std::vector<double> values;

private:
  struct parcel {
    std::uint32_t from, to;
    peer_word word;
    double value;
  };

  class shell final : public mixer_effects {
  public:
    shell(peers& in, std::uint32_t self) : in_(&in), self_(self) {}

    void send(std::uint32_t neighbour, const peer_word& what) override {
      in_->parcels_.push_back({self_, in_->graph_.neighbours_of[self_][neighbour], what,
                               what.what == peer_word::kind::change ? change_ : own()});
    }
    void mix(std::uint64_t clock, double weight, std::span<const peer_share> others) override {
      own() *= weight;
      for (const auto& each : others)
        own() += each.weight * kept_.extract({clock, each.neighbour}).mapped();
    }
    void keep_values(std::uint32_t neighbour, std::uint64_t clock) override {
      kept_[{clock, neighbour}] = in_hand;
    }
    void forget_values(std::uint32_t neighbour, std::uint64_t clock) override {
      kept_.erase({clock, neighbour});
    }
    void halve(std::uint32_t) override {
      const double d = (in_hand - own()) / 2;
      own() += d;
      change_ = -d;
    }
    void forget_change(std::uint32_t) override { change_ = 0.0; }
    void add_change() override { own() += in_hand; }
    void step() override {}
    void answer() override {}
    void say(const std::string&) override {}

    double in_hand = 0.0;

  private:
    double& own() { return in_->values[self_]; }

    peers* in_;
    std::uint32_t self_;
    double change_ = 0.0;
    std::map<std::pair<std::uint64_t, std::uint32_t>, double> kept_;
  };

  const neighbour_graph& graph_;
  std::vector<std::unique_ptr<mixer>> mixers_;
  std::vector<std::unique_ptr<shell>> shells_;
  std::deque<parcel> parcels_;
};

TEST_CASE("each_step contracts as the second eigenvalue says, and keeps the sum") {
  const std::vector<neighbour_graph> graphs{
    *neighbour_graph::ring(16), *neighbour_graph::torus(4, 4), *neighbour_graph::exponential(16),
    *neighbour_graph::parse_edge_list("0 1\n1 2\n2 3\n3 4\n3 5\n5 6\n", 7)};
  for (const auto& graph : graphs) {
    peers all{graph, mixing::each_step, first_values(graph.size(), 1), 1};
    const double sum = sum_of(all.values);
    std::vector<double> spreads{spread_of(all.values)};
    while (spreads.back() > 1e-18) {
      REQUIRE(spreads.size() < 1000);
      for (std::uint32_t i = 0; i < graph.size(); ++i)
        all.push(i, spreads.size());
      all.carry();
      spreads.push_back(spread_of(all.values));
    }
    // The first half is left out, as smaller eigenvalues count there. A spread is a square.
    const auto half = spreads.size() / 2, rounds = spreads.size() - 1 - half;
    const double rate = std::pow(spreads.back() / spreads[half], 0.5 / static_cast<double>(rounds));
    const double expected = std::abs(graph.second_eigenvalue());
    MESSAGE("each_step, ", graph.size(), " peers: ", rate, ", second eigenvalue ", expected);
    CHECK(std::abs(rate / expected - 1.0) < 0.02);
    CHECK(sum_of(all.values) == doctest::Approx(sum).epsilon(1e-12));
  }
}

/// Returns the expected spread after `steps`, from first values with the spread 1 that treat all
/// peers alike. Boyd, Ghosh, Prabhakar, Shah, "Randomized gossip algorithms", IEEE Transactions on
/// Information Theory 52 (2006), section II: an exchange makes x' = W x of x, where W is
/// I - (e_i - e_j)(e_i - e_j)^T / 2 with probability P_ij / n. So S = E[x x^T] becomes E[W S W^T].
/// As W = W^T W, the spread becomes at most the second eigenvalue of E[W] times as large.
double expected_spread(const neighbour_graph& graph, int steps) {
  const std::size_t n = graph.size();
  const auto count = static_cast<double>(n);
  std::vector<double> s(n * n), next(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      s[i * n + j] = ((i == j ? 1.0 : 0.0) - 1.0 / count) / (count - 1.0);
  for (int step = 0; step < steps; ++step) {
    std::ranges::fill(next, 0.0);
    for (std::size_t i = 0; i < n; ++i)
      for (const auto j : graph.neighbours_of[i]) {
        auto mixed = s;
        for (std::size_t k = 0; k < n; ++k)
          mixed[i * n + k] = mixed[j * n + k] = (mixed[i * n + k] + mixed[j * n + k]) / 2;
        for (std::size_t k = 0; k < n; ++k)
          mixed[k * n + i] = mixed[k * n + j] = (mixed[k * n + i] + mixed[k * n + j]) / 2;
        const double p = 1.0 / (count * static_cast<double>(graph.neighbours_of[i].size()));
        for (std::size_t k = 0; k < n * n; ++k)
          next[k] += p * mixed[k];
      }
    std::swap(s, next);
  }
  double spread = 0.0;
  for (std::size_t i = 0; i < n; ++i)
    spread += s[i * n + i];
  return spread;
}

/// Returns the mean spread over runs of single exchanges, from the spread 1. Each exchange begins
/// at a peer drawn here, and goes to the neighbour that its mixer draws.
double mean_spread(const neighbour_graph& graph, int steps, std::uint64_t runs) {
  double sum = 0.0;
  for (std::uint64_t run = 0; run < runs; ++run) {
    auto first = first_values(graph.size(), 1000 + run);
    const double scale = 1.0 / std::sqrt(spread_of(first));
    for (double& x : first)
      x *= scale;
    peers all{graph, mixing::pairwise, first, run};
    const double before = sum_of(all.values);
    splitmix64 random{run};
    for (int step = 0; step < steps; ++step) {
      all.push(static_cast<std::uint32_t>(random.next() % graph.size()),
               static_cast<std::uint64_t>(step));
      all.carry();
    }
    CHECK(sum_of(all.values) == doctest::Approx(before).epsilon(1e-12));
    sum += spread_of(all.values);
  }
  return sum / static_cast<double>(runs);
}

TEST_CASE("pairwise contracts as random pairs are expected to, and keeps the sum") {
  constexpr int steps = 16;
  constexpr std::uint64_t runs = 1000;
  const std::vector<neighbour_graph> graphs{
    *neighbour_graph::complete(8), *neighbour_graph::ring(8), *neighbour_graph::exponential(8)};
  for (const auto& graph : graphs) {
    const double found = mean_spread(graph, steps, runs), expected = expected_spread(graph, steps);
    MESSAGE("pairwise, ", steps, " exchanges of 8 peers: ", found, ", expected ", expected);
    CHECK(std::abs(found / expected - 1.0) < 0.05);
  }
  // Closed form for the complete graph: the second eigenvalue of E[W] is 1 - 1 / (n - 1).
  CHECK(expected_spread(graphs.front(), steps)
        == doctest::Approx(std::pow(1.0 - 1.0 / 7.0, steps)).epsilon(1e-12));
}

} // namespace

} // namespace troupe::mixing_rate_test
