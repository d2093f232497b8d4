// Owns the resources of a platform and releases them. The platform must outlive the owners.
#pragma once

#include "kernels/devices/platform.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace troupe {

namespace detail {

/// Owns `Handle`; Release returns it to the platform.
template <class Handle, class Release>
class device_owner {
public:
  device_owner() = default;
  device_owner(device_platform& from, Handle handle, Release release = {})
      : from_(&from), handle_(handle), release_(release) {}
  device_owner(device_owner&& other) noexcept
      : from_(std::exchange(other.from_, nullptr)), handle_(other.handle_),
        release_(other.release_) {}
  device_owner& operator=(device_owner&& other) noexcept {
    std::swap(from_, other.from_);
    std::swap(handle_, other.handle_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~device_owner() {
    if (from_)
      release_(*from_, handle_);
  }

  const Handle& get() const { return handle_; }

private:
  device_platform* from_ = nullptr;
  Handle handle_{};
  [[no_unique_address]] Release release_{};
};

struct release_handle {
  template <class Handle>
  void operator()(device_platform& from, const Handle& handle) const noexcept {
    from.release(handle);
  }
};

struct release_memory {
  std::uint32_t device = 0;
  void operator()(device_platform& from, void* memory) const noexcept {
    from.release(device, memory);
  }
};

struct release_pinned {
  void operator()(device_platform& from, void* memory) const noexcept {
    from.release_pinned(memory);
  }
};

} // namespace detail

using owned_stream = detail::device_owner<kernels::stream, detail::release_handle>;
using owned_event = detail::device_owner<device_event*, detail::release_handle>;

/// Moves a made object into its place; returns the failure if there is none.
template <class T>
result<void> put(T& place, result<T> made) {
  if (!made)
    return made.error();
  place = *std::move(made);
  return {};
}

inline result<owned_stream> make_stream(device_platform& on, std::uint32_t device) {
  auto made = on.make_stream(device);
  if (!made)
    return made.error();
  return owned_stream{on, *made};
}

inline result<owned_event> make_event(device_platform& on, std::uint32_t device) {
  auto made = on.make_event(device);
  if (!made)
    return made.error();
  return owned_event{on, *made};
}

/// An array of T on a device or, pinned, on the host. Elements are not initialised.
template <class T, class Release>
class device_array {
public:
  device_array() = default;
  device_array(device_platform& from, void* memory, std::size_t count, Release release = {})
      : owner_(from, memory, release), count_(count) {}

  T* data() const { return static_cast<T*>(owner_.get()); }
  std::size_t size() const { return count_; }
  std::span<T> span() const { return {data(), count_}; }

private:
  detail::device_owner<void*, Release> owner_;
  std::size_t count_ = 0;
};

template <class T>
using device_memory = device_array<T, detail::release_memory>;
template <class T>
using pinned_memory = device_array<T, detail::release_pinned>;

template <class T>
result<device_memory<T>> make_memory(device_platform& on, std::uint32_t device, std::size_t count) {
  auto made = on.allocate(device, count * sizeof(T));
  if (!made)
    return made.error();
  return device_memory<T>{on, *made, count, {device}};
}

template <class T>
result<pinned_memory<T>> make_pinned(device_platform& on, std::size_t count) {
  auto made = on.allocate_pinned(count * sizeof(T));
  if (!made)
    return made.error();
  return pinned_memory<T>{on, *made, count};
}

} // namespace troupe
