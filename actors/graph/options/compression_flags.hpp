// The options that say in how many bytes gradients and values travel.
#pragma once

#include "actors/graph/options/options.hpp"
#include "actors/tables/codec.hpp"
#include "serialization/job.hpp"

#include <optional>
#include <string>

namespace troupe {

void declare_compression(CLI::App& group, run_options& options);

/// Errors: invalid_argument.
result<void> validate_compression(const run_options& options);

/// What the workers of a job do; nullopt: they have no codec.
/// Errors: invalid_argument (a table that the job does not have, or whose rows are sparse).
result<std::optional<codec_options>> compression_of(const run_options& options,
                                                    const job_spec& job);

/// What who starts the job should know of it; empty: nothing.
std::string remark_on_compression(const run_options& options, const job_spec& job);

} // namespace troupe
