// Writes and reads fixed-width integers in a string of bytes; never reads past the end.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace troupe::storage::detail {

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span{text.data(), text.size()});
}

/// Appends little-endian integers (records) or big-endian ones (keys, which sort by value).
class byte_writer {
public:
  template <std::unsigned_integral T>
  byte_writer& little(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i)
      bytes_.push_back(static_cast<char>((std::uint64_t{value} >> (8 * i)) & 0xff));
    return *this;
  }
  template <std::unsigned_integral T>
  byte_writer& big(T value) {
    for (std::size_t i = sizeof(T); i-- > 0;)
      bytes_.push_back(static_cast<char>((std::uint64_t{value} >> (8 * i)) & 0xff));
    return *this;
  }
  std::string take() { return std::move(bytes_); }

private:
  std::string bytes_;
};

/// Reads integers. After a read past the end every value is 0 and `complete()` is false.
class byte_reader {
public:
  explicit byte_reader(std::string_view bytes) : bytes_(bytes) {}

  template <std::unsigned_integral T>
  T little() {
    if (bytes_.size() < sizeof(T)) {
      short_ = true;
      bytes_ = {};
      return 0;
    }
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
      value |= std::uint64_t{static_cast<unsigned char>(bytes_[i])} << (8 * i);
    bytes_.remove_prefix(sizeof(T));
    return static_cast<T>(value);
  }
  std::size_t left() const { return bytes_.size(); }
  /// Returns whether exactly all bytes were read.
  bool complete() const { return !short_ && bytes_.empty(); }

private:
  std::string_view bytes_;
  bool short_ = false;
};

} // namespace troupe::storage::detail
