#include "actors/transport/frames/arena_reader.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <string>

namespace troupe::detail {

struct arena_reader::memory {
  arena_layout layout;
  mapped_memory words; ///< Writable.
  mapped_memory slots; ///< Granules from layout.first on; read-only.
};

namespace {

/// Returns whether the system forbids overcommitting memory (mode 2). Reading a page that was never
/// written may then raise SIGBUS.
bool strict_overcommit() {
  char mode = '2';
  const descriptor file{::open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC)};
  (void)!::read(file.get(), &mode, 1);
  return mode == '2';
}

/// Returns the size of memory that can be mapped without risk of SIGBUS, else 0. Memory with huge
/// pages or a quota can run out, and then some addresses have no memory behind them.
std::size_t safe_size(const descriptor& memory) {
  const int seals = ::fcntl(memory.get(), F_GET_SEALS);
  if (strict_overcommit() || seals < 0 || (seals & F_SEAL_SHRINK) == 0
      || (seals & F_SEAL_GROW) == 0)
    return 0;
  struct stat about;
  struct statfs system;
  if (::fstat(memory.get(), &about) != 0 || !S_ISREG(about.st_mode) || about.st_size < 0
      || ::fstatfs(memory.get(), &system) != 0 || system.f_type != TMPFS_MAGIC)
    return 0;
  return static_cast<std::size_t>(about.st_size);
}

} // namespace

std::shared_ptr<arena_reader> arena_reader::map(const descriptor& memory) {
  const std::size_t size = safe_size(memory);
  if (!arena_layout::usable(size))
    return nullptr;
  const arena_layout layout{size};
  const std::size_t words_bytes = layout.words_bytes();
  struct memory mapped {
    layout, {memory.get(), 0, words_bytes, true}, {
      memory.get(), words_bytes, size - words_bytes, false
    }
  };
  if (!mapped.words || !mapped.slots)
    return nullptr;
  return std::shared_ptr<arena_reader>{
    new arena_reader{std::make_shared<struct memory>(std::move(mapped))}};
}

result<std::shared_ptr<const std::byte>> arena_reader::slot(std::uint32_t first,
                                                            std::size_t bytes) const {
  const arena_layout& layout = memory_->layout;
  if (first < layout.first || first >= layout.granules || bytes == 0
      || bytes > std::size_t{layout.granules - first} * granule_bytes)
    return {errc::malformed, "a slot outside of the arena: granule " + std::to_string(first) + ", "
                               + std::to_string(bytes) + " bytes"};
  const std::byte* const at = memory_->slots.data() + (first - layout.first) * granule_bytes;
  return std::shared_ptr<const std::byte>{
    at, [mapped = memory_, first](const std::byte*) {
      auto* const words = reinterpret_cast<std::uint32_t*>(mapped->words.data());
      std::atomic_ref{words[first]}.store(static_cast<std::uint32_t>(slot_word::free),
                                          std::memory_order_release);
    }};
}

} // namespace troupe::detail
