// Random damages of a checkpoint's files, as disks, kernels and people do them.
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

/// New content of files; none: the file is gone.
using file_changes = std::map<std::string, std::optional<std::string>>;

/// What damages choose from.
struct damage_source {
  std::mt19937_64 dice;
  const file_tree& files; ///< Of the checkpoint to be damaged.
  /// Those taken before it; of the first one, those taken after it. Not empty.
  std::vector<const file_tree*> others;
};

struct damage_kind {
  const char* name;
  file_changes (*make)(damage_source& from);
};

const std::vector<damage_kind>& damage_kinds();

/// Whether all is as it was: two equal files that were swapped, say.
bool changes_nothing(const file_tree& files, const file_changes& changes);

void write_changes(const std::filesystem::path& folder, const file_changes& changes);
/// Puts back what the changes took.
void repair(const std::filesystem::path& folder, const file_tree& files,
            const file_changes& changes);

} // namespace troupe::bench
