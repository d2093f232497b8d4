// Parses sizes, rates and times of a command line, and formats them for people.
#pragma once

#include "base/error.hpp"

#include <string>

namespace troupe::planning {

/// Parses "160MB", "64KiB", "1.5 GB" or "4096" as bytes. kB, MB, GB, TB are powers of 1000, KiB,
/// MiB, GiB, TiB of 1024.
/// Errors: invalid_argument if it is not a number with one of these units, or not above 0.
result<double> parse_bytes(const std::string& text);

/// Parses "10Gbit/s" or "16GB/s" as bytes a second. Errors: as for parse_bytes().
result<double> parse_rate(const std::string& text);

/// Parses "100ms", "1.5s" or "20us" as seconds. Errors: as for parse_bytes().
result<double> parse_seconds(const std::string& text);

std::string show_bytes(double bytes);     ///< "160 MB", powers of 1000, three digits.
std::string show_rate(double per_second); ///< "16 GB/s"
std::string show_bits(double per_second); ///< "10 Gbit/s", from bytes a second.
std::string show_seconds(double seconds); ///< "60.0 ms"

} // namespace troupe::planning
