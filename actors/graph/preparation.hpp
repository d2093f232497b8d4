// What a run needs before its first process starts, so that what is wrong is said at once.
#pragma once

#include "actors/graph/options.hpp"
#include "serialization/job.hpp"
#include "storage/directory_lock.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe {

struct prepared_directories {
  std::optional<storage::directory_lock> lock; ///< Of the directory of checkpoints.
  std::vector<std::string> remarks;            ///< Lines for the user.
};

/// Makes the directories and fills in their names in `options`; locks the one of checkpoints, sees
/// whether it fits --resume, and writes what --import asks for.
/// Errors: io_failed, invalid_argument, and those of import_parameters().
result<prepared_directories> prepare_directories(const std::string& name, run_options& options,
                                                 const job_spec& job);

/// The address of this host that packets to `where` leave from.
/// Errors: invalid_argument where that is no IPv4 address, io_failed.
result<std::string> address_towards(const endpoint& where);

} // namespace troupe
