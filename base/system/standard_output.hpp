// Checks at a program's end whether all it printed has been written.
#pragma once

#include "base/error.hpp"

namespace troupe {

/// Flushes the buffered output. Errors: io_failed, also if an earlier line was lost.
result<void> flush_standard_output();

} // namespace troupe
