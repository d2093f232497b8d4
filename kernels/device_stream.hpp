// Where the twins of kernels run: on a stream of a CUDA device, or on an emulated one, which does
// the same work with loops on the host. Every twin knows both, so what is built of them can be
// tested on a machine without a GPU.
#pragma once

#include <functional>

struct CUstream_st;

namespace troupe::kernels {

/// Work is done in the order in which it came, later, by whoever owns the queue.
class emulated_queue {
public:
  virtual ~emulated_queue() = default;
  virtual void push(std::function<void()> work) = 0;
};

/// Exactly one of the two is set. Borrowed: whoever made it keeps it until its work is done.
struct stream {
  CUstream_st* cuda = nullptr;
  emulated_queue* emulated = nullptr;
  int device = 0; ///< To which `cuda` belongs.
};

} // namespace troupe::kernels
