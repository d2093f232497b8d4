#include "examples/02_async_sgd/data/text_lines.hpp"

#include "tests/examples/packed.hpp"
#include "tests/examples/refused.hpp"
#include "tests/examples/temp_folder.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <string_view>

using troupe::errc;

namespace async_sgd::text_lines_test {

namespace {

using namespace std::string_literals;

std::vector<std::string> lines_of(std::string_view text) {
  line_cutter lines(text);
  std::vector<std::string> found;
  for (std::string_view line; lines.next(line);) {
    found.emplace_back(line);
    CHECK(lines.number() == found.size());
  }
  return found;
}

} // namespace

TEST_CASE("lines end with LF, CRLF or CR") {
  using list = std::vector<std::string>;
  CHECK(lines_of("a\nb\r\nc\rd") == list{"a", "b", "c", "d"});
  CHECK(lines_of("a\n") == list{"a"});
  CHECK(lines_of("a\r") == list{"a"});
  CHECK(lines_of("a\r\n") == list{"a"});
  CHECK(lines_of("\n\r\r\n\n\r") == list{"", "", "", "", ""});
  CHECK(lines_of("a\n\rb") == list{"a", "", "b"});
  CHECK(lines_of("") == list{});
}

TEST_CASE("a large text of CR alone is cut in linear time") {
  std::string text;
  for (int i = 0; i < 1'000'000; ++i)
    text += "1\r";
  line_cutter lines(text);
  std::string_view line;
  const auto start = std::chrono::steady_clock::now();
  while (lines.next(line)) {
  }
  CHECK(lines.number() == 1'000'000);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds{5});
}

TEST_CASE("numbers are read as people write them, and refused by kind") {
  const auto read = [](std::string_view text) {
    double number = -1.0;
    CAPTURE(text);
    CHECK(parse_number(text, number));
    return number;
  };
  CHECK(read("1") == 1.0);
  CHECK(read("+1.5") == 1.5);
  CHECK(read("-.5e1") == -5.0);
  CHECK(read("1e-400") == 0.0);
  CHECK(read("-1e-5000") == 0.0);
  CHECK(read("0.0e-999999") == 0.0);
  double ignored = 0.0;
  for (const char* text : {"", "+", "-", "+-1", "++1", "-+1", "1x", " 1", "1 ", "0x1", "1,5", "nan",
                           "inf", "-inf", "1e39", "1e400", "1e999999", "NA"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_number(text, ignored));
  }
  CHECK(number_fault("1e400") == "a value too large for f32 '1e400'");
  CHECK(number_fault("-1e39") == "a value too large for f32 '-1e39'");
  CHECK(number_fault("inf") == "an infinite value 'inf'");
  CHECK(number_fault("+-1") == "bad number '+-1'");
  CHECK(number_fault("3,5") == "a decimal comma instead of a point in '3,5'");
  CHECK(number_fault("1,2,3") == "bad number '1,2,3'");
  for (const char* text : {"", "NA", "n/a", "NaN", "?", "null", "None"})
    CHECK(number_fault(text) == "a missing value '" + std::string(text) + "'");
}

TEST_CASE("a UTF-8 byte order mark is skipped, other encodings and NUL bytes are named") {
  const temp_folder folder;
  const auto rows = folder.write("rows.csv", "1.5,0\n2,1\n");
  const auto marked = folder.write("marked.csv", "\xef\xbb\xbf"
                                                 "1.5,0\n2,1\n");
  const auto plain = load_dataset("csv:" + rows + "," + rows);
  const auto data = load_dataset("csv:" + marked + "," + rows);
  REQUIRE(data);
  REQUIRE(plain);
  CHECK(checksum_of(*data) == checksum_of(*plain));
  const auto refuse = [&](const std::string& text, const std::vector<std::string>& parts) {
    for (const std::string kind : {"csv:", "libsvm:"}) {
      check_refused(kind + folder.write("odd", text) + "," + rows, errc::malformed, parts);
      check_refused(kind + folder.write("odd", gzip_of(text)) + "," + rows, errc::malformed, parts);
    }
  };
  refuse("\xff\xfe"
         "1\0,\0"s,
         {"odd is UTF-16: save it as UTF-8"});
  refuse("\xfe\xff\0001\0,"s, {"odd is UTF-16: save it as UTF-8"});
  refuse("\xff\xfe\0\0"s, {"odd is UTF-32: save it as UTF-8"});
  refuse("\xef\xbb\xbf", {"the file is empty", "odd"});
  refuse("1 1:1\n0 1:2\r\n\0\0\0"s, {"a NUL byte", "odd line 3"});
  refuse("1 1:1\r0 1:2\0"s, {"a NUL byte", "odd line 2"});
  refuse("\0"s, {"a NUL byte", "odd line 1"});
}

TEST_CASE("long words, long lines and control characters make short, harmless messages") {
  const temp_folder folder;
  const auto good = folder.write("good", "1 1:1\n0 1:2\n");
  const std::string word(1'000'000, 'x');
  for (const std::string& text : {word, "1 " + word, "1 1:" + word, word + ":" + word,
                                  "\x1b[2J\x1b]0_owned\7\x1b[31mred 1:1\n"s})
    for (const std::string kind : {"csv:", "libsvm:"})
      check_refused(kind + folder.write("long", text) + "," + good, errc::malformed,
                    {"long line 1"});
  check_refused("csv:" + folder.write("long", "1,\"" + word) + "," + good, errc::malformed,
                {"a quote that no other one closes", "long line 1"});
  const auto rows = folder.write("rows", "1,0\n2,1\n");
  check_refused("csv:" + folder.write("long", word + ",b\n1,0\n") + "," + rows, errc::malformed,
                {"fewer than 2"});
}

} // namespace async_sgd::text_lines_test
