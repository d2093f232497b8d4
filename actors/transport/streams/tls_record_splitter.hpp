// Cuts bytes to be written into TLS records.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <span>

namespace troupe::detail {

/// Largest payload of one TLS record.
constexpr std::size_t record_bytes_max = std::size_t{16} << 10;

/// Takes large parts from where they are, and gathers small ones.
class tls_record_splitter {
public:
  /// `parts`: borrowed.
  explicit tls_record_splitter(std::span<const iovec> parts) : parts_(parts) { skip_empty(); }

  bool done() const { return parts_.empty(); }
  /// Returns the next record, borrowed until the next call. Requires: !done().
  std::span<const std::byte> next();

private:
  std::span<const std::byte> rest() const;
  std::span<const std::byte> take(std::size_t size_max);
  void skip_empty();

  std::span<const iovec> parts_;
  std::size_t offset_ = 0; ///< In the first part.
  std::array<std::byte, record_bytes_max> gathered_;
};

} // namespace troupe::detail
