// Owns memory that processes share: a mapped part of a file, or memory without a file.
#pragma once

#include <cstddef>
#include <utility>

namespace troupe::detail {

class mapped_memory {
public:
  mapped_memory() = default;
  /// Shares the memory with all processes that map the file, or with children only if `descriptor`
  /// is -1. Empty if the system refuses; errno then says why.
  mapped_memory(int descriptor, std::size_t offset, std::size_t size_bytes, bool writable);
  ~mapped_memory();
  mapped_memory(mapped_memory&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), size_bytes_(other.size_bytes_) {}
  mapped_memory& operator=(mapped_memory&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_bytes_, other.size_bytes_);
    return *this;
  }

  explicit operator bool() const { return memory_ != nullptr; }
  std::byte* data() const { return memory_; }

private:
  std::byte* memory_ = nullptr;
  std::size_t size_bytes_ = 0;
};

} // namespace troupe::detail
