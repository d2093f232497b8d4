// Zip archives of stored (uncompressed) members, below 4 GiB: all that a .npz needs. Format:
// PKWARE APPNOTE. Members have a fixed date, so that equal members give equal bytes.
#pragma once

#include "serialization/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::storage::detail {

class zip_writer {
public:
  /// Appends a member whose content is `head` followed by `tail`. Names are UTF-8.
  /// Errors: invalid_argument where the archive would reach 4 GiB, 65535 members, 64 KiB of name.
  result<void> add(std::string_view name, std::string_view head, std::string_view tail);
  /// The whole archive.
  std::string finish();

private:
  std::string bytes_;
  std::string directory_;
  std::uint16_t members_ = 0;
};

struct zip_member {
  std::string name;
  std::string_view content; ///< Borrowed from the input.
};

/// In the directory's order.
/// Errors: invalid_argument (compressed or encrypted member, zip64), malformed, damaged (CRC).
result<std::vector<zip_member>> read_zip(std::string_view bytes);

} // namespace troupe::storage::detail
