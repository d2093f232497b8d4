// Computes a parameter server's times and sizes, and advises a strategy and a consistency.
#pragma once

#include <cstdint>
#include <string>

namespace troupe::planning {

struct server_needs {
  double parameter_bytes = 0;
  std::uint32_t workers = 1;
  std::uint32_t servers = 1;
  double step_seconds = 0.1;          ///< A worker's computation for one batch.
  double compress = 1;                ///< How many times smaller a pushed gradient is. >= 1.
  double network_per_second = 0;      ///< Bytes, for each host, in each direction.
  double disk_per_second = 0;         ///< Bytes that each server reads.
  std::uint32_t state_per_weight = 0; ///< Further floats of the optimiser: 2 for adam.
  std::uint32_t replicas = 1;
  std::uint32_t checkpoints = 3; ///< Number kept on disk.
  double slowest = 1;            ///< Step of the slowest worker, in steps of the others. >= 1.
};

/// Times in seconds, rates in bytes a second. A push and the pull after it do not overlap.
struct server_sizes {
  double push_bytes = 0, pull_bytes = 0; ///< A worker's gradient and all values, in a step.
  double worker_seconds = 0;             ///< Time to push and pull over a worker's own link.
  double server_seconds = 0; ///< All workers over a server's link: O(workers / servers).
  double talk_seconds = 0;   ///< Communication of a step: the longer of the two.
  double worker_rate = 0;    ///< Rate at which a worker pushes and pulls within a step.
  double servers = 0;        ///< Number that answers all workers within a step.
  double ring_seconds = 0;   ///< The same sum by an all-reduce in a ring of the workers.
  double read_seconds = 0;   ///< Recovery of a server reads its share of a checkpoint,
  double refill_seconds = 0; ///< then sends all values, or copies its share from a replica.
  double disk_bytes = 0;     ///< All checkpoints: one copy of each, whatever the replicas.
};

server_sizes sizes_of(const server_needs& needs);

/// Says which strategy and consistency to choose and why, each in one line.
struct server_advice {
  std::string strategy;
  std::string consistency;
};

server_advice advice_for(const server_needs& needs, const server_sizes& sizes);

/// Returns the sizes and the advice for people; several lines.
std::string sizing_text(const server_needs& needs);

} // namespace troupe::planning
