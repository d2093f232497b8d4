// Floats that arrived where ZeroMQ put them, which need not be where a float may lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace troupe::bench {

/// `from`, or a copy of it in `scratch` where it lies badly: small messages alone do, which ZeroMQ
/// leaves in the buffer of the socket.
inline const float* aligned_floats(const void* from, std::size_t count,
                                   std::vector<float>& scratch) {
  if (reinterpret_cast<std::uintptr_t>(from) % alignof(float) == 0)
    return static_cast<const float*>(from);
  scratch.resize(count);
  std::memcpy(scratch.data(), from, count * sizeof(float));
  return scratch.data();
}

} // namespace troupe::bench
