// Adds up over the devices of this process by NCCL (NVIDIA's collective communication library),
// which is loaded when it is needed.
//
// Failure:  if NCCL reports an error, or is late, its communicators are aborted and made again
//           without the devices that no longer answer; the sum is then repeated. Outputs are
//           therefore separate from inputs, which stay unchanged.
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

/// The functions of NCCL's C interface used here. Each returns 0 or an error number.
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

  /// Loads `path`, or if empty the system's libnccl.so.2. Errors: device_failed.
  static result<nccl_api> load(const std::string& path = {});
};

class nccl_group {
public:
  /// One buffer for each device, f32[n] each, in the group's initial order.
  struct share {
    std::span<const float> in;
    std::span<float> out; ///< Separate from all inputs.
  };

  /// Makes a group; borrows the platform. `patience`: time limit of one sum. Errors: device_failed.
  static result<nccl_group> make(device_platform& on, const nccl_api& api,
                                 std::vector<std::uint32_t> devices,
                                 std::chrono::milliseconds patience = std::chrono::seconds{30});
  nccl_group(nccl_group&&) noexcept;
  nccl_group& operator=(nccl_group&&) = delete;
  ~nccl_group();

  /// Writes the sum of the inputs of all remaining devices to each of their outputs; outputs of
  /// lost devices are undefined. Complete when it returns. Shares: one for each initial device of
  /// the group.
  /// Requires: the inputs are complete, their streams were waited for.
  /// Errors: device_failed: no device is left, or NCCL failed twice with the same devices.
  result<void> all_reduce(std::span<const share> shares);

  /// Ends a group that may have lost a device, without waiting for its work. Later sums connect
  /// anew.
  void abandon() { disconnect(); }

  /// Returns the initial positions of the devices in the last sum.
  const std::vector<std::uint32_t>& left() const { return left_; }

private:
  nccl_group(device_platform& on, const nccl_api& api, std::vector<std::uint32_t> devices,
             std::chrono::milliseconds patience)
      : on_(&on), api_(api), devices_(std::move(devices)), patience_(patience) {}

  result<void> connect();
  void disconnect();
  result<void> attempt(std::span<const share> shares);
  result<void> await();
  /// Drops devices that no longer answer; returns their number.
  std::size_t drop_lost();
  failure failed(int error, const char* what) const;

  device_platform* on_;
  nccl_api api_;
  std::vector<std::uint32_t> devices_;
  std::chrono::milliseconds patience_;
  std::vector<std::uint32_t> left_;
  std::vector<owned_stream> streams_; ///< One entry for each remaining device, here and below.
  std::vector<owned_event> events_;
  std::vector<ncclComm*> communicators_;
};

} // namespace troupe
