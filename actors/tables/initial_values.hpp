// Computes the values of a table before its first update.
//
// Element i is a function of (job seed, table name, i) alone, so that any server that makes a block
// makes the same one. Numbers are drawn from a counter: bits(k) = mix(key + k * golden) with the
// finaliser of splitmix64 (Steele, Lea, Flood 2014); uniform takes k = i, normal takes k = 2i and
// 2i + 1 (Box, Muller 1958, the cosine branch, in float64). A row of a sparse table has a counter
// of its own: its element i is a function of (job seed, table name, key, i), or 0 if the table's
// initializer says so.
#pragma once

#include "serialization/job.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace troupe {

/// The first values of dense tables that begin with a file's, whole, by the number of the table.
using given_values = std::map<std::uint32_t, std::shared_ptr<const std::vector<float>>>;

/// Writes elements [first, first + values.size()) of a dense table.
void fill_initial_values(std::uint64_t job_seed, const table_spec& table, std::uint64_t first,
                         std::span<float> values);

/// Computes the values of a sparse table's rows before their first update.
class row_initializer {
public:
  row_initializer(std::uint64_t job_seed, const table_spec& table);
  void fill(std::uint64_t key, std::span<float> row) const;

private:
  std::uint64_t table_key_;
  initializer how_;
};

} // namespace troupe
