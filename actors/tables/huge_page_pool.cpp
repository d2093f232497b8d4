#include "actors/tables/huge_page_pool.hpp"

#include <map>
#include <mutex>
#include <new>
#include <vector>

#include <sys/mman.h>

namespace troupe {

namespace {

constexpr std::size_t line_bytes = 64;
constexpr std::size_t huge_page_bytes = std::size_t{2} << 20; // A huge page of x86-64 and aarch64.

std::size_t rounded(std::size_t size_bytes, std::size_t unit) {
  return (size_bytes + unit - 1) / unit * unit;
}

struct chunk_deleter {
  void operator()(std::byte* memory) const {
    ::operator delete (memory, std::align_val_t{huge_page_bytes});
  }
};
using chunk = std::unique_ptr<std::byte, chunk_deleter>;

/// Allocates one chunk. `size_bytes`: a multiple of huge_page_bytes.
chunk allocate(std::size_t size_bytes) {
  chunk made{
    static_cast<std::byte*>(::operator new (size_bytes, std::align_val_t{huge_page_bytes}))};
  (void)::madvise(made.get(), size_bytes, MADV_HUGEPAGE); // A hint only.
  return made;
}

} // namespace

struct huge_page_pool::free_list {
  std::byte* take(std::size_t size) {
    const std::lock_guard guard{mutex};
    if (auto& idle = returned[size]; !idle.empty()) {
      auto* const memory = idle.back();
      idle.pop_back();
      return memory;
    }
    if (left < size) { // The rest of the last chunk is lost; sizes are few and small.
      chunks.push_back(allocate(huge_page_bytes));
      left = huge_page_bytes;
    }
    left -= size;
    return chunks.back().get() + left;
  }

  void put(std::byte* memory, std::size_t size) noexcept {
    const std::lock_guard guard{mutex};
    try {
      returned[size].push_back(memory);
    } catch (const std::bad_alloc&) {
      // The buffer is lost until its chunk is freed.
    }
  }

  std::mutex mutex;
  std::vector<chunk> chunks;
  std::size_t left = 0; ///< Unused bytes at the beginning of the last chunk.
  std::map<std::size_t, std::vector<std::byte*>> returned;
};

huge_page_pool::huge_page_pool() : free_list_(std::make_shared<free_list>()) {}

std::shared_ptr<std::byte> huge_page_pool::bytes(std::size_t size_bytes) {
  if (size_bytes >= huge_page_bytes)
    return allocate(rounded(size_bytes, huge_page_bytes));
  const std::size_t size = rounded(size_bytes, line_bytes);
  return {free_list_->take(size),
          [home = free_list_, size](std::byte* memory) { home->put(memory, size); }};
}

} // namespace troupe
