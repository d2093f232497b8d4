#include "actors/tables/server_functions.hpp"

#include "base/exception_text.hpp"
#include "kernels/optimizer.hpp"

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

} // namespace

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
  try {
    if (!function.step(info, weights, state, gradient))
      return wrong(errc::non_finite, "gave a value that is not finite");
    return {};
  } catch (...) {
    return wrong(errc::contract_broken, "threw (" + exception_text() + ")");
  }
}

} // namespace troupe
