// Runs the ranks of a job without servers as processes of this host. Ranks need
// no coordinator: rank and clock determine the batch that a rank computes.
#pragma once

#include "actors/graph/launch/backend.hpp"

#include <memory>

namespace troupe {

/// Throws run_failed.
std::unique_ptr<backend> make_rank_backend(const backend_setup& setup);

} // namespace troupe
