// One process at a time in a directory.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>

namespace troupe::storage {

/// Holds an exclusive lock on a directory (made if absent) for its lifetime, by flock on DIR/LOCK.
/// The kernel lets go of it when the process ends, however it ends. The file itself stays.
class directory_lock {
public:
  /// Errors: in_use (names the directory and the pid that holds it), io_failed.
  static result<directory_lock> acquire(const std::filesystem::path& directory);
  directory_lock(directory_lock&&) noexcept;
  directory_lock& operator=(directory_lock&&) noexcept;
  ~directory_lock();

private:
  explicit directory_lock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

/// Returns the number that the newest holder of the lock drew, by which processes of several hosts
/// tell whether they see one directory; nothing where there is none.
std::optional<std::uint64_t> directory_mark(const std::filesystem::path& directory);

} // namespace troupe::storage
