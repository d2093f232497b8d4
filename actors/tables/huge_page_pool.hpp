// Allocates memory that is read at random, on huge pages if the system has them: half the time of a
// random read of small pages goes into finding the page.
#pragma once

#include <cstddef>
#include <memory>

namespace troupe {

/// Cuts buffers out of chunks of 2 MiB, and gives returned buffers to later requests of the same
/// size. Thread-safe. Buffers may outlive the pool.
/// Capacity: small buffers are freed only with the pool and its last buffer; buffers of 2 MiB or
/// more at once.
class huge_page_pool {
public:
  huge_page_pool();

  /// Returns at least `size_bytes` uninitialised bytes, aligned to 64.
  std::shared_ptr<std::byte> bytes(std::size_t size_bytes);

private:
  struct free_list;
  std::shared_ptr<free_list> free_list_;
};

} // namespace troupe
