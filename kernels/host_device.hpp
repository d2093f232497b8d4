// Defines TROUPE_HD: a function marked with it is compiled for the CPU and, if nvcc compiles the
// file, for GPUs as well.
#pragma once

#if defined(__CUDACC__)
  #define TROUPE_HD __host__ __device__ __forceinline__
#else
  #define TROUPE_HD [[gnu::always_inline]] inline
#endif
