// What `--device` says: on which device each worker computes.
//
//   cpu          the host
//   cuda:all     the CUDA devices of the machine, one worker after the other
//   cuda:0,1     these of them
//   auto         cuda:all where there is a device, else cpu
//   emulated    an emulated device on the host: what a GPU's worker does, without a GPU
//   A+B+...      worker i takes part i, and the parts begin again behind the last: cuda:0+cpu
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

enum class device_kind : std::uint8_t { cpu, cuda, emulated };

struct device_place {
  device_kind kind = device_kind::cpu;
  std::uint32_t device = 0; ///< Of cuda.

  bool operator==(const device_place&) const = default;
};

class device_choice {
public:
  /// Errors: invalid_argument.
  static result<device_choice> parse(const std::string& text);

  /// `cuda`: how many CUDA devices there are, or why there are none. An error where what was asked
  /// for by name is not there: device_failed, which says what to do.
  result<std::vector<device_place>> places(const result<std::uint32_t>& cuda) const;

  bool cpu_only() const { return parts_.size() == 1 && parts_[0].kind == part_kind::cpu; }
  /// Whether an answer depends on what there is: else nobody need look.
  bool asks_for_cuda() const;
  const std::string& text() const { return text_; }

private:
  enum class part_kind : std::uint8_t { cpu, emulated, automatic, all, listed };
  struct part {
    part_kind kind = part_kind::cpu;
    std::vector<std::uint32_t> devices; ///< Of `listed`.
  };

  std::string text_;
  std::vector<part> parts_;
};

} // namespace troupe
