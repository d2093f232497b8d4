#include "kernels/devices/shared_library.hpp"

#include <dlfcn.h>

namespace troupe {

result<shared_library> shared_library::open(std::initializer_list<std::string> names) {
  for (const auto& name : names)
    if (void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      shared_library found;
      found.handle_ = handle;
      found.name_ = name;
      return found;
    }
  const char* const why = dlerror();
  return {errc::device_failed, why ? why : "no library " + *names.begin()};
}

result<void*> shared_library::find(const char* name) const {
  if (void* const found = dlsym(handle_, name))
    return found;
  return {errc::device_failed, name_ + " has no " + name + ": it is of another version"};
}

} // namespace troupe
