// Writes and reads the launcher's instructions to the processes that it starts. The file is
// RUN_DIR/cluster.json, readable by its user only.
#pragma once

#include "actors/graph/options/fields.hpp"
#include "actors/graph/plan.hpp"
#include "actors/transport/transport.hpp"
#include "base/error.hpp"
#include "serialization/job.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe {

struct cluster_file {
  job_spec job;
  endpoint coordinator; ///< Port 0: the job has none.
  std::uint64_t secret = 0;
  std::string listen_host;     ///< Address where servers listen, on any port.
  bool open_to_others = false; ///< Other hosts, which do not know the secret, may join.
  std::filesystem::path checkpoint_directory;
  /// Fields of the graph for members that make none: those that the table sends to their role.
  run_options for_coordinator, for_servers;
  bool resume = false;
  node_roles nodes; ///< Of the graph, for logs.
};

/// Returns the file of a plan, without places: those are the launcher's.
cluster_file cluster_file_of(const plan& what, const field_table& table = all_fields());

/// Errors: io_failed.
result<void> write_cluster_file(const std::filesystem::path& run_directory,
                                const cluster_file& what, const field_table& table = all_fields());
/// Errors: io_failed, malformed.
result<cluster_file> read_cluster_file(const std::filesystem::path& run_directory,
                                       const field_table& table = all_fields());

} // namespace troupe
