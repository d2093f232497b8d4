// The pool of buffers: one free list of returned memory for each size class.
#include "base/buffer.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <new>
#include <vector>

namespace troupe {

namespace {

constexpr std::size_t alignment = 64;

/// Four classes for each power of two: at most a fifth of a buffer is padding.
std::size_t size_class(std::size_t size_bytes) {
  const auto least = std::max(size_bytes, alignment);
  const auto step = std::max(std::bit_floor(least) / 4, alignment);
  return (least + step - 1) / step * step;
}

std::byte* allocate(std::size_t size_bytes) {
  return static_cast<std::byte*>(::operator new (size_bytes, std::align_val_t{alignment}));
}

void release(std::byte* memory) { ::operator delete (memory, std::align_val_t{alignment}); }

} // namespace

struct buffer_pool::free_list {
  explicit free_list(std::size_t limit) : idle_bytes_max(limit) {}
  free_list(const free_list&) = delete;
  free_list& operator=(const free_list&) = delete;

  ~free_list() {
    for (auto& [size, memories] : idle)
      for (auto* memory : memories)
        release(memory);
  }

  std::byte* take(std::size_t size) {
    {
      const std::lock_guard guard{mutex};
      if (auto found = idle.find(size); found != idle.end() && !found->second.empty()) {
        auto* memory = found->second.back();
        found->second.pop_back();
        numbers.idle_bytes -= size;
        ++numbers.reused;
        return memory;
      }
      ++numbers.allocated;
    }
    return allocate(size);
  }

  void put(std::byte* memory, std::size_t size) noexcept {
    try {
      const std::lock_guard guard{mutex};
      if (size <= idle_bytes_max && numbers.idle_bytes <= idle_bytes_max - size) {
        idle[size].push_back(memory);
        numbers.idle_bytes += size;
        return;
      }
    } catch (const std::bad_alloc&) {
      // The free list could not grow, so the buffer is freed.
    }
    release(memory);
  }

  const std::size_t idle_bytes_max;
  mutable std::mutex mutex;
  std::map<std::size_t, std::vector<std::byte*>> idle;
  statistics numbers;
};

buffer_pool::buffer_pool(std::size_t idle_bytes_max)
    : free_list_(std::make_shared<free_list>(idle_bytes_max)) {}

std::shared_ptr<std::byte> buffer_pool::bytes(std::size_t size_bytes) {
  const auto size = size_class(size_bytes);
  // The pointer is weak: a buffer that outlives the pool is freed.
  auto give_back = [home = std::weak_ptr<free_list>{free_list_}, size](std::byte* memory) {
    if (const auto alive = home.lock())
      alive->put(memory, size);
    else
      release(memory);
  };
  return {free_list_->take(size), std::move(give_back)};
}

std::shared_ptr<float> buffer_pool::floats(std::size_t count) {
  auto memory = bytes(count * sizeof(float));
  return {memory, reinterpret_cast<float*>(memory.get())};
}

buffer_pool::statistics buffer_pool::stats() const {
  const std::lock_guard guard{free_list_->mutex};
  return free_list_->numbers;
}

} // namespace troupe
