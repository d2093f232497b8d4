// Stands in for libnccl.so: adds up buffers of emulated devices, and fails at the call that a test
// names. Its streams are emulated queues.
#include "tests/kernels/nccl_stand_in.hpp"

#include "kernels/device_stream.hpp"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

using troupe::kernels::emulated_queue;
using troupe::test::nccl_script;

struct ncclComm {
  int device;

  bool failed = false;
};

namespace {

struct pending {
  const float* in;
  float* out;
  std::size_t count;
  ncclComm* who;
  emulated_queue* at;
};

nccl_script script;
int calls = 0;
std::vector<pending> open_group;

/// Counts a call; returns 1 if this is the call that fails, else 0.
int outcome() { return ++calls == script.fail_call ? 1 : 0; }

} // namespace

extern "C" {

nccl_script* stand_in_script() {
  calls = 0;
  return &script;
}

int ncclCommInitAll(ncclComm** made, int count, const int* devices) {
  if (const int error = outcome())
    return error;
  for (int i = 0; i < count; ++i) {
    made[i] = new ncclComm{devices[i]};
    ++script.living;
  }
  return 0;
}

int ncclCommAbort(ncclComm* one) {
  --script.living;
  ++script.aborted;
  delete one;
  return 0;
}

int ncclCommDestroy(ncclComm* one) {
  --script.living;
  delete one;
  return 0;
}

int ncclGroupStart() { return outcome(); }

int ncclAllReduce(const void* in, void* out, std::size_t count, int, int, ncclComm* who,
                  CUstream_st* at) {
  if (const int error = outcome())
    return error;
  open_group.push_back({static_cast<const float*>(in), static_cast<float*>(out), count, who,
                        reinterpret_cast<emulated_queue*>(at)});
  return 0;
}

int ncclGroupEnd() {
  const auto all = std::make_shared<std::vector<pending>>(std::exchange(open_group, {}));
  if (const int error = outcome())
    return error;
  for (const auto& one : *all) {
    if (one.who->device == script.async_failure)
      one.who->failed = true;
    for (int i = 0; i < script.delay; ++i)
      one.at->push([] {});
    one.at->push([all, one] {
      for (std::size_t i = 0; i < one.count; ++i) {
        one.out[i] = 0.0f;
        for (const auto& other : *all)
          one.out[i] += other.in[i];
      }
    });
  }
  return 0;
}

int ncclCommGetAsyncError(ncclComm* who, int* error) {
  *error = who->failed ? 6 : 0;
  return 0;
}

const char* ncclGetErrorString(int error) { return error == 6 ? "remote error" : "told to fail"; }
}
