#include "cli/scrub.hpp"

#include "base/command_line.hpp"
#include "storage/checkpoint_directory.hpp"

#include "CLI/CLI.hpp"
#include "fmt/format.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

namespace troupe {

namespace {

std::filesystem::path checkpoints_of(const std::filesystem::path& directory) {
  std::error_code absent;
  const auto inside = directory / "checkpoints";
  return std::filesystem::exists(inside / "checkpoints", absent) ? inside : directory;
}

std::string line_of(const storage::manifest& what) {
  std::uint64_t size_bytes = 0;
  for (const auto& part : what.parts)
    for (const auto& file : part.files)
      size_bytes += file.size_bytes;
  return fmt::format("good, {} shards, {:.1f} MB, batches below {}", what.parts.size(),
                     static_cast<double>(size_bytes) * 1e-6, what.cursor.value);
}

} // namespace

result<void> scrub_checkpoints(const std::filesystem::path& directory) {
  const auto home = checkpoints_of(directory);
  const auto all = storage::committed(home);
  if (!all)
    return all.error();
  if (!std::filesystem::exists(directory))
    return {errc::io_failed, "there is no directory " + directory.string()};
  if (all->empty())
    return {errc::io_failed, "no committed checkpoint lies in " + home.string()};
  std::size_t bad = 0;
  for (const auto number : *all) {
    const auto whole = storage::scrub(home, number);
    if (!whole && !storage::is_committed(home, number)) { // The run keeps newer ones.
      fmt::print("{:>8}  removed meanwhile\n", number);
      continue;
    }
    bad += whole ? 0 : 1;
    fmt::print("{:>8}  {}\n", number, whole ? line_of(*whole) : whole.error().text);
  }
  if (bad > 0)
    return {errc::damaged, fmt::format("{} of {} checkpoints cannot be used", bad, all->size())};
  return {};
}

command scrub_command(CLI::App& app) {
  const auto directory = std::make_shared<std::filesystem::path>();
  auto* const words =
    app.add_subcommand("scrub", "Reads the checkpoints of a run again, and says which are good");
  words->add_option("DIR", *directory, "The run's directory, or that of its checkpoints")
    ->check(path_fault)
    ->required();
  return {words, [directory] { return scrub_checkpoints(*directory); }};
}

} // namespace troupe
