// The stage that packs gradients and unpacks values. An expander (expander_actor.hpp) does the
// opposite before each server.
#pragma once

#include "actors/protocol/worker/stage.hpp"
#include "actors/tables/codec.hpp"
#include "serialization/job.hpp"

#include <memory>

namespace troupe {

/// It packs pushes, pulls values encoded as `options.pulls`, and unpacks them. If a request with a
/// push fails, it is unknown which part was applied, or the batch is done again. So the residuals
/// of error feedback are dropped, and a line says so.
///
/// Capacity: a float for each element of tables with error feedback.
std::unique_ptr<stage_decider> make_compress_stage(const job_spec& job, codec_options options);

} // namespace troupe
