// Makes the codecs of a job from the options that compress gradients and values.
#pragma once

#include "actors/graph/options/options.hpp"
#include "actors/tables/codec.hpp"
#include "serialization/job.hpp"

#include <optional>
#include <string>

namespace troupe {

/// Returns the codecs of a job's workers; nullopt: they have none.
/// Errors: invalid_argument (a table that the job does not have, or whose rows are sparse).
result<std::optional<codec_options>> compression_of(const run_options& options,
                                                    const job_spec& job);

/// Returns a remark for the user who starts the job; empty: none.
std::string remark_on_compression(const run_options& options, const job_spec& job);

} // namespace troupe
