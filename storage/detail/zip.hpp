// Reads and writes zip archives below 4 GiB, as a .npz needs them. Format: PKWARE APPNOTE. Members
// are stored uncompressed with a fixed date, so that equal members give equal bytes. Deflated
// members can be read.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::storage::detail {

class zip_writer {
public:
  /// Appends a member whose content is `head` followed by `tail`. Names are UTF-8. Errors:
  /// invalid_argument if the archive would reach 4 GiB, 65535 members, 64 KiB of name.
  result<void> add(std::string_view name, std::string_view head, std::string_view tail);
  /// Returns the whole archive.
  std::string finish();

private:
  std::string bytes_;
  std::string directory_;
  std::uint16_t members_ = 0;
};

struct zip_member {
  std::string name;
  std::string_view stored; ///< The stored bytes, borrowed from the input.
  bool deflated = false;
  std::uint32_t size = 0; ///< Bytes of the content.
  std::uint32_t crc32 = 0;
};

/// Returns members in the directory's order. Errors: invalid_argument (encrypted member, a method
/// other than deflate, zip64), malformed.
result<std::vector<zip_member>> read_zip(std::string_view bytes);

/// Returns the content, borrowed from the input of read_zip() or from `unpacked`. Errors: damaged
/// (CRC, size or deflate stream).
result<std::string_view> content_of(const zip_member& member, std::string& unpacked);

} // namespace troupe::storage::detail
