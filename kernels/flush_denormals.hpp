// Treats denormal floats, those below 2^-126, as zero while a guard lives. A processor is up to a
// hundred times slower on them, and decayed optimiser state is full of them.
//
// Covers x86-64 (SSE and wider) and aarch64. Elsewhere the guard has no effect: denormals stay.
#pragma once

#include <cstdint>

namespace troupe::kernels {

/// Makes this thread read denormal operands as zeros of their sign and round denormal results to
/// such zeros, float and double alike. The guard's end restores the previous mode. Thread safety:
/// changes no running thread; threads started meanwhile may inherit the mode.
class flush_denormals {
public:
  flush_denormals() noexcept;
  ~flush_denormals();
  flush_denormals(const flush_denormals&) = delete;
  flush_denormals& operator=(const flush_denormals&) = delete;

private:
  std::uint64_t before_;
};

} // namespace troupe::kernels
