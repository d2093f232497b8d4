// Parses a launcher's output, line by line, and the report that it leaves.
#pragma once

#include "cli/chaos/facts.hpp"

#include <filesystem>
#include <string>

namespace troupe::chaos {

/// Adds what a line of events.jsonl says: an event, the sums of count_batches, or progress.
void read_event_line(const std::string& line, double at, run_facts& run);
/// Adds the file of --report; does not change `run` if there is no file.
void read_report(const std::filesystem::path& file, run_facts& run);

} // namespace troupe::chaos
