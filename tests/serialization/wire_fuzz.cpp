// Feeds any bytes to wire::decode_prefix and wire::decode. Input: a frame, as in golden/.
#include "tests/serialization/frame_bytes.hpp"
#include "tests/serialization/fuzz_main.hpp"
#include "tests/serialization/random_messages.hpp"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  const auto bytes = std::as_bytes(std::span{data, size});
  if (bytes.size() < wire::prefix_bytes)
    return 0;
  const auto sizes = wire::decode_prefix(bytes.first<wire::prefix_bytes>());
  const auto rest = bytes.subspan(wire::prefix_bytes);
  // If the prefix does not fit the input, all of it is the head. Otherwise most mutations would end
  // at a wrong length.
  const auto head_bytes = sizes ? std::min(sizes->head_bytes, rest.size()) : rest.size();
  const auto decoded = test::decode_segments(rest.first(head_bytes), rest.subspan(head_bytes));
  if (!decoded)
    return 0;
  // An accepted message can be sent on, and stays the same.
  const auto sent = test::flatten(wire::encode(*decoded));
  const auto again = test::decode_frame(sent);
  if (!again || test::flatten(wire::encode(*again)) != sent)
    std::abort();
  return 0;
}

#ifndef TROUPE_FUZZ_REPLAY
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  using namespace troupe::test;
  return mutate_or_make(data, size, max_size, seed, [](random_source& random) {
    return flatten(troupe::wire::encode(random_message(random, random.below(message_kinds))));
  });
}
#endif
