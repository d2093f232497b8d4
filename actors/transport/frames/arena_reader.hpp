// The receiver's end of an arena, which belongs to a peer that may be hostile. See
// arena_layout.hpp.
#pragma once

#include "actors/transport/frames/arena_layout.hpp"
#include "actors/transport/streams/socket.hpp"
#include "base/error.hpp"
#include "base/system/mapped_memory.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace troupe::detail {

/// Whatever the writer does, slots lie inside of the mapping and stay mapped while they are held:
/// the file can neither shrink nor be anything but plain memory. What is in them may change under
/// the eyes of who reads, though; so a length or an index that was checked there must not be read
/// there again.
class arena_reader {
public:
  /// Null where it is no memory whose size is sealed and in bounds, or cannot be mapped.
  static std::shared_ptr<arena_reader> map(const descriptor& memory);

  /// The bytes of the slot that begins with this granule; it is free when the last copy of the
  /// returned pointer is gone, perhaps after the reader. Aligned to a page. Errors: malformed.
  result<std::shared_ptr<const std::byte>> slot(std::uint32_t first, std::size_t bytes) const;

private:
  struct memory;
  explicit arena_reader(std::shared_ptr<const memory> mapped) : memory_(std::move(mapped)) {}

  std::shared_ptr<const memory> memory_;
};

} // namespace troupe::detail
