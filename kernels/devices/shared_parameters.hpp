// Parameters that several devices of a process need: who needs them first brings them up from the
// host, the others copy them from there.
#pragma once

#include "kernels/devices/value_identity.hpp"

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

namespace troupe {

/// Thread-safe. Capacity: one array on one device.
class shared_parameters {
public:
  struct source {
    std::uint32_t device = 0;
    std::shared_ptr<const float> values; ///< Memory of the device; complete.
  };

  /// Where they are; waits while somebody else brings them, 5 s at most. Nothing: the caller is to
  /// bring them, and then to call put() or give_up().
  std::optional<source> find(const value_identity& which);
  /// For those who ask from now on, and those who wait, until others are asked for.
  void put(const value_identity& which, source from);
  /// The next one brings them.
  void give_up(const value_identity& which);

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  value_identity which_;
  std::optional<source> from_; ///< Nothing: they are on their way.
};

} // namespace troupe
