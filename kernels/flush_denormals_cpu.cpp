// These are calls and not inline. A compiler sees no dependency between arithmetic and this mode,
// but it cannot move memory accesses over a function that it does not see.
#include "kernels/flush_denormals.hpp"

#if defined(__x86_64__)
  #include <immintrin.h>
#endif

namespace troupe::kernels {

namespace {

#if defined(__x86_64__)

constexpr std::uint64_t flush_bits = 0x8040; // MXCSR: flush to zero, denormals are zeros.
std::uint64_t mode() { return _mm_getcsr(); }
void set_mode(std::uint64_t bits) { _mm_setcsr(static_cast<unsigned>(bits)); }

#elif defined(__aarch64__)

constexpr std::uint64_t flush_bits = std::uint64_t{1} << 24; // FPCR.FZ: operands and results.
std::uint64_t mode() {
  std::uint64_t bits;
  asm volatile("mrs %0, fpcr" : "=r"(bits));
  return bits;
}
void set_mode(std::uint64_t bits) { asm volatile("msr fpcr, %0" : : "r"(bits)); }

#else

constexpr std::uint64_t flush_bits = 0;
std::uint64_t mode() { return 0; }
void set_mode(std::uint64_t) {}

#endif

} // namespace

flush_denormals::flush_denormals() noexcept : before_(mode()) { set_mode(before_ | flush_bits); }

// Restores only these bits: exceptions noted meanwhile stay noted.
flush_denormals::~flush_denormals() { set_mode((mode() & ~flush_bits) | (before_ & flush_bits)); }

} // namespace troupe::kernels
