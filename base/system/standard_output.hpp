// A program's last word: whether what it printed has arrived.
#pragma once

#include "base/error.hpp"

namespace troupe {

/// Writes out what is still buffered. Errors: io_failed, also where an earlier line was lost.
result<void> flush_standard_output();

} // namespace troupe
