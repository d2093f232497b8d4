// Measures the memory of this process.
#pragma once

#include <cstdint>

namespace troupe {

/// Returns the peak of this process's resident memory in bytes, as of at most 100 ms ago.
std::uint64_t peak_rss_bytes();

} // namespace troupe
