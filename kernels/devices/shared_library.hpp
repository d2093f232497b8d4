// Loads a library when it is needed, so that programs start without it.
#pragma once

#include "base/error.hpp"

#include <initializer_list>
#include <string>

namespace troupe {

class shared_library {
public:
  /// Loads the first of these names (or paths) that works. It stays loaded until the process ends:
  /// CUDA's libraries must not be unloaded before the driver. Errors: device_failed.
  static result<shared_library> open(std::initializer_list<std::string> names);

  /// Sets `function` to the library's function of that name. Errors: device_failed: there is none,
  /// so the library is of another version.
  template <class Function>
  result<void> bind(Function*& function, const char* name) const {
    const auto found = find(name);
    if (!found)
      return found.error();
    function = reinterpret_cast<Function*>(*found);
    return {};
  }

private:
  result<void*> find(const char* name) const;

  void* handle_ = nullptr;
  std::string name_;
};

} // namespace troupe
