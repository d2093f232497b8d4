// Reads `--device`: the device on which each worker computes.
//
//   cpu          the host
//   cuda:all     the CUDA devices of the machine, one worker after the other
//   cuda:0,1     these CUDA devices
//   auto         cuda:all if there is a device, else cpu
//   emulated    an emulated device on the host: takes the path of a GPU's worker without a GPU
//   A+B+...      worker i takes part i, and the parts repeat after the last: cuda:0+cpu
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

enum class device_kind : std::uint8_t { cpu, cuda, emulated };

struct device_place {
  device_kind kind = device_kind::cpu;
  std::uint32_t device = 0; ///< Number of a CUDA device.

  bool operator==(const device_place&) const = default;
};

class device_choice {
public:
  /// Errors: invalid_argument.
  static result<device_choice> parse(const std::string& text);

  /// Returns the devices that workers take in turn. `cuda`: the number of CUDA devices, or why
  /// there are none. Errors: device_failed, if a device requested by name is missing; its text
  /// gives a remedy.
  result<std::vector<device_place>> places(const result<std::uint32_t>& cuda) const;

  bool cpu_only() const { return parts_.size() == 1 && parts_[0].kind == part_kind::cpu; }
  /// Returns whether places() depends on the CUDA devices present; otherwise no search is needed.
  bool asks_for_cuda() const;
  const std::string& text() const { return text_; }

private:
  enum class part_kind : std::uint8_t { cpu, emulated, automatic, all, listed };
  struct part {
    part_kind kind = part_kind::cpu;
    std::vector<std::uint32_t> devices; ///< Devices of `listed`.
  };

  std::string text_;
  std::vector<part> parts_;
};

} // namespace troupe
