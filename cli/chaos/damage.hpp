// Damages the checkpoints of a run: flips a bit, or fills the disk.
#pragma once

#include "base/error.hpp"
#include "cli/chaos/facts.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace troupe::chaos {

/// Flips one bit, chosen by `dice`, in a file of the newest committed checkpoint that is not
/// damaged yet. Files that share their bytes with it stay as they are. Returns nullopt if fewer
/// than two checkpoints are sound: a job without a good checkpoint fails, as it should.
std::optional<flipped_file> flip_bit(const std::filesystem::path& checkpoints,
                                     const std::vector<flipped_file>& damaged, std::uint64_t dice);
/// Finds out which of the damaged checkpoints the reader refuses. Errors: io_failed, malformed.
result<void> try_flipped(const std::filesystem::path& run_directory, run_facts& run);

/// Writes a file until the disk is full.
void fill_disk(const std::filesystem::path& directory);
void free_disk(const std::filesystem::path& directory);

} // namespace troupe::chaos
