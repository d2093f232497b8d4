// Sizes, rates and times of a command line, and how people read them.
#pragma once

#include "base/error.hpp"

#include <string>

namespace troupe::plan {

/// "160MB", "64KiB", "1.5 GB", "4096": bytes. kB, MB, GB, TB are powers of 1000, KiB, MiB, GiB,
/// TiB of 1024. Errors: invalid_argument for what is not a number and one of those, or not above 0.
result<double> parse_bytes(const std::string& text);

/// "10Gbit/s", "16GB/s": bytes a second. Errors: as above.
result<double> parse_rate(const std::string& text);

/// "100ms", "1.5s", "20us": seconds. Errors: as above.
result<double> parse_seconds(const std::string& text);

std::string show_bytes(double bytes);     ///< "160 MB", powers of 1000, three digits.
std::string show_rate(double per_second); ///< "16 GB/s"
std::string show_bits(double per_second); ///< Of bytes a second: "10 Gbit/s"
std::string show_seconds(double seconds); ///< "60.0 ms"

} // namespace troupe::plan
