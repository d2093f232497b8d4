// Sets the variables that OpenBLAS reads when it is loaded: it then picks its kernels by CPU model
// and starts its threads. A release older than the CPU falls back to SSE3 code, which makes sgemm 4
// to 5 times slower. Measured with OpenBLAS 0.3.21 on a Xeon of family 6, model 207: 32 instead of
// 150 GFlop/s. Its threads are useless to a process of one worker, and wait for ever if their
// memory cannot be allocated.
#pragma once

namespace async_sgd {

/// Starts the program again, in the same process, with OPENBLAS_NUM_THREADS set to 1. Sets
/// OPENBLAS_CORETYPE as well if OpenBLAS fell back although the CPU has AVX-512 or AVX2. Children
/// inherit both. Variables that are set already keep their values. Requires: called first in
/// main(), before any file is opened or thread started.
void choose_blas_kernels(char** argv);

} // namespace async_sgd
