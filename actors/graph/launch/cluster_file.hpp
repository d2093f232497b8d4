// Writes and reads the launcher's instructions to the processes that it starts. The file is
// RUN_DIR/cluster.json, readable by its user only.
#pragma once

#include "actors/graph/plan.hpp"
#include "actors/protocol/coordinator/checkpoint_options.hpp"
#include "actors/protocol/coordinator/straggler_measure.hpp"
#include "actors/transport/transport.hpp"
#include "base/error.hpp"
#include "serialization/job.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

namespace troupe {

struct cluster_file {
  job_spec job;
  endpoint coordinator; ///< Port 0: the job has none.
  std::uint64_t secret = 0;
  std::string listen_host;     ///< Address where servers listen, on any port.
  bool open_to_others = false; ///< Other hosts, which do not know the secret, may join.
  std::filesystem::path checkpoint_directory;
  // -- of the graph, which only the launcher and the workers make --
  checkpoint_options checkpointing;
  std::chrono::milliseconds scrub_interval{0};
  std::size_t apply_batch = 1;
  std::uint64_t verify_replicas = 0;
  std::optional<straggler_measure> stragglers;
  double straggler_time_scale = 1;

  bool resume = false;
  node_roles nodes; ///< Of the graph, for logs.
};

/// Returns the file of a plan, without places: those are the launcher's.
cluster_file cluster_file_of(const plan& what);

/// Errors: io_failed.
result<void> write_cluster_file(const std::filesystem::path& run_directory,
                                const cluster_file& what);
/// Errors: io_failed, malformed.
result<cluster_file> read_cluster_file(const std::filesystem::path& run_directory);

} // namespace troupe
