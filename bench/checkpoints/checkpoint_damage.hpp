// Makes random damages of a checkpoint's files, as disks, kernels and people do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace troupe::bench {

/// Content of each file below a folder, by its name there, with '/'.
using file_tree = std::map<std::string, std::string>;

file_tree read_tree(const std::filesystem::path& folder);

/// New content of files; nullopt: the file is gone.
using file_changes = std::map<std::string, std::optional<std::string>>;

/// The choices for a damage.
struct damage_source {
  std::mt19937_64 dice;
  const file_tree& files; ///< Files of the checkpoint to be damaged.
  /// Checkpoints taken before it, or for the first one after it. Not empty.
  std::vector<const file_tree*> others;
};

struct damage_kind {
  const char* name;
  file_changes (*make)(damage_source& from);
};

const std::vector<damage_kind>& damage_kinds();

/// Returns true if all stays as it was, as after a swap of two equal files.
bool changes_nothing(const file_tree& files, const file_changes& changes);

void write_changes(const std::filesystem::path& folder, const file_changes& changes);
/// Undoes the changes.
void repair(const std::filesystem::path& folder, const file_tree& files,
            const file_changes& changes);

} // namespace troupe::bench
