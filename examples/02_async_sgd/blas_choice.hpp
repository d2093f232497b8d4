// OpenBLAS picks its kernels by CPU model, and starts its threads, when it is loaded. A release
// older than the CPU does not know the model and falls back to SSE3 code: sgemm is then 4 to 5
// times slower than it could be (measured: OpenBLAS 0.3.21 on a Xeon of family 6, model 207: 32
// instead of 150 GFlop/s). Its threads are of no use to processes of one worker, and wait for ever
// for memory that they cannot have.
#pragma once

namespace async_sgd {

/// Starts the program again, in the same process, with OPENBLAS_NUM_THREADS set to 1 and, where
/// OpenBLAS fell back although the CPU has AVX-512 or AVX2, with OPENBLAS_CORETYPE set; children
/// inherit both. Keeps the values of variables that are set already. Requires: called first in
/// main(): nothing is open, no thread of ours runs.
void choose_blas_kernels(char** argv);

} // namespace async_sgd
