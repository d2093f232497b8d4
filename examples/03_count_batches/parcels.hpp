// Counts parcels beside batches: actors and trainers that send each other numbered parcels, and
// check what a channel promises.
#pragma once

#include "examples/03_count_batches/sums.hpp"
#include "troupe/troupe.hpp"

#include <memory>
#include <string>

namespace count_batches {

/// Parcels under way on each lane.
constexpr std::uint32_t parcel_window = 8;

/// Returns a trainer that counts batches, and takes numbered parcels. `parcel_log`: see
/// add_parcels().
std::unique_ptr<troupe::trainer> make_parcel_trainer(const schedule& all,
                                                     const std::string& parcel_log);

/// Adds senders, which form a circle, and receivers. The senders send to the receivers and to the
/// trainers of `counters`. `parcel_log`: folder in which each process writes a file with a line for
/// each parcel that was sent or taken; empty: there is none.
void add_parcels(troupe::graph& g, const troupe::node<troupe::workers>& counters,
                 const std::string& parcel_log);

} // namespace count_batches
