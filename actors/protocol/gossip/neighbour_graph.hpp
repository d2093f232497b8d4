// Says which peers of a gossip job mix with each other, with which weights, and how quickly.
#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe {

/// Returns the weight of Metropolis and Hastings of an edge: 1 / (1 + the larger degree).
constexpr double edge_weight(std::uint32_t degree, std::uint32_t other) {
  return 1.0 / (1.0 + (degree > other ? degree : other));
}

/// An undirected connected graph of at least two peers, without loops.
class neighbour_graph {
public:
  /// More peers are refused: weights are a square matrix.
  static constexpr std::uint32_t peers_max = 1024;

  // -- makers; errors: invalid_argument, for fewer than two peers or more than peers_max --
  static result<neighbour_graph> ring(std::uint32_t peers);
  /// Rows and columns in circles. Errors: fewer than two rows or columns.
  static result<neighbour_graph> torus(std::uint32_t rows, std::uint32_t columns);
  /// The torus of the product that is closest to a square. Errors: no product of two numbers.
  static result<neighbour_graph> torus(std::uint32_t peers);
  /// Peer i with i + 2^k and i - 2^k mod `peers`, for each 2^k below `peers`.
  static result<neighbour_graph> exponential(std::uint32_t peers);
  static result<neighbour_graph> complete(std::uint32_t peers);
  /// Parses lines "0 1" of two peers; '#' begins a comment. A list names each edge once, or each
  /// edge in both directions. Errors: one line that names the peers or the line of the list.
  static result<neighbour_graph> parse_edge_list(std::string_view text, std::uint32_t peers);

  std::uint32_t size() const { return static_cast<std::uint32_t>(neighbours_of.size()); }

  /// Returns the weight matrix of the living peers, by rows: symmetric, and each row adds up to
  /// one. A dead peer has the row of the identity. Requires: size() == living.size().
  std::vector<double> weights(const std::vector<bool>& living) const;
  /// Returns the second largest eigenvalue by magnitude of the weights of all peers, to 1e-9.
  double second_eigenvalue() const;
  /// Returns 1 - |second_eigenvalue()|: 1 mixes at once, 0 never.
  double spectral_gap() const;
  /// Returns the living peers in groups that are connected, each ascending; largest group first.
  std::vector<std::vector<std::uint32_t>> components(const std::vector<bool>& living) const;

  std::vector<std::vector<std::uint32_t>> neighbours_of; ///< Ascending.

  bool operator==(const neighbour_graph&) const = default;
};

} // namespace troupe
