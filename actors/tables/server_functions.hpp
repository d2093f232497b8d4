// Server functions: a program's own steps, which servers take in place of a built-in optimiser.
#pragma once

#include "base/error.hpp"
#include "serialization/ids.hpp"
#include "serialization/job.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace troupe {

struct function_probe; // serialization/messages.hpp

/// Says which step a server function is to take.
struct step_info {
  table_id table;          ///< Position of the table in its store.
  std::uint64_t first = 0; ///< The first element of the stretch in its table, or the row's key.
  /// Steps taken on this block or row, this one included. Tables have blocks of a fixed size.
  std::uint64_t step = 1;
  std::uint64_t staleness = 0; ///< Updates of the shard between the pull and this step; 0 in bsp.
  float rate = 0.1f;           ///< optimizer_spec::rate_at(staleness).
  /// Multiply the gradient by it: 1 / pushes of the clock in bsp, else 1; times the factor of
  /// clip_norm.
  float scale = 1.0f;
  std::span<const float> parameters; ///< The numbers of optimizer_spec::parameters.
};

/// Takes a step in place on one stretch: on dense elements [first, first + n), or on the row with
/// key `first`. Returns false if a result is not finite; the push then changes no replica. A weight
/// that is not finite has the same effect, whatever the function returns.
///
/// With a reducer, the gradient of an asp or ssp table may be the sum of several batches.
///
/// Shapes:      weights f32[n], gradient f32[n], which is finite; state f32[n * state_per_weight],
///              zeros at first: the first state of all weights, then the second one of all.
/// Determinism: must be a function of its arguments, with the same bytes in each process. It uses
///              no mutable globals, time or threads, and is compiled without contraction of floats.
using server_function = bool (*)(const step_info& info, std::span<float> weights,
                                 std::span<float> state, std::span<const float> gradient);

/// A server function and the size of its state.
struct function_spec {
  server_function step = nullptr;
  std::uint32_t state_per_weight = 0; ///< Floats of state for each weight, at most 64.
};

/// The functions of a program, by name.
using server_functions = std::map<std::string, function_spec>;

/// Fills in the state of each table's function. Errors: invalid_argument (the program lacks a
/// function that a table names).
result<void> resolve_functions(std::vector<table_spec>& tables, const server_functions& functions);
/// Checks that the program has the functions of a job. Errors: as above, wrong_job (a function has
/// another size of state here).
result<void> check_functions(const job_spec& job, const server_functions& functions);

/// Returns the function of each table; without a step: it has a built-in optimiser.
std::vector<function_spec> functions_of(const job_spec& job, const server_functions& functions);

/// Calls each function that the job names on fixed numbers and returns checksums of the results.
/// Hosts that are built alike have equal ones. Requires: check_functions().
std::vector<function_probe> probes_of(const job_spec& job, const server_functions& functions);

/// Returns the floats of state for each weight, and whether a row counts its own steps.
std::size_t state_per_weight(const optimizer_spec& optimizer);
bool counts_steps(const optimizer_spec& optimizer);

/// Calls a server function. Errors: non_finite (it returned false, or a weight is not finite),
/// contract_broken (it threw). The outputs are then unspecified. The text lacks the place:
/// "function 'f/1' gave ...".
result<void> take_step(const function_spec& function, const optimizer_spec& optimizer,
                       const step_info& info, std::span<float> weights, std::span<float> state,
                       std::span<const float> gradient);

} // namespace troupe
