// TROUPE_CPU_CLONES before a function: it is compiled for several x86 levels, the best one is bound
// when the program starts. The bytes of the results stay equal as long as the file is compiled with
// -ffp-contract=off (avx512f brings fused multiply-add). Private to kernels/.
#pragma once

// Not with sanitizers: the resolvers run before an instrumented program is ready for them. Not with
// clang: untested. Both get the baseline, whose results are the same.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)                                \
  && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(TROUPE_SANITIZED)
  #define TROUPE_CPU_CLONES [[gnu::target_clones("avx512f", "avx2", "default")]]
#else
  #define TROUPE_CPU_CLONES
#endif
