// Uses one thing of each installed library.
#include "actors/graph/graph.hpp"
#include "kernels/vector_ops.hpp"
#include "serialization/job.hpp"
#include "storage/checkpoint_directory.hpp"

#include <array>
#include <cstdio>

int main() {
  troupe::job_spec job;
  job.name = "consumer";
  job.samples = 1000;
  job.tables.push_back({.name = "weights", .shape = {10, 10}});
  if (const auto valid = troupe::validate(job); !valid) {
    std::printf("%s\n", valid.error().text.c_str());
    return 1;
  }
  const std::array<float, 2> values{3.0f, 4.0f};
  const auto found = troupe::storage::newest_good("/nonexistent", job);
  std::printf("%zu %d\n", static_cast<std::size_t>(troupe::kernels::squared_norm(values)),
              static_cast<bool>(found));
  return troupe::graph{}.validate() ? 1 : 0;
}
