#include "actors/graph/ranks/rank_notes.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

namespace troupe {

void rank_notes::clear() {
  ++cleared_;
  size_ = 0;
}

void rank_notes::write(const std::vector<program_note>& all) {
  for (std::size_t i = 0; i < std::min(all.size(), slots_.size()); ++i) {
    auto& to = slots_[i];
    const auto& from = all[i];
    if (i >= size_) {
      const auto bytes = std::min(from.name.size(), to.name.size());
      std::copy_n(from.name.begin(), bytes, to.name.begin());
      to.bytes = static_cast<std::uint32_t>(bytes);
      to.is_line = from.is_line;
    }
    to.count = from.count;
    if (i >= size_)
      size_ = static_cast<std::uint32_t>(i + 1); // The reader may now read the slot.
  }
}

std::vector<program_note> rank_notes::read() const {
  std::vector<program_note> all;
  const auto before = cleared_.load();
  const std::size_t size = size_;
  for (std::size_t i = 0; i < std::min(size, slots_.size()); ++i) {
    const auto& from = slots_[i];
    const auto bytes = std::min<std::size_t>(from.bytes, from.name.size());
    all.push_back({std::string(from.name.data(), bytes), from.count, from.is_line});
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  return cleared_ == before ? all : std::vector<program_note>{};
}

} // namespace troupe
