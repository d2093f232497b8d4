// Memory that is read at random: on huge pages where the system has them, because half the time of
// a random read of small pages goes into finding the page.
#pragma once

#include <cstddef>
#include <memory>

namespace troupe {

/// Cuts buffers out of chunks of 2 MiB, and hands returned ones out again to who wants the same
/// size. Thread-safe. Buffers may outlive the pool.
/// Capacity: small chunks are freed only with the pool and its last buffer; buffers of a chunk or
/// more at once.
class huge_page_pool {
public:
  huge_page_pool();

  /// At least `size_bytes` uninitialised bytes, aligned to 64.
  std::shared_ptr<std::byte> bytes(std::size_t size_bytes);

private:
  struct free_list;
  std::shared_ptr<free_list> free_list_;
};

} // namespace troupe
