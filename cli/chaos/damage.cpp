#include "cli/chaos/damage.hpp"

#include "actors/graph/launch/cluster_file.hpp"
#include "storage/checkpoint_directory.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

namespace troupe::chaos {

namespace fs = std::filesystem;

namespace {

std::uint64_t number_of(const fs::path& checkpoint) {
  const std::string name = checkpoint.filename();
  std::uint64_t number = 0;
  std::from_chars(name.data(), name.data() + name.size(), number);
  return number;
}

/// Returns the committed checkpoints without the damaged ones, oldest first.
std::vector<fs::path> sound_ones(const fs::path& checkpoints,
                                 const std::vector<flipped_file>& damaged) {
  std::vector<fs::path> all;
  std::error_code none;
  for (const auto& each : fs::directory_iterator{checkpoints / "checkpoints", none})
    if (fs::exists(each.path() / "COMMIT", none)
        && std::ranges::find(damaged, number_of(each.path()), &flipped_file::checkpoint)
             == damaged.end())
      all.push_back(each.path());
  std::ranges::sort(all, {}, number_of);
  return all;
}

/// Returns the files in a fixed order, so that the same dice choose the same file.
std::vector<fs::path> files_in(const fs::path& directory) {
  std::vector<fs::path> all;
  std::error_code none;
  for (const auto& each : fs::recursive_directory_iterator{directory, none})
    if (each.is_regular_file(none) && each.file_size(none) > 0)
      all.push_back(each.path());
  std::ranges::sort(all);
  return all;
}

fs::path fill_file(const fs::path& directory) { return directory / "fill"; }

} // namespace

std::optional<flipped_file> flip_bit(const fs::path& checkpoints,
                                     const std::vector<flipped_file>& damaged, std::uint64_t dice) {
  const auto sound = sound_ones(checkpoints, damaged);
  if (sound.size() < 2)
    return std::nullopt;
  const auto& checkpoint = sound.back();
  const auto files = files_in(checkpoint);
  if (files.empty())
    return std::nullopt;
  const auto& path = files[dice % files.size()];
  std::ifstream file{path, std::ios::binary};
  std::string bytes{std::istreambuf_iterator<char>{file}, {}};
  if (bytes.empty())
    return std::nullopt;
  const auto bit = dice / files.size() % (8 * bytes.size());
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
  const auto beside = checkpoints / "flipped"; // A new file: the old one may have hard links.
  std::ofstream{beside, std::ios::binary} << bytes;
  std::error_code problem;
  fs::rename(beside, path, problem);
  if (problem)
    return std::nullopt;
  return flipped_file{number_of(checkpoint), fs::relative(path, checkpoint).string(), 0, {}};
}

result<void> try_flipped(const fs::path& run_directory, run_facts& run) {
  if (run.flips.empty())
    return {};
  const auto cluster = read_cluster_file(run_directory);
  if (!cluster)
    return cluster.error();
  for (auto& flip : run.flips) {
    const auto found =
      storage::verify(cluster->members.checkpoints, flip.checkpoint, cluster->members.job);
    if (found)
      flip.refused = false;
    else if (found.error().code == errc::damaged || found.error().code == errc::malformed)
      flip.refused = true;
  }
  return {};
}

void fill_disk(const fs::path& directory) {
  std::ofstream file{fill_file(directory), std::ios::binary | std::ios::app};
  for (std::size_t piece = 1 << 20; piece > 0; piece /= 2) {
    const std::string zeros(piece, '\0');
    while (file.write(zeros.data(), static_cast<std::streamsize>(zeros.size())).flush())
      ;
    file.clear();
  }
}

void free_disk(const fs::path& directory) {
  std::error_code none;
  fs::remove(fill_file(directory), none);
}

} // namespace troupe::chaos
