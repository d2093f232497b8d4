// Checks damaged messages: decoders return for any bytes, and a message that they accept can be
// sent again.
#include "doctest/doctest.h"
#include "tests/serialization/frame_bytes.hpp"
#include "tests/serialization/random_messages.hpp"

namespace troupe::test::malformed_test {

namespace {

void check_harmless(const result<message>& decoded) {
  if (!decoded) {
    CHECK(
      (decoded.error().code == errc::malformed || decoded.error().code == errc::version_mismatch));
    CHECK(!decoded.error().text.empty());
    return;
  }
  const auto again = decode_frame(flatten(wire::encode(*decoded)));
  CHECK_MESSAGE(again, again.error().text);
}

void flip_bits(std::span<std::byte> bytes, std::uint64_t count, random_source& random) {
  for (; count > 0; --count)
    bytes[random.below(bytes.size())] ^= std::byte{1} << random.below(8);
}

} // namespace

TEST_CASE("every truncation of a message is survived") {
  random_source random{1};
  for (std::size_t kind = 0; kind < message_kinds; ++kind)
    for (int i = 0; i < 5; ++i) {
      const auto bytes = flatten(wire::encode(random_message(random, kind)));
      const auto all = std::span{bytes};
      for (std::size_t size = 0; size < bytes.size(); ++size)
        CHECK(!decode_frame(all.first(size)));
      const auto head_bytes = wire::decode_prefix(all.first<wire::prefix_bytes>())->head_bytes;
      const auto head = all.subspan(wire::prefix_bytes, head_bytes);
      const auto body = all.subspan(wire::prefix_bytes + head_bytes);
      for (std::size_t size = 0; size < head.size(); ++size)
        check_harmless(decode_segments(head.first(size), body));
      for (std::size_t size = 0; size < body.size(); ++size)
        check_harmless(decode_segments(head, body.first(size)));
    }
}

TEST_CASE("flipped bits in a message are survived") {
  random_source random{2};
  auto accepted = 0;
  for (std::size_t kind = 0; kind < message_kinds; ++kind)
    for (int i = 0; i < 3000; ++i) {
      auto bytes = flatten(wire::encode(random_message(random, kind)));
      flip_bits(bytes, 1 + random.below(4), random);
      const auto decoded = decode_frame(bytes);
      check_harmless(decoded);
      accepted += decoded ? 1 : 0;
    }
  // Many flips only change a number. If no message passed, this test would cover one early exit
  // only.
  CHECK(accepted > 1000);
}

TEST_CASE("words replaced by others of the same message are survived") {
  random_source random{3};
  for (std::size_t kind = 0; kind < message_kinds; ++kind)
    for (int i = 0; i < 2000; ++i) {
      auto bytes = flatten(wire::encode(random_message(random, kind)));
      const auto words = bytes.size() / 8;
      for (auto copies = 1 + random.below(3); copies > 0; --copies)
        std::memmove(bytes.data() + 8 * random.below(words), bytes.data() + 8 * random.below(words),
                     8);
      check_harmless(decode_frame(bytes));
    }
}

TEST_CASE("noise is survived") {
  random_source random{4};
  for (int i = 0; i < 5000; ++i) {
    std::vector<std::byte> bytes(8 * random.below(64));
    for (auto& x : bytes)
      x = static_cast<std::byte>(random.next());
    check_harmless(decode_segments(bytes, {}));
    CHECK(!wire::decode_job(bytes));
  }
}

TEST_CASE("a damaged job is refused or is still a usable job") {
  random_source random{5};
  for (int i = 0; i < 3000; ++i) {
    auto bytes = wire::encode_job(random_job(random));
    if (i % 10 == 0)
      for (std::size_t size = 0; size < bytes.size(); ++size)
        CHECK(!wire::decode_job(std::span{bytes}.first(size)));
    flip_bits(bytes, 1 + random.below(4), random);
    if (const auto decoded = wire::decode_job(bytes))
      CHECK(validate(*decoded));
  }
}

} // namespace troupe::test::malformed_test
