// What a table holds before its first update.
//
// Element i is a function of (job seed, table name, i) and of nothing else, so that any server that
// makes a block makes the same one. Numbers are drawn from a counter: bits(k) = mix(key + k *
// golden) with the finaliser of splitmix64 (Steele, Lea, Flood 2014); uniform takes k = i, normal
// takes k = 2i and 2i + 1 (Box, Muller 1958, the cosine branch, in float64).
#pragma once

#include "serialization/job.hpp"

#include <cstdint>
#include <span>

namespace troupe {

/// Writes elements [first, first + values.size()) of the table.
void fill_initial_values(std::uint64_t job_seed, const table_spec& table, std::uint64_t first,
                         std::span<float> values);

} // namespace troupe
