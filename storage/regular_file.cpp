#include "storage/regular_file.hpp"

#include "base/system/links.hpp"

#include <system_error>

namespace troupe::storage {

namespace fs = std::filesystem;

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
  if (const auto end = follow_links(path); end && end->is_open_file)
    return "an open file of one process";
  return std::nullopt;
}

} // namespace troupe::storage
