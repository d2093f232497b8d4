// Fuzzes a link's bytes after the preamble, cut anywhere. Input: the kind of peer, how the bytes
// are cut, the bytes.
#include "actors/transport/frames/fragment_reader.hpp"
#include "tests/actors/fragment_bytes.hpp"
#include "tests/serialization/frame_bytes.hpp"
#include "tests/serialization/fuzz_main.hpp"
#include "tests/serialization/random_messages.hpp"

#include <array>
#include <cstdlib>

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr std::size_t segment_bytes_max = std::size_t{32} << 10;

struct outcome {
  std::vector<std::vector<std::byte>> messages;
  bool malformed = false;
  bool arena_mapped = false;

  bool operator==(const outcome&) const = default;
};

class receiver {
public:
  explicit receiver(bool admitted) : reader_(pool()) {
    if (admitted)
      reader_.admit(nullptr);
  }

  /// Takes the bytes of one read, as a connection does.
  void take(std::span<const std::byte> bytes) {
    const auto direct = reader_.direct();
    const std::size_t in_place = std::min(direct.size(), bytes.size());
    if (in_place != 0) {
      std::memcpy(direct.data(), bytes.data(), in_place);
      reader_.advance(in_place);
      bytes = bytes.subspan(in_place);
    }
    copy(bytes);
  }

  void copy(std::span<const std::byte> bytes) {
    for (;;) {
      if (reader_.complete())
        decode();
      if (bytes.empty() || end.malformed)
        return;
      const auto taken = reader_.take(bytes);
      end.malformed = !taken;
      end.arena_mapped = reader_.take_arena_mapped() || end.arena_mapped;
      if (end.malformed)
        return;
      if (*taken > bytes.size() || (*taken == 0 && !reader_.complete()))
        std::abort();
      bytes = bytes.subspan(*taken);
    }
  }

  outcome end;

private:
  static buffer_pool& pool() {
    static buffer_pool shared;
    return shared;
  }
  void decode() {
    const auto what = reader_.decode();
    end.malformed = !what;
    if (what)
      end.messages.push_back(flatten(wire::encode(*what)));
  }

  detail::fragment_reader reader_;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2)
    return 0;
  const bool admitted = (data[0] & 1) != 0;
  random_source cuts{data[1]};
  const auto bytes = std::as_bytes(std::span{data + 2, size - 2});
  if (has_large_segment(bytes, segment_bytes_max))
    return 0;
  receiver in_place{admitted}, copied{admitted};
  copied.copy(bytes);
  for (auto rest = bytes; !rest.empty() && !in_place.end.malformed;) {
    const auto piece = rest.first(std::min<std::size_t>(1 + cuts.below(200), rest.size()));
    in_place.take(piece);
    rest = rest.subspan(piece.size());
  }
  if (in_place.end != copied.end)
    std::abort();
  return 0;
}

#ifndef TROUPE_FUZZ_REPLAY
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  return mutate_or_make(data, size, max_size, seed, [](random_source& random) {
    std::vector<std::byte> made{std::byte{1}, static_cast<std::byte>(random.next())};
    append(made, random_fragments(random));
    return made;
  });
}
#endif
