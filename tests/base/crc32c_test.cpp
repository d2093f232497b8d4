#include "base/crc32c.hpp"

#include "base/bytes.hpp"

#include "doctest/doctest.h"

#include <random>
#include <vector>

namespace troupe::storage::detail::crc32c_test {

TEST_CASE("the checksum has the values of RFC 3720, appendix B.4") {
  CHECK(crc32c({}) == 0);
  CHECK(crc32c(bytes_of("123456789")) == 0xE3069283u);
  CHECK(crc32c(std::vector(32, std::byte{0x00})) == 0x8A9136AAu);
  CHECK(crc32c(std::vector(32, std::byte{0xFF})) == 0x62A8AB43u);
}

TEST_CASE("both versions agree at every length and start, in one piece and in two") {
  std::mt19937 random{7};
  std::vector<std::byte> bytes(40'000);
  for (auto& byte : bytes)
    byte = static_cast<std::byte>(random());
  const std::span<const std::byte> all{bytes};
  for (const std::size_t size : {0, 1, 3, 7, 8, 9, 255, 4096, 12'287, 12'288, 12'289, 39'000})
    for (std::size_t first = 0; first < 9; ++first) {
      const auto part = all.subspan(first, size);
      const auto sum = crc32c(part);
      CHECK(sum == crc32c_portable(part));
      const auto cut = size / 3;
      CHECK(sum == crc32c(part.subspan(cut), crc32c(part.first(cut))));
    }
}

} // namespace troupe::storage::detail::crc32c_test
