#include "base/system/links.hpp"

#include "base/system/file.hpp"

#include <cerrno>
#include <system_error>

namespace troupe {

namespace fs = std::filesystem;

namespace {

constexpr int links_max = 40; // The kernel follows 40 links, too.

bool is_table_of_open_files(const fs::path& folder) {
  std::error_code absent;
  const auto real = fs::canonical(folder, absent);
  return !absent && real.filename() == "fd" && real.native().starts_with("/proc/");
}

} // namespace

result<link_end> follow_links(const fs::path& path) {
  auto now = path;
  for (int i = 0; i <= links_max; ++i) {
    const auto folder = now.has_parent_path() ? now.parent_path() : fs::path{"."};
    if (is_table_of_open_files(folder))
      return link_end{now, true};
    std::error_code no_link;
    const auto target = fs::read_symlink(now, no_link);
    if (no_link)
      return link_end{now, false};
    now = now.parent_path() / target; // An absolute target takes the place of the whole path.
  }
  return io_failure("follow", path, ELOOP);
}

} // namespace troupe
