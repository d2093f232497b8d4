#include "actors/tables/server_functions.hpp"

#include "base/crc32c.hpp"
#include "base/exception_text.hpp"
#include "base/user_code.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/vector_ops.hpp"
#include "serialization/messages.hpp"

#include <algorithm>
#include <random>

namespace troupe {

namespace {

bool has_function(const table_spec& table) { return table.optimizer.kind == optimizer_kind::user; }

result<function_spec> find_function(const table_spec& table, const server_functions& functions) {
  const auto found = functions.find(table.optimizer.function);
  if (found == functions.end() || found->second.step == nullptr)
    return {errc::invalid_argument, "table '" + table.name + "' names the function '"
                                      + table.optimizer.function
                                      + "', which this program does not have: call "
                                        "program.function"};
  return found->second;
}

constexpr std::size_t probe_floats = 64;
constexpr std::uint64_t probe_steps = 32; ///< More than a function is likely to gather.

/// Draws a float between -1 and 1 that is exact on every machine.
float drawn(std::mt19937_64& random) {
  return static_cast<float>(static_cast<double>(random() >> 40) * 0x1p-23 - 1.0);
}

std::uint32_t continued(std::uint32_t crc, std::span<const float> values) {
  return storage::detail::crc32c(std::as_bytes(values), crc);
}

/// Takes some steps on one stretch, or on one row, of a table.
std::uint32_t probe(const table_spec& table, const function_spec& function, std::uint32_t crc) {
  const std::size_t count =
    table.is_sparse() ? table.width : std::min<std::uint64_t>(table.size(), probe_floats);
  std::mt19937_64 random{1};
  std::vector<float> weights(count), gradient(count), state(count * function.state_per_weight);
  for (float& x : weights)
    x = drawn(random);
  for (std::uint64_t step = 1; step <= probe_steps; ++step) {
    for (float& x : gradient)
      x = drawn(random);
    const step_info info{.table = {},
                         .first = 0,
                         .step = step,
                         .staleness = step % 3,
                         .rate = 0.1f,
                         .scale = 0.5f,
                         .parameters = table.optimizer.parameters};
    if (const auto done = take_step(function, table.optimizer, info, weights, state, gradient);
        !done)
      break; // The values are unspecified.
    crc = continued(continued(crc, weights), state);
  }
  return crc;
}

} // namespace

std::vector<function_probe> probes_of(const job_spec& job, const server_functions& functions) {
  std::map<std::string, std::uint32_t> all;
  for (const auto& table : job.tables)
    if (has_function(table)) {
      auto& crc = all[table.optimizer.function];
      crc = probe(table, functions.at(table.optimizer.function), crc);
    }
  std::vector<function_probe> made;
  for (const auto& [name, crc] : all)
    made.push_back({name, crc});
  return made;
}

result<void> resolve_functions(std::vector<table_spec>& tables, const server_functions& functions) {
  for (auto& table : tables) {
    if (!has_function(table))
      continue;
    const auto found = find_function(table, functions);
    if (!found)
      return found.error();
    table.optimizer.function_state = found->state_per_weight;
  }
  return {};
}

result<void> check_functions(const job_spec& job, const server_functions& functions) {
  auto mine = job.tables;
  if (auto resolved = resolve_functions(mine, functions); !resolved)
    return resolved;
  for (std::size_t i = 0; i < mine.size(); ++i)
    if (const auto& here = mine[i].optimizer, &there = job.tables[i].optimizer;
        here.function_state != there.function_state)
      return {errc::wrong_job,
              "the function '" + here.function + "' has " + std::to_string(here.function_state)
                + " floats of state for a weight here and " + std::to_string(there.function_state)
                + " in the job: build all hosts alike"};
  return {};
}

std::vector<function_spec> functions_of(const job_spec& job, const server_functions& functions) {
  std::vector<function_spec> all(job.tables.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    if (has_function(job.tables[i]))
      if (const auto found = functions.find(job.tables[i].optimizer.function);
          found != functions.end())
        all[i] = found->second;
  return all;
}

std::size_t state_per_weight(const optimizer_spec& optimizer) {
  return optimizer.kind == optimizer_kind::user ? optimizer.function_state
                                                : kernels::state_per_weight(optimizer.kind);
}

bool counts_steps(const optimizer_spec& optimizer) {
  return optimizer.kind == optimizer_kind::user || kernels::counts_steps(optimizer.kind);
}

result<void> take_step(const function_spec& function, const optimizer_spec& optimizer,
                       const step_info& info, std::span<float> weights, std::span<float> state,
                       std::span<const float> gradient) {
  const auto wrong = [&](errc code, const std::string& what) {
    return failure{code, "function '" + optimizer.function + "' " + what};
  };
  const user_call here{{"server function", optimizer.function}};
  try {
    if (!function.step(info, weights, state, gradient)
        || kernels::first_non_finite(weights) < weights.size())
      return wrong(errc::non_finite, "gave a value that is not finite");
    return {};
  } catch (...) {
    return wrong(errc::contract_broken, "threw (" + exception_text() + ")");
  }
}

} // namespace troupe
