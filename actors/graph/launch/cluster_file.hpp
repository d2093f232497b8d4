// Writes and reads the launcher's instructions to the processes that it starts. The file is
// RUN_DIR/cluster.json, readable by its user only.
#pragma once

#include "actors/protocol/coordinator/checkpoint_schedule.hpp"
#include "actors/transport/transport.hpp"
#include "base/error.hpp"
#include "serialization/job.hpp"

#include <cstdint>
#include <filesystem>

namespace troupe {

struct cluster_file {
  job_spec job;
  endpoint coordinator; ///< Port 0: the job has none.
  std::uint64_t secret = 0;
  std::string listen_host;     ///< Address where servers listen, on any port.
  bool open_to_others = false; ///< Other hosts, which do not know the secret, may join.
  std::filesystem::path checkpoint_directory;
  checkpoint_options checkpointing;
  bool resume = false;
};

/// Errors: io_failed.
result<void> write_cluster_file(const std::filesystem::path& run_directory,
                                const cluster_file& what);
/// Errors: io_failed, malformed.
result<cluster_file> read_cluster_file(const std::filesystem::path& run_directory);

} // namespace troupe
