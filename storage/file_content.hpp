// Recognises formats by the first bytes of a file, also formats that people take for data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::storage {

enum class file_format : std::uint8_t {
  gzip,
  bzip2,
  xz,
  packed, ///< By any other program.
  zip,
  npz,
  npy,
  safetensors,
  other,
};

struct file_content {
  file_format format = file_format::other;
  std::string_view name;        ///< "zstd", "an HTML page".
  std::string_view advice = {}; ///< For a format that is not packed: the end of text().

  bool is_packed() const { return format <= file_format::zip; }
  /// Returns the name of the content, and the advice if there is one: "zstd: unpack it first", "an
  /// HTML page, not the file itself: download the file again".
  std::string text() const;
};

/// Bytes at the start of a file that content_of() looks at.
constexpr std::size_t file_head_bytes = 512;

/// Recognises the content of a file by its first bytes; nullopt if they are of no known format.
/// Plain text, numbers and IDX files are of none.
std::optional<file_content> content_of(std::string_view head);

} // namespace troupe::storage
