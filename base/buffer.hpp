// Allocates the memory of tensors: 64-byte aligned, reference counted, taken from a pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace troupe {

/// Read-only floats that stay alive as long as this handle. It may point into a larger buffer.
using float_ptr = std::shared_ptr<const float>;

/// Hands out buffers and takes them back. In steady state it allocates nothing that grows with a
/// tensor: the first touch of fresh memory is ten times slower than reuse. Thread-safe. Buffers may
/// outlive the pool. The pool keeps at most `idle_bytes_max` of returned buffers and frees the
/// rest.
class buffer_pool {
public:
  explicit buffer_pool(std::size_t idle_bytes_max = std::size_t{1} << 30);

  /// Returns at least `size_bytes` uninitialised bytes, aligned to 64, padded to a multiple of 64.
  std::shared_ptr<std::byte> bytes(std::size_t size_bytes);
  std::shared_ptr<float> floats(std::size_t count);

  struct statistics {
    std::uint64_t allocated = 0; ///< Buffers taken from the system.
    std::uint64_t reused = 0;    ///< Buffers taken from the pool.
    std::size_t idle_bytes = 0;
  };
  statistics stats() const;

private:
  struct free_list;
  std::shared_ptr<free_list> free_list_;
};

} // namespace troupe
