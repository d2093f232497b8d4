// Returns floats of a ZeroMQ message, which need not lie where a float may lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace troupe::bench {

/// Returns `from`, or a copy of it in `scratch` if it is not aligned. Only small messages are not,
/// which ZeroMQ leaves in the buffer of the socket.
inline const float* aligned_floats(const void* from, std::size_t count,
                                   std::vector<float>& scratch) {
  if (reinterpret_cast<std::uintptr_t>(from) % alignof(float) == 0)
    return static_cast<const float*>(from);
  scratch.resize(count);
  std::memcpy(scratch.data(), from, count * sizeof(float));
  return scratch.data();
}

} // namespace troupe::bench
