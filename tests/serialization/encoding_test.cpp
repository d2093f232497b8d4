#include "serialization/encoding.hpp"

#include "doctest/doctest.h"

#include <string>

namespace troupe::encoding_test {

TEST_CASE("what compression is written as is read again") {
  for (const std::string text : {"f32", "fp16", "bf16", "int8", "onebit", "topk:0.01", "topk:1",
                                 "randomk:0.25", "randomk:1e-06"}) {
    const auto read = parse_compression(text);
    REQUIRE_MESSAGE(read, text);
    CHECK(to_string(*read) == text);
  }
  for (const std::string text : {"fp16", "bf16", "int8"})
    CHECK(to_string(*parse_pull_encoding(text)) == text);
}

TEST_CASE("compression that cannot be is refused with what to do") {
  for (const std::string text : {"topk", "topk:", "topk:0", "topk:-1", "topk:1.5", "topk:nan",
                                 "topk:0.1x", "topk:0.1:2", "randomk:inf", "randomk:0"}) {
    const auto read = parse_compression(text);
    REQUIRE_MESSAGE(!read, text);
    CHECK(read.error().text.find("needs the fraction of elements to send, above 0 and at most 1")
          != std::string::npos);
  }
  CHECK(parse_compression("int8:4").error().text == "'int8:4': int8 takes no number");
  for (const std::string text : {"", "fp8", "f32:1", "FP16", ":0.1", "gzip"})
    CHECK(parse_compression(text).error().text
          == "'" + text
               + "' is none of f32, fp16, bf16, int8, onebit, topk:FRACTION and randomk:FRACTION");
  for (const std::string text : {"", "f32", "onebit", "topk:0.1", "int8:1"})
    CHECK(parse_pull_encoding(text).error().text.starts_with("'" + text + "' is none of fp16"));
}

TEST_CASE("sets of encodings have names") {
  CHECK(names_of(0).empty());
  CHECK(names_of(only(encoding::f32)).empty());
  CHECK(names_of(only(encoding::topk) | only(encoding::fp16)) == "fp16, topk");
  CHECK(names_of(all_encodings) == "fp16, bf16, int8, onebit, topk, randomk");
}

} // namespace troupe::encoding_test
