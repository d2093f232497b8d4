#include "storage/checkpoint_directory.hpp"

#include "base/system/file.hpp"
#include "storage/detail/paths.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <set>
#include <string>
#include <system_error>
#include <utility>

namespace troupe::storage {

namespace fs = std::filesystem;

namespace {

/// Returns the numbers of all checkpoints, committed or not, newest first.
result<std::vector<std::uint64_t>> numbers_in(const fs::path& directory) {
  const auto home = detail::checkpoints_path(directory);
  std::vector<std::uint64_t> numbers;
  std::error_code error;
  fs::directory_iterator at{home, error};
  if (error == std::errc::no_such_file_or_directory)
    return numbers;
  for (const fs::directory_iterator end; !error && at != end; at.increment(error)) {
    const auto name = at->path().filename().string();
    std::uint64_t number = 0;
    std::from_chars(name.data(), name.data() + name.size(), number);
    // The comparison leaves out files of any other name.
    if (at->path() == detail::checkpoint_path(directory, number))
      numbers.push_back(number);
  }
  if (error)
    return io_failure("list", home, error);
  std::sort(numbers.begin(), numbers.end(), std::greater{});
  return numbers;
}

/// Checks a part's file names. RocksDB reads all files it finds, so none may be extra or missing.
result<void> check_names(const fs::path& directory, const manifest& what,
                         const checkpoint_part& part) {
  const auto folder = detail::part_name(part.shard);
  std::set<std::string> expected;
  for (const auto& file : part.files)
    expected.insert(file.name);
  const auto home = detail::checkpoint_path(directory, what.checkpoint) / folder;
  std::error_code error;
  for (fs::directory_iterator at{home, error}, end; !error && at != end; at.increment(error)) {
    const auto name = folder + "/" + at->path().filename().string();
    if (expected.erase(name) == 0)
      return detail::damaged_checkpoint(directory, what.checkpoint,
                                        "file " + name + " does not belong to it");
  }
  if (error && error != std::errc::no_such_file_or_directory)
    return io_failure("list", home, error);
  if (!expected.empty())
    return detail::damaged_checkpoint(directory, what.checkpoint,
                                      "file " + *expected.begin() + " is missing");
  return {};
}

result<void> check_content(const fs::path& directory, const manifest& what, const file_entry& file,
                           bool from_disk) {
  const auto path = detail::checkpoint_path(directory, what.checkpoint) / file.name;
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error)
    return io_failure("read", path, error);
  if (size != file.size_bytes)
    return detail::damaged_checkpoint(directory, what.checkpoint,
                                      "file " + file.name + " has " + std::to_string(size)
                                        + " bytes instead of " + std::to_string(file.size_bytes));
  const auto sum = sum_file(path, from_disk);
  if (!sum)
    return sum.error();
  if (*sum != file_sum{file.size_bytes, file.crc32c})
    return detail::damaged_checkpoint(directory, what.checkpoint,
                                      "the checksum of file " + file.name + " is wrong");
  return {};
}

/// Checks a checkpoint's files. A failure with io_failed names the unreadable checkpoint.
result<void> check_files(const fs::path& directory, const manifest& what, bool from_disk) {
  const auto named = [&](const failure& why) -> failure {
    if (why.code == errc::damaged)
      return why;
    return {why.code, detail::title(directory, what.checkpoint) + " is unreadable: " + why.text};
  };
  for (const auto& part : what.parts)
    if (auto names = check_names(directory, what, part); !names)
      return named(names.error());
  for (const auto& part : what.parts)
    for (const auto& file : part.files)
      if (auto content = check_content(directory, what, file, from_disk); !content)
        return named(content.error());
  return {};
}

bool has_manifest(const fs::path& directory, std::uint64_t checkpoint) {
  std::error_code error;
  return fs::exists(detail::checkpoint_path(directory, checkpoint) / detail::manifest_name, error);
}

enum class standing {
  good,
  damaged,
  uncommitted,
  unknown, ///< It cannot be read now.
};

standing standing_of(const fs::path& directory, std::uint64_t checkpoint) {
  std::error_code error;
  const auto commit = detail::checkpoint_path(directory, checkpoint) / detail::commit_name;
  const bool committed = fs::exists(commit, error);
  if (error)
    return standing::unknown;
  if (!committed)
    return standing::uncommitted;
  const auto mark = detail::checkpoint_path(directory, checkpoint) / detail::damage_name;
  if (fs::exists(mark, error))
    return standing::damaged;
  const auto what = load_manifest(directory, checkpoint);
  if (what)
    return standing::good;
  return what.error().code == errc::damaged ? standing::damaged : standing::unknown;
}

result<void> mark_damaged(const fs::path& directory, std::uint64_t checkpoint, const failure& why) {
  return replace_file(detail::checkpoint_path(directory, checkpoint) / detail::damage_name,
                      why.text + "\n");
}

/// Removes COMMIT first, so that an interrupted removal does not look like a damaged checkpoint.
result<void> remove_checkpoint(const fs::path& directory, std::uint64_t checkpoint) {
  const auto home = detail::checkpoint_path(directory, checkpoint);
  for (const auto* name : {detail::commit_name, detail::manifest_name}) {
    std::error_code error;
    fs::remove(home / name, error);
    if (error)
      return io_failure("remove", home / name, error);
  }
  if (auto synced = sync_directory(home); !synced)
    return synced;
  return remove_tree(home);
}

} // namespace

result<std::vector<std::uint64_t>> retain(const fs::path& directory, std::size_t keep) {
  const auto numbers = numbers_in(directory);
  if (!numbers)
    return numbers.error();
  keep = std::max<std::size_t>(keep, 1);
  std::vector<std::uint64_t> removed;
  std::size_t kept = 0;
  for (const auto number : *numbers) {
    const auto state = standing_of(directory, number);
    if (state == standing::unknown)
      continue; // It is neither kept nor removed, because it may be good.
    // Newer than all committed ones: it may be unfinished.
    if (state == standing::uncommitted && kept == 0)
      continue;
    if (state != standing::uncommitted && kept < keep) {
      kept += state == standing::good ? 1 : 0;
      continue;
    }
    if (auto done = remove_checkpoint(directory, number); !done)
      return done.error();
    removed.push_back(number);
  }
  return removed;
}

result<checkpoint_search_result> newest_good(const fs::path& directory, const job_spec& job,
                                             const std::vector<std::uint64_t>& unreadable) {
  const auto numbers = numbers_in(directory);
  if (!numbers)
    return numbers.error();
  checkpoint_search_result what;
  for (const auto number : *numbers) {
    if (!is_committed(directory, number)) {
      if (has_manifest(directory, number))
        what.refused.push_back(
          {errc::io_failed, detail::title(directory, number)
                              + " has no COMMIT: it was never committed, or the "
                                "file was lost"});
      continue;
    }
    if (std::find(unreadable.begin(), unreadable.end(), number) != unreadable.end()) {
      what.refused.push_back(
        detail::damaged_checkpoint(directory, number, "a server could not read it"));
      continue;
    }
    auto checked = verify(directory, number, job);
    if (checked) {
      what.newest = *std::move(checked);
      return what;
    }
    if (checked.error().code == errc::wrong_job)
      return checked.error();
    if (checked.error().code == errc::damaged)
      (void)mark_damaged(directory, number,
                         checked.error()); // The next reader then sees the damage, too.
    what.refused.push_back(checked.error());
  }
  return what;
}

result<manifest> verify(const fs::path& directory, std::uint64_t checkpoint, const job_spec& job) {
  auto what = load_manifest(directory, checkpoint);
  if (!what)
    return what;
  if (auto fits = check_job(directory, *what, job); !fits)
    return fits.error();
  if (auto whole = check_files(directory, *what, /* from_disk = */ false); !whole)
    return whole.error();
  return what;
}

result<std::vector<std::uint64_t>> committed(const fs::path& directory) {
  auto numbers = numbers_in(directory);
  if (!numbers)
    return numbers;
  std::erase_if(*numbers, [&](std::uint64_t number) { return !is_committed(directory, number); });
  std::reverse(numbers->begin(), numbers->end());
  return numbers;
}

result<manifest> scrub(const fs::path& directory, std::uint64_t checkpoint) {
  auto what = load_manifest(directory, checkpoint);
  auto whole =
    what ? check_files(directory, *what, /* from_disk = */ true) : result<void>{what.error()};
  if (whole)
    return what;
  if (whole.error().code != errc::damaged)
    return whole.error();
  if (!is_committed(directory, checkpoint)) // Its files were removed one by one.
    return {errc::io_failed,
            detail::title(directory, checkpoint) + " was removed while it was read"};
  if (auto marked = mark_damaged(directory, checkpoint, whole.error()); !marked)
    return marked.error();
  return whole.error();
}

std::uint64_t last_number(const fs::path& directory) {
  const auto numbers = numbers_in(directory);
  return numbers && !numbers->empty() ? numbers->front() : 0;
}

} // namespace troupe::storage
