// The rows of sparse tables that a batch or a judgement needs, as a kv is asked for them.
#pragma once

#include "actors/training/trainer.hpp"
#include "serialization/job.hpp"
#include "serialization/rows.hpp"

#include <functional>
#include <vector>

namespace troupe {

/// What `name_keys` adds to the lists it is given, in ascending order and each key once: one entry
/// for each sparse table of the job, in the job's order. Throws what `name_keys` throws.
std::vector<row_keys> touched_rows(const job_spec& job,
                                   const std::function<void(key_lists)>& name_keys);

/// The same as one span for each table; empty ones for dense tables. Borrowed.
std::vector<std::span<const std::uint64_t>> keys_by_table(const job_spec& job,
                                                          const std::vector<row_keys>& rows);

} // namespace troupe
