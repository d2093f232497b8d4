// Writes and reads the launcher's instructions to the processes that it starts. The file is
// RUN_DIR/cluster.json, readable by its user only.
#pragma once

#include "actors/graph/launch/member_plan.hpp"
#include "actors/graph/options/fields.hpp"
#include "actors/transport/transport.hpp"
#include "base/error.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe {

struct cluster_file {
  member_plans members;
  endpoint coordinator; ///< Port 0: the job has none.
  std::uint64_t secret = 0;
  std::string listen_host;     ///< Address where servers listen, on any port.
  bool open_to_others = false; ///< Other hosts, which do not know the secret, may join.
};

/// Errors: io_failed.
result<void> write_cluster_file(const std::filesystem::path& run_directory,
                                const cluster_file& what, const field_table& table = all_fields());
/// Errors: io_failed, malformed.
result<cluster_file> read_cluster_file(const std::filesystem::path& run_directory,
                                       const field_table& table = all_fields());

/// Returns the error of a file that reads well and has values that no launcher writes.
failure damaged_cluster_file(const std::filesystem::path& run_directory);

} // namespace troupe
