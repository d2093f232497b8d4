// What peers of a gossip job and their collector say to each other.
#pragma once

#include "actors/training/ports.hpp"

#include <cstdint>

namespace troupe {

/// The head of a parcel between a peer and the collector.
struct copy_word {
  enum class kind : std::uint32_t {
    wants, ///< Peer: send the values to begin with.
    copy,  ///< Peer: values, optimiser state, applied batches.
    start, ///< Collector: values and optimiser state to begin with.
    taken, ///< Collector: it has the copy.
  };
  kind what = kind::wants;
  std::uint32_t unused = 0;
  std::uint64_t incarnation = 0; ///< Of the peer.
};

/// Parcels of these channels are large, and each lane has few of them under way.
constexpr std::uint32_t copies_window = 2;

} // namespace troupe
