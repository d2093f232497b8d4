// What a launcher says of its run, line by line, and in the report that it leaves.
#pragma once

#include "cli/chaos/facts.hpp"

#include <filesystem>
#include <string>

namespace troupe::chaos {

/// Adds what the line says: an event, the sums of count_batches, or progress.
void read_launcher_line(const std::string& line, double at, run_facts& run);
/// The file of --report; nothing where there is none.
void read_report(const std::filesystem::path& file, run_facts& run);

} // namespace troupe::chaos
