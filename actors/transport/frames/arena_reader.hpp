// Maps a peer's arena and hands out its slots; the peer may be hostile. See arena_layout.hpp.
#pragma once

#include "actors/transport/frames/arena_layout.hpp"
#include "actors/transport/streams/socket.hpp"
#include "base/error.hpp"
#include "base/system/mapped_memory.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace troupe::detail {

/// Slots lie inside the mapping and stay mapped while they are held, whatever the writer does: the
/// file is plain memory and cannot shrink. The writer may change a slot's contents at any time. So
/// a length or an index that was checked there must not be read there again.
class arena_reader {
public:
  /// Returns null if `memory` is not plain memory of sealed, usable size, or cannot be mapped.
  static std::shared_ptr<arena_reader> map(const descriptor& memory);

  /// Returns the bytes of the slot that begins with granule `first`, aligned to a page. The slot
  /// becomes free with the last copy of the pointer, perhaps after the reader. Errors: malformed.
  result<std::shared_ptr<const std::byte>> slot(std::uint32_t first, std::size_t bytes) const;

private:
  struct memory;
  explicit arena_reader(std::shared_ptr<const memory> mapped) : memory_(std::move(mapped)) {}

  std::shared_ptr<const memory> memory_;
};

} // namespace troupe::detail
