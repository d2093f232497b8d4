// Runs the body of a GPU kernel on a stream. The body is a struct of pointers and numbers, copied
// to the device. Its work for one element, or for one thread of a block, is written once: CUDA's
// threads run it, and loops run it for emulated streams. Private to this folder's *_cuda.cu.
//
// Emulation:  blocks and threads run last to first, which exposes a body that depends on the order.
//             Files compiled by nvcc have both, others only the loops.
#pragma once

#include "kernels/flush_denormals.hpp"
#include "kernels/host_device.hpp"
#include "kernels/device_stream.hpp"

#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace troupe::kernels {

/// Threads of a block, for all kernels: every device supports it, and it is a multiple of a warp.
constexpr unsigned block_threads = 256;

/// Elements of a thread of launch_elements(). More: more loads in flight, and larger tails.
constexpr unsigned thread_elements = 4;

constexpr unsigned blocks_for(std::size_t count, std::size_t each) {
  return static_cast<unsigned>((count + each - 1) / each);
}

/// Base of bodies that treat denormals as zeros. Their files begin with a line "// nvcc:
/// -ftz=true", which the build reads.
struct flushing_denormals {};

/// Adds x to *to atomically among threads. Integers only: their sum has no order.
TROUPE_HD void add_atomically(std::uint32_t* to, std::uint32_t x) {
#if defined(__CUDA_ARCH__)
  atomicAdd(to, x);
#else
  *to += x; // Loops have one thread.
#endif
}

namespace detail {

/// Calls the body for a thread's existing elements; neighbouring threads at the same time, so that
/// a warp reads whole cache lines.
template <class Body>
TROUPE_HD void run_elements(const Body& body, std::size_t count, unsigned block, unsigned thread) {
  const std::size_t first = std::size_t{block} * (block_threads * thread_elements) + thread;
  for (unsigned k = 0; k < thread_elements; ++k) {
    const std::size_t i = first + std::size_t{k} * block_threads;
    if (i < count)
      body(i);
  }
}

#if defined(__CUDACC__)

template <class Body>
__global__ void __launch_bounds__(block_threads) elements_kernel(Body body, std::size_t count) {
  run_elements(body, count, blockIdx.x, threadIdx.x);
}

template <class Body>
__global__ void __launch_bounds__(block_threads) blocks_kernel(Body body) {
  __shared__ typename Body::shared memory;
  for (unsigned phase = 0; phase < Body::phases; ++phase) {
    body(phase, blockIdx.x, threadIdx.x, memory);
    __syncthreads();
  }
}

#endif

/// Flushes denormals while loops run a flushing body.
template <class Body>
struct denormals_of {};

template <std::derived_from<flushing_denormals> Body>
struct denormals_of<Body> {
  flush_denormals guard;
};

} // namespace detail

/// Calls body(i) for each i < count, in any order.
template <class Body>
void launch_elements(stream at, std::size_t count, const Body& body) {
  if (count == 0)
    return; // A launch of no blocks is an error.
  const unsigned blocks = blocks_for(count, block_threads * thread_elements);
  if (at.emulated)
    return at.emulated->push([=] {
      [[maybe_unused]] const detail::denormals_of<Body> denormals;
      for (unsigned block = blocks; block-- > 0;)
        for (unsigned thread = block_threads; thread-- > 0;)
          detail::run_elements(body, count, block, thread);
    });
#if defined(__CUDACC__)
  cudaSetDevice(at.device); // Errors, here and below, come up when the stream is waited for.
  detail::elements_kernel<<<blocks, block_threads, 0, at.cuda>>>(body, count);
#else
  assert(!"made without nvcc, so there is no such stream");
#endif
}

/// Calls body(phase, block, thread, memory) for all threads of `blocks` blocks. A phase begins when
/// all threads of its block have finished the previous one. Body::phases is the number of phases;
/// Body::shared is the type of a block's memory, whose initial content is undefined.
template <class Body>
void launch_blocks(stream at, unsigned blocks, const Body& body) {
  if (blocks == 0)
    return;
  if (at.emulated)
    return at.emulated->push([=] {
      [[maybe_unused]] const detail::denormals_of<Body> denormals;
      const auto memory = std::make_unique<typename Body::shared>();
      for (unsigned block = blocks; block-- > 0;)
        for (unsigned phase = 0; phase < Body::phases; ++phase)
          for (unsigned thread = block_threads; thread-- > 0;)
            body(phase, block, thread, *memory);
    });
#if defined(__CUDACC__)
  cudaSetDevice(at.device);
  detail::blocks_kernel<<<blocks, block_threads, 0, at.cuda>>>(body);
#else
  assert(!"made without nvcc, so there is no such stream");
#endif
}

} // namespace troupe::kernels
