// Tells a graph which data its workers read.
#pragma once

#include "actors/graph/graph.hpp"
#include "examples/02_async_sgd/data/dataset.hpp"

namespace async_sgd {

/// Adds the checksum of the data, the remarks on it, and its files. So a checkpoint of other data
/// is refused, and no output overwrites a file of the data.
void add_data(troupe::graph& to, const dataset& data);

} // namespace async_sgd
