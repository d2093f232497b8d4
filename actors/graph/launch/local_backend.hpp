// Runs all members of a job as actors of this process.
#pragma once

#include "actors/graph/launch/backend.hpp"

#include <memory>

namespace troupe {

/// On threads. Throws run_failed.
std::unique_ptr<backend> make_thread_backend(const backend_setup& setup);
/// In virtual time, one after the other. Throws run_failed.
std::unique_ptr<backend> make_simulated_backend(const backend_setup& setup);

} // namespace troupe
