// Declares the neighbour graph of a gossip store, as a program writes it.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <string>

namespace troupe {

class neighbour_graph; // actors/protocol/gossip/neighbour_graph.hpp

/// Names a neighbour graph. The number of peers is that of the workers.
class neighbours {
public:
  /// Each peer has the one before and the one behind it.
  static neighbours ring() { return neighbours{kind::ring}; }
  /// The most square torus: each peer has two neighbours in each direction, or one where a circle
  /// has two peers.
  static neighbours torus() { return neighbours{kind::torus}; }
  static neighbours torus(std::uint32_t rows, std::uint32_t columns);
  /// Peer i has the peers i + 2^k and i - 2^k.
  static neighbours exponential() { return neighbours{kind::exponential}; }
  /// Each peer has all others.
  static neighbours complete() { return neighbours{kind::complete}; }
  /// The edges of a file: a line "0 1" for each edge, and comments behind '#'.
  static neighbours file(std::string path);
  /// Reads "ring", "torus", "torus:2x4", "exponential", "complete", or "file:PATH". Errors:
  /// invalid_argument.
  static result<neighbours> parsed(const std::string& text);

  /// Makes the graph. Errors: invalid_argument (it does not fit the number of peers, or the file's
  /// edges are wrong), io_failed.
  result<neighbour_graph> of(std::uint32_t peers) const;
  /// Returns "ring", "torus of 2 x 4", "the edges of PATH".
  std::string text() const;
  /// Returns the path of the file; empty without one.
  const std::string& path() const { return path_; }

private:
  enum class kind : std::uint8_t { ring, torus, exponential, complete, file };
  explicit neighbours(kind which) : kind_(which) {}

  kind kind_;
  std::uint32_t rows_ = 0, columns_ = 0; ///< 0: the most square torus.
  std::string path_;
};

} // namespace troupe
