// `troupe record` shows the trace of a run (--record DIR).
#pragma once

#include "cli/command.hpp"
#include "storage/push_history.hpp"

#include <string>

namespace troupe {

command record_command(CLI::App& app);

/// Returns several lines: pushes, workers, bytes, staleness, gaps.
std::string record_summary(const storage::push_history& history);
/// Returns one line for each push, by chain and version. Times are seconds from the first one.
std::string record_lines(const storage::push_history& history);

} // namespace troupe
