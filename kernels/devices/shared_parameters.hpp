// Shares parameters between the devices of a process. The first thread that needs them copies them
// from the host, others copy from its device.
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

  /// Returns the place of the values. Waits at most 5 s while another thread copies them. Nullopt:
  /// the caller must copy them, and then call put() or give_up().
  std::optional<source> find(const value_identity& which);
  /// Publishes the values to waiting and later callers, until other values are requested.
  void put(const value_identity& which, source from);
  /// Lets the next caller copy the values.
  void give_up(const value_identity& which);

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  value_identity which_;
  std::optional<source> from_; ///< Nullopt while a thread copies the values.
};

} // namespace troupe
