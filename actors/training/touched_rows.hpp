// Lists the rows of sparse tables that a batch or an evaluation needs, in the form of a pull.
#pragma once

#include "actors/training/trainer.hpp"
#include "serialization/job.hpp"
#include "serialization/rows.hpp"

#include <functional>
#include <vector>

namespace troupe {

/// Returns the keys that `name_keys` adds to its lists, in ascending order and each once: one entry
/// for each sparse table of the job, in the job's order. Throws the exceptions of `name_keys`.
std::vector<row_keys> touched_rows(const job_spec& job,
                                   const std::function<void(key_lists)>& name_keys);

/// Returns `rows` as one span for each table; empty ones for dense tables. Borrowed.
std::vector<std::span<const std::uint64_t>> keys_by_table(const job_spec& job,
                                                          const std::vector<row_keys>& rows);

} // namespace troupe
