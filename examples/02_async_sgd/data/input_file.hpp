// Reads a data file as plain bytes, whether it is plain or packed.
#pragma once

#include "examples/02_async_sgd/data/packing.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace async_sgd {

/// A regular file, plain or packed by gzip, bzip2 or xz, read from its start.
class input_file {
public:
  /// Opens a file. Errors: io_failed (unreadable, or a pipe, a device, ...), malformed (of another
  /// format, which the text names).
  static troupe::result<input_file> open(const std::string& path);

  /// Fills `out`, or as much of it as the file has bytes left. Returns the number of bytes read.
  /// Errors: io_failed, damaged.
  troupe::result<std::size_t> read(std::span<std::uint8_t> out);

private:
  /// Owns the descriptor.
  class handle {
  public:
    explicit handle(int number) : number_(number) {}
    handle(handle&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    handle& operator=(handle&& other) noexcept {
      std::swap(number_, other.number_);
      return *this;
    }
    ~handle();
    int get() const { return number_; }

  private:
    int number_;
  };

  input_file(std::string path, int number) : path_(std::move(path)), file_(number) {}

  troupe::failure with_path(troupe::failure why) const;
  troupe::result<std::size_t> read_raw(std::span<std::uint8_t> out);
  /// Reads until `buffer_` holds at least `bytes` bytes, or all that are left in the file.
  troupe::result<void> fill(std::size_t bytes);
  std::span<const std::uint8_t> buffered() const;
  troupe::result<std::size_t> take_plain(std::span<std::uint8_t> out);
  troupe::result<std::size_t> take_unpacked(std::span<std::uint8_t> out);
  /// Goes to the next stream. Returns false at the end of the file.
  troupe::result<bool> begin_stream();

  std::string path_;
  handle file_;
  std::vector<std::uint8_t> buffer_;
  std::size_t first_ = 0, last_ = 0; ///< Range of the unread bytes in buffer_.
  bool at_end_ = false;              ///< The buffer holds the rest of the file.
  packing packing_ = packing::none;
  std::unique_ptr<unpacker> unpacker_; ///< Empty for a plain file.
  bool between_streams_ = false;
};

/// Reads the whole file. Errors: as for input_file.
troupe::result<std::string> read_bytes(const std::string& path);

} // namespace async_sgd
