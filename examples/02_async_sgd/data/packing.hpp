// Recognises packed files by their first bytes, and unpacks gzip, bzip2 and xz piece by piece.
#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace async_sgd {

enum class packing { none, gzip, bzip2, xz };

/// Returns the packing of a file that begins with `head`.
packing packing_of(std::string_view head);

/// Unpacks one stream of a file; a file may hold several, one behind the other.
class unpacker {
public:
  struct progress {
    std::size_t taken = 0; ///< Bytes of the input.
    std::size_t made = 0;  ///< Bytes of the output.
    bool at_end = false;   ///< The stream is over and its checksums match.
  };

  virtual ~unpacker() = default;

  /// Unpacks until the input ends or the output is full.
  /// Errors: damaged, io_failed (not enough memory). The text lacks the file's name.
  virtual troupe::result<progress> unpack(std::span<const std::uint8_t> in,
                                          std::span<std::uint8_t> out) = 0;

  /// Prepares for the next stream. Errors: io_failed (not enough memory).
  virtual troupe::result<void> restart() = 0;
};

/// Returns an unpacker that is ready for the first stream.
/// Requires: kind != packing::none. Errors: io_failed (not enough memory).
troupe::result<std::unique_ptr<unpacker>> make_unpacker(packing kind);

} // namespace async_sgd
