#include "bench/store/allocations.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::uint64_t> allocated_count = 0, allocated_bytes = 0;

[[maybe_unused]] void* counted(std::size_t bytes, std::size_t alignment) {
  allocated_count.fetch_add(1, std::memory_order_relaxed);
  allocated_bytes.fetch_add(bytes, std::memory_order_relaxed);
  // aligned_alloc takes whole multiples of the alignment.
  const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment;
  void* memory = alignment <= alignof(std::max_align_t)
                   ? std::malloc(std::max<std::size_t>(bytes, 1))
                   : std::aligned_alloc(alignment, rounded * alignment);
  if (!memory)
    throw std::bad_alloc{};
  return memory;
}

} // namespace

#ifndef TROUPE_SANITIZED // A sanitizer's operators track their memory.
// The other forms call these.
void* operator new(std::size_t bytes) { return counted(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
#endif

namespace troupe::bench {

allocations allocations_now() { return {allocated_count, allocated_bytes}; }

} // namespace troupe::bench
