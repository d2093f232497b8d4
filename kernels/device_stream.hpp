// Names the stream on which a GPU kernel runs: of a CUDA device, or an emulated one, which does the
// same work with loops on the host. Every kernel supports both, so that users of kernels can be
// tested on a machine without a GPU.
#pragma once

#include <functional>

struct CUstream_st;

namespace troupe::kernels {

/// A queue whose owner does the work later, in the order of arrival.
class emulated_queue {
public:
  virtual ~emulated_queue() = default;
  virtual void push(std::function<void()> work) = 0;
};

/// Exactly one of the two pointers is set. Borrowed: the maker keeps it until its work is done.
struct stream {
  CUstream_st* cuda = nullptr;
  emulated_queue* emulated = nullptr;
  int device = 0; ///< The device of `cuda`.
};

} // namespace troupe::kernels
