// Locks a directory for one process at a time.
#pragma once

#include "base/error.hpp"
#include "base/system/descriptor.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>

namespace troupe::storage {

/// Holds an exclusive lock on a directory (made if absent) for its lifetime, by flock on DIR/LOCK.
/// The kernel releases it when the process ends, in any way. The file itself stays.
class directory_lock {
public:
  /// Errors: in_use (names the directory and the pid that holds it), io_failed.
  static result<directory_lock> acquire(const std::filesystem::path& directory);

private:
  explicit directory_lock(descriptor file) : file_(std::move(file)) {}
  descriptor file_;
};

/// Returns the random number of the newest lock holder, or nullopt if there is none. Processes of
/// several hosts compare it to tell whether they see one directory.
std::optional<std::uint64_t> directory_mark(const std::filesystem::path& directory);

} // namespace troupe::storage
