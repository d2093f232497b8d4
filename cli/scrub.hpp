// `troupe scrub` reads each checkpoint of a run again and verifies it.
#pragma once

#include "cli/command.hpp"

#include <filesystem>

namespace troupe {

/// Checks all checkpoints of a run's directory, or of a directory of checkpoints.
/// Errors: io_failed; damaged if a checkpoint is.
result<void> scrub_checkpoints(const std::filesystem::path& directory);

command scrub_command(CLI::App& app);

} // namespace troupe
