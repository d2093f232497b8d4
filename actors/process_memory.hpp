// How much memory this process has taken.
#pragma once

#include <cstdint>

namespace troupe {

/// Peak resident memory of this process, in bytes.
std::uint64_t peak_rss_bytes();

} // namespace troupe
