// TROUPE_CPU_CLONES before a function: it is compiled for several x86 levels, the best one is bound
// when the program starts. The bytes of the results stay equal as long as the file is compiled with
// -ffp-contract=off (avx512f brings fused multiply-add). Private to kernels/.
#pragma once

// Sanitizers run before the resolvers' relocations are done and crash in them; clang spells the
// attribute differently for templates' callees. Both get the baseline, which has the same results.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) \
  && !defined(__SANITIZE_THREAD__) && !defined(TROUPE_SANITIZED)
#define TROUPE_CPU_CLONES [[gnu::target_clones("avx512f", "avx2", "default")]]
#else
#define TROUPE_CPU_CLONES
#endif
