// Runs the members of a job as processes of this host, perhaps with others on other hosts.
#pragma once

#include "actors/graph/launch/backend.hpp"

#include <memory>

namespace troupe {

/// Throws run_failed.
std::unique_ptr<backend> make_process_backend(const backend_setup& setup);

} // namespace troupe
