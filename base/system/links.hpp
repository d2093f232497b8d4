// Follows symbolic links by hand, because the kernel does not say where they lead.
#pragma once

#include "base/error.hpp"

#include <filesystem>

namespace troupe {

/// The end of a chain of symbolic links.
struct link_end {
  std::filesystem::path path; ///< No link; absent, if the last link dangles.
  /// The path is in a process's table of open files, as behind /dev/stdout and the shell's
  /// `>(...)`. Another process finds another file there.
  bool is_open_file = false;
};

/// Follows the links of the last name of `path`; links of folders are left to the kernel. Errors:
/// io_failed, for a circle of links.
result<link_end> follow_links(const std::filesystem::path& path);

} // namespace troupe
