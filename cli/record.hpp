// `troupe record`: what the record of a run (--record DIR) says, for people.
#pragma once

#include "cli/command.hpp"
#include "storage/push_history.hpp"

#include <string>

namespace troupe {

command record_command(CLI::App& app);

/// Several lines: pushes, workers, bytes, staleness, gaps.
std::string record_summary(const storage::push_history& history);
/// One line for each record, by chain and version; times in seconds from the first one.
std::string record_lines(const storage::push_history& history);

} // namespace troupe
