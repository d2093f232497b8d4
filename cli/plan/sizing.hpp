// Sizes of a parameter server: how long it talks, what it needs, what to choose.
#pragma once

#include <cstdint>
#include <string>

namespace troupe::plan {

struct server_needs {
  double parameter_bytes = 0;
  std::uint32_t workers = 1;
  std::uint32_t servers = 1;
  double step_seconds = 0.1;          ///< Of a worker's computation for one batch.
  double compress = 1;                ///< How many times smaller a pushed gradient is. >= 1.
  double network_per_second = 0;      ///< Bytes, of each host, in each direction.
  double disk_per_second = 0;         ///< Bytes read, of each server.
  std::uint32_t state_per_weight = 0; ///< Further floats of the optimiser: 2 for adam.
  std::uint32_t replicas = 1;
  std::uint32_t checkpoints = 3; ///< Kept on disk.
  double slowest = 1;            ///< Step of the slowest worker, in steps of the others. >= 1.
};

/// Times in seconds, rates in bytes a second. A push and the pull after it do not overlap.
struct server_sizes {
  double push_bytes = 0, pull_bytes = 0; ///< Of a worker in a step: its gradient, all values.
  double worker_seconds = 0;             ///< To push and pull over its own link.
  double server_seconds = 0; ///< For all workers over a server's link: O(workers / servers).
  double talk_seconds = 0;   ///< Of a step: the longer of the two.
  double worker_rate = 0;    ///< With which a worker pushes and pulls in the time of a step.
  double servers = 0;        ///< That answer all workers in the time of a step.
  double ring_seconds = 0;   ///< The same sum by an all-reduce in a ring of the workers.
  double read_seconds = 0;   ///< Recovery of a server: its share of a checkpoint, from disk;
  double refill_seconds = 0; ///< then its values to all workers, or with replicas all from one.
  double disk_bytes = 0;     ///< Of the checkpoints: one copy of each, whatever the replicas.
};

server_sizes sizes_of(const server_needs& needs);

/// What to choose and why, each one line.
struct server_advice {
  std::string strategy;
  std::string consistency;
};

server_advice advice_for(const server_needs& needs, const server_sizes& sizes);

/// Both, for people; several lines.
std::string sizing_text(const server_needs& needs);

} // namespace troupe::plan
