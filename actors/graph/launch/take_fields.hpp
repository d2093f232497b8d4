// Hands the fields of a graph to its coordinator and servers, in every way to run.
#pragma once

#include "actors/graph/options/options.hpp"
#include "actors/roles/coordinator/coordinator_actor.hpp"
#include "actors/roles/server/server_actor.hpp"

namespace troupe {

/// Takes the fields that were carried to a coordinator (carried_to()).
void take_fields(const run_options& fields, coordinator_setup& setup);
/// Takes the fields that were carried to a server.
void take_fields(const run_options& fields, server_options& how);

} // namespace troupe
