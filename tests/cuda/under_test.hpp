// Opens the devices that this folder's tests run on. Each test is linked twice: with emulated
// devices and with CUDA's.
#pragma once

#include "kernels/devices/memory.hpp"
#include "kernels/devices/platform.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace troupe::test {

/// The sizes of `awkward_sizes`, and one of many blocks of CUDA threads.
constexpr std::array<std::size_t, 8> device_sizes{0, 1, 3, 255, 256, 257, 4099, 100'003};

/// Opens a new platform for a test case. Prints a line and returns null if there is no device.
std::unique_ptr<device_platform> platform_under_test();

/// Returns the value, or fails the test with the error's text.
template <class T>
T must(result<T> outcome) {
  if (!outcome)
    FAIL(outcome.error().text);
  return *std::move(outcome);
}

inline void must(const result<void>& outcome) {
  if (!outcome)
    FAIL(outcome.error().text);
}

/// Copies vectors to a device and back on one stream.
class bench_device {
public:
  explicit bench_device(device_platform& on, std::uint32_t device = 0)
      : on_(on), device_(device), stream_(must(make_stream(on, device))) {}

  const kernels::stream& stream() const { return stream_.get(); }

  template <class T>
  device_memory<T> upload(const std::vector<T>& values) {
    auto there = must(make_memory<T>(on_, device_, values.size()));
    const auto pinned = must(make_pinned<T>(on_, values.size()));
    std::ranges::copy(values, pinned.data());
    on_.copy(stream(), there.data(), pinned.data(), values.size() * sizeof(T));
    must(on_.synchronize(stream()));
    return there;
  }

  template <class T, class Release>
  std::vector<T> download(const device_array<T, Release>& there) {
    const auto pinned = must(make_pinned<T>(on_, there.size()));
    on_.copy(stream(), pinned.data(), there.data(), there.size() * sizeof(T));
    must(on_.synchronize(stream()));
    return {pinned.data(), pinned.data() + there.size()};
  }

private:
  device_platform& on_;
  std::uint32_t device_;
  owned_stream stream_;
};

} // namespace troupe::test
