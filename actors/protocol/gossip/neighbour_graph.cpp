#include "actors/protocol/gossip/neighbour_graph.hpp"

#include "base/quote.hpp"
#include "fmt/format.h"
#include "fmt/ranges.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <utility>

namespace troupe {
namespace {

using directed_edge = std::pair<std::uint32_t, std::uint32_t>;

failure unusable_graph(std::string text) { return {errc::invalid_argument, std::move(text)}; }

std::optional<failure> check_peers(std::uint32_t peers) {
  if (peers < 2)
    return unusable_graph(fmt::format("gossip needs 2 workers or more, not {}", peers));
  if (peers > neighbour_graph::peers_max)
    return unusable_graph(
      fmt::format("gossip has at most {} workers, not {}", neighbour_graph::peers_max, peers));
  return std::nullopt;
}

/// Makes a graph of edges, which may come in one direction, in both, or twice.
neighbour_graph graph_of(std::uint32_t peers, std::span<const directed_edge> edges) {
  neighbour_graph made;
  made.neighbours_of.resize(peers);
  for (const auto& [one, other] : edges) {
    made.neighbours_of[one].push_back(other);
    made.neighbours_of[other].push_back(one);
  }
  for (auto& each : made.neighbours_of) {
    std::ranges::sort(each);
    const auto again = std::ranges::unique(each);
    each.erase(again.begin(), again.end());
  }
  return made;
}

/// Parses a number that ends a word. Returns nullopt for anything else.
std::optional<std::uint32_t> read_peer(std::string_view word) {
  std::uint32_t peer = 0;
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), peer);
  if (problem != std::errc{} || end != word.data() + word.size())
    return std::nullopt;
  return peer;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  line = line.substr(0, line.find('#'));
  constexpr std::string_view blank = " \t\r";
  while (true) {
    const auto begin = line.find_first_not_of(blank);
    if (begin == std::string_view::npos)
      return words;
    const auto end = std::min(line.find_first_of(blank, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    line.remove_prefix(end);
  }
}

/// Parses the lines of an edge list, as they stand.
result<std::vector<directed_edge>> read_edges(std::string_view text) {
  std::vector<directed_edge> edges;
  std::set<directed_edge> seen;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto words = words_of(line);
    if (words.empty())
      continue;
    const auto one = read_peer(words.front()), other = read_peer(words.back());
    if (words.size() != 2 || !one || !other)
      return unusable_graph(fmt::format("line {}: {} is not two numbers of peers, such as 0 1",
                                        number, quote(std::string{line.substr(0, 80)})));
    if (*one == *other)
      return unusable_graph(fmt::format("line {}: an edge of peer {} with itself", number, *one));
    if (!seen.emplace(*one, *other).second)
      return unusable_graph(
        fmt::format("line {}: the edge {} {} is there twice", number, *one, *other));
    edges.emplace_back(*one, *other);
  }
  return edges;
}

/// Checks that either no edge has its reverse, or each has.
std::optional<failure> check_directions(std::span<const directed_edge> edges) {
  const std::set<directed_edge> all{edges.begin(), edges.end()};
  const auto is_reversed = [&](const directed_edge& each) {
    return all.contains({each.second, each.first});
  };
  if (std::ranges::none_of(edges, is_reversed))
    return std::nullopt;
  const auto found = std::ranges::find_if_not(edges, is_reversed);
  if (found == edges.end())
    return std::nullopt;
  return unusable_graph(fmt::format("asymmetric: {} {} is there and {} {} is not", found->first,
                                    found->second, found->second, found->first));
}

/// A symmetric matrix with the eigenvalues of another one, and entries beside its diagonal alone.
struct tridiagonal {
  std::vector<double> diagonal, beside;

  /// Counts the eigenvalues below x (Sturm).
  std::size_t below(double x) const {
    std::size_t count = 0;
    double q = 1.0;
    for (std::size_t i = 0; i < diagonal.size(); ++i) {
      q = diagonal[i] - x - (i == 0 ? 0.0 : beside[i - 1] * beside[i - 1] / q);
      if (q == 0.0)
        q = -1e-300;
      count += q < 0.0 ? 1 : 0;
    }
    return count;
  }
  /// Returns the eigenvalue that `index` others are below. Requires: all are in -1 .. 1.
  double eigenvalue(std::size_t index) const {
    double low = -1.0 - 1e-9, high = 1.0 + 1e-9;
    for (int i = 0; i < 60; ++i) {
      const double middle = (low + high) / 2;
      (below(middle) > index ? high : low) = middle;
    }
    return (low + high) / 2;
  }
};

/// Reduces a symmetric n x n matrix by reflections (Householder).
tridiagonal reduce(std::vector<double> a, std::size_t n) {
  tridiagonal to;
  std::vector<double> v(n), w(n);
  for (std::size_t k = 0; k < n; ++k) {
    to.diagonal.push_back(a[k * n + k]);
    if (k + 1 == n)
      break;
    double length = 0.0;
    for (std::size_t i = k + 1; i < n; ++i)
      length += a[i * n + k] * a[i * n + k];
    length = std::sqrt(length);
    const double head = a[(k + 1) * n + k], image = head > 0.0 ? -length : length;
    to.beside.push_back(image);
    const double scale = std::sqrt(2 * length * (length + std::abs(head)));
    if (scale == 0.0)
      continue;
    for (std::size_t i = k + 1; i < n; ++i)
      v[i] = (a[i * n + k] - (i == k + 1 ? image : 0.0)) / scale;
    double along = 0.0;
    for (std::size_t i = k + 1; i < n; ++i) {
      w[i] = 0.0;
      for (std::size_t j = k + 1; j < n; ++j)
        w[i] += a[i * n + j] * v[j];
      along += w[i] * v[i];
    }
    for (std::size_t i = k + 1; i < n; ++i)
      w[i] = 2 * (w[i] - along * v[i]);
    for (std::size_t i = k + 1; i < n; ++i)
      for (std::size_t j = k + 1; j < n; ++j)
        a[i * n + j] -= v[i] * w[j] + w[i] * v[j];
  }
  return to;
}

} // namespace

result<neighbour_graph> neighbour_graph::ring(std::uint32_t peers) {
  if (auto wrong = check_peers(peers))
    return *std::move(wrong);
  std::vector<directed_edge> edges;
  for (std::uint32_t i = 0; i < peers; ++i)
    edges.emplace_back(i, (i + 1) % peers);
  return graph_of(peers, edges);
}

result<neighbour_graph> neighbour_graph::torus(std::uint32_t rows, std::uint32_t columns) {
  if (rows < 2 || columns < 2)
    return unusable_graph(fmt::format(
      "a torus of {} x {} peers: it needs 2 rows and 2 columns or more", rows, columns));
  if (rows > peers_max || columns > peers_max)
    return *check_peers(std::max(rows, columns));
  const auto peers = rows * columns;
  if (auto wrong = check_peers(peers))
    return *std::move(wrong);
  std::vector<directed_edge> edges;
  for (std::uint32_t row = 0; row < rows; ++row)
    for (std::uint32_t column = 0; column < columns; ++column) {
      const auto self = row * columns + column;
      edges.emplace_back(self, row * columns + (column + 1) % columns);
      edges.emplace_back(self, (row + 1) % rows * columns + column);
    }
  return graph_of(peers, edges);
}

result<neighbour_graph> neighbour_graph::torus(std::uint32_t peers) {
  if (auto wrong = check_peers(peers))
    return *std::move(wrong);
  std::uint32_t rows = 1;
  for (std::uint32_t each = 2; each * each <= peers; ++each)
    if (peers % each == 0)
      rows = each;
  if (rows == 1)
    return unusable_graph(fmt::format(
      "a torus of {} peers: {} is no product of two numbers of 2 or more: use ring", peers, peers));
  return torus(rows, peers / rows);
}

result<neighbour_graph> neighbour_graph::exponential(std::uint32_t peers) {
  if (auto wrong = check_peers(peers))
    return *std::move(wrong);
  std::vector<directed_edge> edges;
  for (std::uint32_t i = 0; i < peers; ++i)
    for (std::uint32_t distance = 1; distance < peers; distance *= 2)
      edges.emplace_back(i, (i + distance) % peers);
  return graph_of(peers, edges);
}

result<neighbour_graph> neighbour_graph::complete(std::uint32_t peers) {
  if (auto wrong = check_peers(peers))
    return *std::move(wrong);
  std::vector<directed_edge> edges;
  for (std::uint32_t i = 0; i < peers; ++i)
    for (std::uint32_t other = i + 1; other < peers; ++other)
      edges.emplace_back(i, other);
  return graph_of(peers, edges);
}

result<neighbour_graph> neighbour_graph::parse_edge_list(std::string_view text,
                                                         std::uint32_t peers) {
  if (auto wrong = check_peers(peers))
    return *std::move(wrong);
  const auto edges = read_edges(text);
  if (!edges)
    return edges.error();
  if (edges->empty())
    return unusable_graph("the list has no edge: write lines of two peers, such as 0 1");
  std::uint32_t last = 0;
  for (const auto& [one, other] : *edges)
    last = std::max({last, one, other});
  if (last + std::uint64_t{1} != peers)
    return unusable_graph(fmt::format("the list has peers 0 to {}, which are {}, and there are {} "
                                      "workers: both numbers have to be equal",
                                      last, last + std::uint64_t{1}, peers));
  if (auto wrong = check_directions(*edges))
    return *std::move(wrong);
  auto made = graph_of(peers, *edges);
  const auto parts = made.components(std::vector<bool>(peers, true));
  if (parts.size() == 1)
    return made;
  std::vector<std::uint32_t> cut_off;
  for (const auto& each : std::span{parts}.subspan(1))
    cut_off.insert(cut_off.end(), each.begin(), each.end());
  std::ranges::sort(cut_off);
  constexpr std::size_t named_max = 8;
  const auto named = std::span{cut_off}.first(std::min(cut_off.size(), named_max));
  return unusable_graph(fmt::format(
    "unconnected: no way leads from peer {} to {} {}{}", parts.front().front(),
    cut_off.size() == 1 ? "peer" : "peers", fmt::join(named, ", "),
    cut_off.size() > named_max ? fmt::format(" and {} more", cut_off.size() - named_max) : ""));
}

std::vector<double> neighbour_graph::weights(const std::vector<bool>& living) const {
  const std::size_t n = neighbours_of.size();
  std::vector<std::uint32_t> degrees(n, 0);
  for (std::size_t i = 0; i < n; ++i)
    degrees[i] = static_cast<std::uint32_t>(
      std::ranges::count_if(neighbours_of[i], [&](std::uint32_t x) { return living[x]; }));
  std::vector<double> all(n * n, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    double own = 1.0;
    for (const auto other : neighbours_of[i])
      if (living[i] && living[other])
        own -= all[i * n + other] = edge_weight(degrees[i], degrees[other]);
    all[i * n + i] = own;
  }
  return all;
}

double neighbour_graph::second_eigenvalue() const {
  const std::size_t n = neighbours_of.size();
  const auto reduced = reduce(weights(std::vector<bool>(n, true)), n);
  const double least = reduced.eigenvalue(0), second = reduced.eigenvalue(n - 2);
  return std::abs(least) > std::abs(second) ? least : second;
}

double neighbour_graph::spectral_gap() const { return 1.0 - std::abs(second_eigenvalue()); }

std::vector<std::vector<std::uint32_t>>
neighbour_graph::components(const std::vector<bool>& living) const {
  std::vector<std::vector<std::uint32_t>> groups;
  std::vector<bool> seen(size(), false);
  for (std::uint32_t first = 0; first < size(); ++first) {
    if (!living[first] || seen[first])
      continue;
    std::vector<std::uint32_t> group{first};
    seen[first] = true;
    for (std::size_t i = 0; i < group.size(); ++i)
      for (const auto other : neighbours_of[group[i]])
        if (living[other] && !seen[other]) {
          seen[other] = true;
          group.push_back(other);
        }
    std::ranges::sort(group);
    groups.push_back(std::move(group));
  }
  std::ranges::stable_sort(groups, std::greater{}, [](const auto& x) { return x.size(); });
  return groups;
}

} // namespace troupe
