// Denormal floats, those below 2^-126, count as zero while a guard lives: a processor is up to a
// hundred times slower on them, and decayed optimiser state is full of them.
//
// Covers x86-64 (SSE and wider) and aarch64. Elsewhere the guard does nothing: denormals stay.
#pragma once

#include <cstdint>

namespace troupe::kernels {

/// Makes this thread take denormal operands for zeros of their sign and round denormal results to
/// such zeros, float and double alike. The end of the guard restores the mode of before.
/// Thread safety: changes nothing in other threads; those started meanwhile may inherit it.
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
