// Fuzzes both ends of an arena while the opposite end misbehaves. Input: a list of acts.
#include "actors/transport/frames/arena_reader.hpp"
#include "actors/transport/frames/arena_writer.hpp"
#include "tests/serialization/fuzz_main.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdlib>

using namespace troupe;
using namespace troupe::detail;

namespace {

constexpr std::size_t arena_bytes = arena_bytes_min;
constexpr std::size_t floats_max = (arena_bytes - granule_bytes) / sizeof(float);

class world {
public:
  world()
      : writer_(arena_writer::make(arena_bytes)), memory_(writer_->take_descriptor()),
        reader_(arena_reader::map(memory_)), whole_(memory_.get(), 0, arena_bytes, true) {
    if (!reader_ || !whole_)
      std::abort();
  }

  void act(std::uint8_t what, std::uint32_t a, std::uint32_t b) {
    switch (what % 5) {
    case 0: return place(1 + a % (floats_max + 999));
    case 1: return let_go(a);
    case 2: // The reader scribbles over a word.
      std::atomic_ref{reinterpret_cast<std::uint32_t*>(whole_.data())[a % 1024]} = b;
      return;
    case 3: // The writer invents a slot.
      return read(reader_->slot(a, b), b);
    case 4: // The writer scribbles over what is read.
      whole_.data()[a % arena_bytes] = static_cast<std::byte>(b);
      return;
    }
  }

  /// Makes the arena one free run again: every input begins there. The reader can lose none of the
  /// memory for good.
  void reset() {
    held_.clear();
    std::memset(whole_.data(), 0, granule_bytes);
    place(floats_max);
    if (held_.empty())
      std::abort();
    held_.clear();
  }

private:
  void place(std::size_t floats) {
    static const std::vector<std::byte> values((floats_max + 999) * sizeof(float), std::byte{1});
    wire::frame frame;
    frame.head.resize(wire::prefix_bytes);
    const std::size_t bytes = floats * sizeof(float);
    frame.body = {{nullptr, std::span{values}.first(bytes)}};
    const wire::frame placed = writer_->place(std::move(frame));
    std::uint32_t slot = 0;
    std::memcpy(&slot, placed.head.data() + slot_number_offset, sizeof slot);
    if (!placed.body.empty()) {
      if (slot != 0)
        std::abort();
      return;
    }
    // A slot that our writer places can be read by our reader.
    const auto found = reader_->slot(slot, bytes);
    if (!found || *found->get() != std::byte{1} || found->get()[bytes - 1] != std::byte{1})
      std::abort();
    held_.push_back(*found);
  }

  void read(const result<std::shared_ptr<const std::byte>>& slot, std::size_t bytes) {
    if (!slot)
      return;
    volatile auto sum = static_cast<unsigned>(slot->get()[0]);
    sum = sum + static_cast<unsigned>(slot->get()[bytes - 1]);
    if (reinterpret_cast<std::uintptr_t>(slot->get()) % 64 != 0)
      std::abort();
    held_.push_back(*slot);
  }

  void let_go(std::uint32_t which) {
    if (held_.empty())
      return;
    std::swap(held_[which % held_.size()], held_.back());
    held_.pop_back();
  }

  std::vector<std::shared_ptr<const std::byte>> held_; ///< Declared first: outlives both ends.
  std::unique_ptr<arena_writer> writer_;
  descriptor memory_;
  std::shared_ptr<arena_reader> reader_;
  mapped_memory whole_;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t act_bytes = 9;
  if (size < act_bytes)
    return 0;
  static world made;
  made.reset();
  for (; size >= act_bytes; data += act_bytes, size -= act_bytes) {
    std::uint32_t numbers[2];
    std::memcpy(numbers, data + 1, sizeof numbers);
    made.act(data[0], numbers[0], numbers[1]);
  }
  return 0;
}
