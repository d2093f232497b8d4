// Sums over the devices of this process by NCCL (NVIDIA's collective communication library), which
// is loaded when it is needed.
//
// Failure:  where NCCL reports an error, or is not done in time, its communicators are aborted and
//           made again without the devices that no longer answer; the sum is then done once more.
//           So inputs and outputs are apart: inputs are as they were.
#pragma once

#include "kernels/devices/memory.hpp"
#include "kernels/devices/platform.hpp"

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

struct ncclComm;

namespace troupe {

/// The functions of NCCL's C interface that are used here. Each returns 0, or an error's number.
struct nccl_api {
  int (*init_all)(ncclComm** made, int count, const int* devices) = nullptr;
  int (*abort)(ncclComm*) = nullptr;
  int (*destroy)(ncclComm*) = nullptr;
  int (*all_reduce)(const void* in, void* out, std::size_t count, int type, int operation,
                    ncclComm*, CUstream_st*) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*async_error)(ncclComm*, int* error) = nullptr;
  const char* (*error_text)(int error) = nullptr;

  /// From `path`, or where that is empty the system's libnccl.so.2. Errors: device_failed.
  static result<nccl_api> load(const std::string& path = {});
};

class nccl_group {
public:
  /// One buffer for each device, f32[n] each, in the group's first order.
  struct share {
    std::span<const float> in;
    std::span<float> out; ///< Apart from all inputs.
  };

  /// Borrowed: the platform. `patience`: how long one sum may take. Errors: device_failed.
  static result<nccl_group> make(device_platform& on, const nccl_api& api,
                                 std::vector<std::uint32_t> devices,
                                 std::chrono::milliseconds patience = std::chrono::seconds{30});
  nccl_group(nccl_group&&) noexcept;
  nccl_group& operator=(nccl_group&&) = delete;
  ~nccl_group();

  /// Writes the sum of the inputs of all devices that are left to each of their outputs; those of
  /// lost devices are undefined. Done when it returns. Shares: one for each device that the group
  /// began with.
  /// Requires: the inputs are complete, their streams were waited for.
  /// Errors: device_failed: less than one device is left, or NCCL failed twice with the same ones.
  result<void> all_reduce(std::span<const share> shares);

  /// For the end of a group of which a device may be lost: waits for no work. Later sums connect
  /// anew.
  void abandon() { disconnect(); }

  /// Positions, of those that the group began with, of which the last sum consists.
  const std::vector<std::uint32_t>& left() const { return left_; }

private:
  nccl_group(device_platform& on, const nccl_api& api, std::vector<std::uint32_t> devices,
             std::chrono::milliseconds patience)
      : on_(&on), api_(api), devices_(std::move(devices)), patience_(patience) {}

  result<void> connect();
  void disconnect();
  result<void> attempt(std::span<const share> shares);
  result<void> await();
  /// Forgets devices that no longer answer; says how many.
  std::size_t drop_lost();
  failure failed(int error, const char* what) const;

  device_platform* on_;
  nccl_api api_;
  std::vector<std::uint32_t> devices_;
  std::chrono::milliseconds patience_;
  std::vector<std::uint32_t> left_;
  std::vector<owned_stream> streams_; ///< Of each that is left, as the rest.
  std::vector<owned_event> events_;
  std::vector<ncclComm*> communicators_;
};

} // namespace troupe
