#include "base/quote.hpp"

#include "doctest/doctest.h"
#include "tests/serialization/random_source.hpp"

#include "nlohmann/json.hpp"

#include <string>

namespace troupe::test::quote_test {

using namespace std::string_literals;

TEST_CASE("quoted text is printable, and short") {
  CHECK(quote("abc") == "'abc'");
  CHECK(quote("") == "''");
  CHECK(quote("a\0b\x1b[31mc"s) == "'a\\x00b\\x1b[31mc'");
  CHECK(quote("gr\xc3\xbc\xc3\x9f") == "'gr\xc3\xbc\xc3\x9f'");
  CHECK(quote("\xff\xc3") == "'\\xff\\xc3'");
  CHECK(quote("\xe2\x80\xae") == "'\\xe2\\x80\\xae'");                   // right-to-left override
  CHECK(quote("\xc2\x9b") == "'\\xc2\\x9b'");                            // a C1 control
  CHECK(quote("\xed\xa0\x80\xc0\xaf") == "'\\xed\\xa0\\x80\\xc0\\xaf'"); // not UTF-8
  CHECK(quote(std::string(40, 'x')) == "'" + std::string(40, 'x') + "'");
  CHECK(quote(std::string(1'300'000, 'x')) == "'" + std::string(40, 'x') + "...'");
}

TEST_CASE("a printable line has no line ends and a limit") {
  CHECK(printable("one\ntwo") == "one\\x0atwo");
  CHECK(printable(std::string(2000, 'x')).size() == 1003);
  CHECK(printable("abcdef", 3) == "abc...");
}

TEST_CASE("long words of a message are cut") {
  CHECK(with_short_words("--x: no  number ") == "--x: no  number ");
  CHECK(with_short_words("a " + std::string(201, 'x') + " b")
        == "a " + std::string(40, 'x') + "... b");
  CHECK(with_short_words(std::string(200, 'x')) == std::string(200, 'x'));
  CHECK(with_short_words("").empty());
}

TEST_CASE("any bytes become UTF-8 and come back") {
  CHECK(escape_bytes("/tmp/gr\xc3\xbc\xc3\x9f") == "/tmp/gr\xc3\xbc\xc3\x9f");
  CHECK(escape_bytes("a\\x41") == "a\\x5cx41");
  random_source random{1};
  for (int round = 0; round < 1000; ++round) {
    std::string bytes;
    for (auto n = random.below(30); n > 0; --n)
      bytes += static_cast<char>(random.below(4) == 0 ? '\\' : random.below(256));
    const auto text = escape_bytes(bytes);
    CHECK(unescape_bytes(text) == bytes);
    CHECK_NOTHROW((void)nlohmann::json(text).dump()); // dump() throws if bytes are not UTF-8.
  }
}

} // namespace troupe::test::quote_test
