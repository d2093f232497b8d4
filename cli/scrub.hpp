// `troupe scrub`: the checkpoints of a run, each read again and compared.
#pragma once

#include "cli/command.hpp"

#include <filesystem>

namespace troupe {

/// A run's directory, or one of checkpoints. Errors: io_failed; damaged where a checkpoint is.
result<void> scrub_checkpoints(const std::filesystem::path& directory);

command scrub_command(CLI::App& app);

} // namespace troupe
