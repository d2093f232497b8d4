#include "base/system/mapped_memory.hpp"

#include <sys/mman.h>

namespace troupe::detail {

mapped_memory::mapped_memory(int descriptor, std::size_t offset, std::size_t size_bytes,
                             bool writable)
    : size_bytes_(size_bytes) {
  void* const made = ::mmap(nullptr, size_bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ,
                            MAP_SHARED | (descriptor < 0 ? MAP_ANONYMOUS : 0), descriptor,
                            static_cast<off_t>(offset));
  if (made != MAP_FAILED)
    memory_ = static_cast<std::byte*>(made);
}

mapped_memory::~mapped_memory() {
  if (memory_ != nullptr)
    ::munmap(memory_, size_bytes_);
}

} // namespace troupe::detail
