#include "storage/regular_file.hpp"

#include <system_error>

namespace troupe::storage {

namespace fs = std::filesystem;

namespace {

/// Returns whether the path leads through a process's table of open files, as /dev/stdin and the
/// shell's `<(...)` do. Another process finds another file there.
bool is_descriptor(fs::path path) {
  constexpr int links_max = 40; // The kernel follows 40 symbolic links too.
  for (int i = 0; i < links_max; ++i) {
    std::error_code error;
    const fs::path folder = fs::canonical(path.has_parent_path() ? path.parent_path() : ".", error);
    if (error)
      return false;
    if (folder.filename() == "fd" && folder.native().starts_with("/proc/"))
      return true;
    const fs::path target = fs::read_symlink(folder / path.filename(), error);
    if (error)
      return false;
    path = target.is_absolute() ? target : folder / target;
  }
  return false;
}

} // namespace

std::optional<std::string> other_than_file(const fs::path& path) {
  std::error_code ignored;
  switch (fs::status(path, ignored).type()) {
  case fs::file_type::directory: return "a directory";
  case fs::file_type::fifo: return "a pipe";
  case fs::file_type::socket: return "a socket";
  case fs::file_type::block:
  case fs::file_type::character: return "a device";
  default: break;
  }
  if (is_descriptor(path))
    return "an open file of one process";
  return std::nullopt;
}

std::optional<std::string> pointer_to_file(std::string_view bytes) {
  if (bytes.starts_with("version https://git-lfs.github.com/spec/"))
    return "a git-lfs pointer, not the file itself: fetch that with git lfs pull";
  if (bytes.starts_with("/annex/objects/"))
    return "a git-annex pointer, not the file itself: fetch that with git annex get";
  return std::nullopt;
}

} // namespace troupe::storage
