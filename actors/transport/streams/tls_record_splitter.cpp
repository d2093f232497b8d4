#include "actors/transport/streams/tls_record_splitter.hpp"

#include <algorithm>
#include <cstring>

namespace troupe::detail {

std::span<const std::byte> tls_record_splitter::next() {
  if (rest().size() >= record_bytes_max || parts_.size() == 1)
    return take(record_bytes_max);
  std::size_t filled = 0;
  while (!done() && filled < record_bytes_max) {
    const auto piece = take(record_bytes_max - filled);
    std::memcpy(gathered_.data() + filled, piece.data(), piece.size());
    filled += piece.size();
  }
  return std::span{gathered_}.first(filled);
}

std::span<const std::byte> tls_record_splitter::rest() const {
  const auto* const first = static_cast<const std::byte*>(parts_[0].iov_base);
  return std::span{first, parts_[0].iov_len}.subspan(offset_);
}

std::span<const std::byte> tls_record_splitter::take(std::size_t size_max) {
  const auto piece = rest().first(std::min(rest().size(), size_max));
  offset_ += piece.size();
  skip_empty();
  return piece;
}

void tls_record_splitter::skip_empty() {
  while (!done() && offset_ == parts_[0].iov_len) {
    parts_ = parts_.subspan(1);
    offset_ = 0;
  }
}

} // namespace troupe::detail
