// The devices of CUDA's runtime. The runtime is linked statically and loads the driver itself. So
// this runs on any machine, and reports missing parts.
#include "kernels/devices/platform.hpp"

#if defined(TROUPE_CUDA_FOUND)

  #include "fmt/core.h"

  #include <cuda_runtime_api.h>

  #include <optional>
  #include <utility>

namespace troupe {

namespace {

struct cuda_event final : device_event {
  explicit cuda_event(cudaEvent_t made) : handle(made) {}
  cudaEvent_t handle;
};

cudaEvent_t handle_of(device_event* event) { return static_cast<cuda_event*>(event)->handle; }

/// Clears the error, which the next call would otherwise report.
failure cuda_failure(cudaError_t error, const char* call, const char* file, int line) {
  cudaGetLastError();
  return {errc::device_failed,
          fmt::format("CUDA failed: {} ({}:{}: {})", cudaGetErrorString(error), file, line, call)};
}

  /// Returns a failure from the function if the call failed.
  #define TROUPE_CUDA_TRY(call)                                                                    \
    if (const cudaError_t tried = (call); tried != cudaSuccess)                                    \
      return cuda_failure(tried, #call, __FILE_NAME__, __LINE__);

class cuda_devices final : public device_platform {
public:
  explicit cuda_devices(std::uint32_t count) : count_(count) {}

  std::uint32_t devices() const override { return count_; }
  bool emulated() const override { return false; }

  result<device_info> describe(std::uint32_t device) override {
    if (auto there = use(device); !there)
      return there.error();
    cudaDeviceProp properties{};
    TROUPE_CUDA_TRY(cudaGetDeviceProperties(&properties, static_cast<int>(device)));
    std::size_t free = 0, total = 0;
    TROUPE_CUDA_TRY(cudaMemGetInfo(&free, &total));
    return device_info{properties.name, total, free};
  }

  result<void*> allocate(std::uint32_t device, std::size_t bytes) override {
    if (auto there = use(device); !there)
      return there.error();
    void* memory = nullptr;
    const cudaError_t error = cudaMalloc(&memory, bytes > 0 ? bytes : 1);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      std::size_t free = 0, total = 0;
      cudaMemGetInfo(&free, &total);
      return {errc::device_failed,
              fmt::format("device {} is out of memory: {} bytes asked for, {} of {} are free",
                          device, bytes, free, total)};
    }
    TROUPE_CUDA_TRY(error);
    return memory;
  }

  result<void*> allocate_pinned(std::size_t bytes) override {
    void* memory = nullptr;
    TROUPE_CUDA_TRY(cudaHostAlloc(&memory, bytes > 0 ? bytes : 1, cudaHostAllocPortable));
    return memory;
  }

  void release(std::uint32_t device, void* memory) noexcept override {
    cudaSetDevice(static_cast<int>(device));
    cudaFree(memory);
  }

  void release_pinned(void* memory) noexcept override { cudaFreeHost(memory); }

  result<kernels::stream> make_stream(std::uint32_t device) override {
    if (auto there = use(device); !there)
      return there.error();
    kernels::stream made{nullptr, nullptr, static_cast<int>(device)};
    TROUPE_CUDA_TRY(cudaStreamCreateWithFlags(&made.cuda, cudaStreamNonBlocking));
    return made;
  }

  result<device_event*> make_event(std::uint32_t device) override {
    if (auto there = use(device); !there)
      return there.error();
    cudaEvent_t made = nullptr;
    TROUPE_CUDA_TRY(cudaEventCreate(&made));
    return new cuda_event{made};
  }

  void release(const kernels::stream& at) noexcept override {
    cudaStreamSynchronize(at.cuda);
    cudaStreamDestroy(at.cuda);
  }

  void release(device_event* event) noexcept override {
    cudaEventDestroy(handle_of(event));
    delete static_cast<cuda_event*>(event);
  }

  void copy(const kernels::stream& at, void* to, const void* from, std::size_t bytes) override {
    note(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, at.cuda), "cudaMemcpyAsync");
  }

  void clear(const kernels::stream& at, void* memory, std::size_t bytes) override {
    note(cudaMemsetAsync(memory, 0, bytes, at.cuda), "cudaMemsetAsync");
  }

  void record(const kernels::stream& at, device_event* event) override {
    note(cudaEventRecord(handle_of(event), at.cuda), "cudaEventRecord");
  }

  void wait(const kernels::stream& at, device_event* event) override {
    note(cudaStreamWaitEvent(at.cuda, handle_of(event), 0), "cudaStreamWaitEvent");
  }

  result<void> synchronize(const kernels::stream& at) override {
    note(cudaGetLastError(), "a launch"); // Launches return no result, like all enqueued work.
    note(cudaStreamSynchronize(at.cuda), "cudaStreamSynchronize");
    return outcome();
  }

  result<void> synchronize(device_event* event) override {
    note(cudaGetLastError(), "a launch");
    note(cudaEventSynchronize(handle_of(event)), "cudaEventSynchronize");
    return outcome();
  }

  result<bool> done(device_event* event) override {
    const cudaError_t error = cudaEventQuery(handle_of(event));
    if (error != cudaErrorNotReady)
      note(error, "cudaEventQuery");
    if (auto all = outcome(); !all)
      return all.error();
    return error == cudaSuccess;
  }

  void link_replicas(std::span<const std::uint32_t> devices) override {
    for (const std::uint32_t from : devices)
      for (const std::uint32_t to : devices) {
        int possible = 0;
        if (from != to && use(from)
            && cudaDeviceCanAccessPeer(&possible, static_cast<int>(from), static_cast<int>(to))
                 == cudaSuccess
            && possible != 0)
          cudaDeviceEnablePeerAccess(static_cast<int>(to), 0);
      }
    cudaGetLastError(); // Clears the error of peers that were enabled before.
  }

  double elapsed_ms(device_event* from, device_event* to) override {
    float ms = 0.0f;
    note(cudaEventElapsedTime(&ms, handle_of(from), handle_of(to)), "cudaEventElapsedTime");
    return static_cast<double>(ms);
  }

private:
  result<void> use(std::uint32_t device) {
    if (device >= count_)
      return {errc::device_failed, fmt::format("there is no device {}, only {}", device, count_)};
    TROUPE_CUDA_TRY(cudaSetDevice(static_cast<int>(device)));
    return {};
  }

  void note(cudaError_t error, const char* what) {
    if (error != cudaSuccess && !failed_)
      failed_ = cuda_failure(error, what, __FILE_NAME__, __LINE__);
  }

  result<void> outcome() {
    if (!failed_)
      return {};
    return *std::exchange(failed_, std::nullopt);
  }

  std::uint32_t count_;
  std::optional<failure> failed_;
};

/// Returns "13.0" for 13000.
std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

} // namespace

result<std::unique_ptr<device_platform>> open_cuda() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  cudaGetLastError();
  if (error == cudaErrorInsufficientDriver) {
    int driver = 0;
    cudaDriverGetVersion(&driver);
    if (driver == 0)
      return {errc::device_failed, "no CUDA driver here"};
    return {errc::device_failed,
            fmt::format("the CUDA driver here is for CUDA {}, this program needs {}",
                        version_text(driver), version_text(CUDART_VERSION))};
  }
  if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0))
    return {errc::device_failed, "no CUDA device here"};
  TROUPE_CUDA_TRY(error);
  return std::unique_ptr<device_platform>{
    std::make_unique<cuda_devices>(static_cast<std::uint32_t>(count))};
}

} // namespace troupe

#else

namespace troupe {

result<std::unique_ptr<device_platform>> open_cuda() {
  return {errc::device_failed,
          "this program was built without CUDA, build it with -DTROUPE_CUDA=ON"};
}

} // namespace troupe

#endif
