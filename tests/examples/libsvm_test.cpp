#include "examples/02_async_sgd/data/libsvm.hpp"

#include "tests/examples/refused.hpp"
#include "tests/examples/temp_folder.hpp"

#include "doctest/doctest.h"

#include <string>
#include <vector>

using troupe::errc;

namespace async_sgd::libsvm_test {

namespace {

libsvm_file parsed(const std::string& text, bool zero_based = false) {
  const std::string path = "a.svm";
  auto file = parse_libsvm({path, text}, {"", zero_based});
  CAPTURE(text);
  REQUIRE_MESSAGE(file, file.error().text);
  return *std::move(file);
}

std::string fault_of(const std::string& text, bool zero_based = false) {
  const std::string path = "a.svm";
  const auto file = parse_libsvm({path, text}, {"", zero_based});
  CAPTURE(text);
  REQUIRE_FALSE(file);
  return file.error().text;
}

} // namespace

TEST_CASE("indices count from 1, or with --zero-based from 0") {
  CHECK(parsed("1 1:5 3:6\n").rows.columns == std::vector<std::uint32_t>{0, 2});
  CHECK(parsed("1 0:5 3:6\n", true).rows.columns == std::vector<std::uint32_t>{0, 3});
  CHECK(parsed("1 0:5 3:6\n", true).features == 4);
  CHECK(fault_of("1 1:5\n1 0:5\n")
        == "bad feature '0:5': indices count from 1; give --zero-based where they count from 0 "
           "(a.svm line 2)");
  CHECK(parsed("1 268435456:1\n").features == 268435456);
  CHECK(parsed("1 268435455:1\n", true).features == 268435456);
  for (const char* word : {"268435457:1", "4294967296:1", "99999999999999999999999:1"})
    CHECK(fault_of("1 " + std::string(word))
          == "bad feature '" + std::string(word)
               + "': its index is above the limit of 268435456 (a.svm line 1)");
  CHECK(fault_of("1 268435456:1", true)
        == "bad feature '268435456:1': its index is above the limit of 268435455 (a.svm line 1)");
  check_refused("digits", errc::invalid_argument, {"--zero-based needs LIBSVM data", "'digits'"},
                {"", true});
}

TEST_CASE("an index that is there twice is refused, in any order of the others") {
  CHECK(fault_of("1 1:1\n1 2:1 2:1\n") == "index 2 is there twice (a.svm line 2)");
  CHECK(fault_of("1 3:1 5:1 1:1 3:1\n") == "index 3 is there twice (a.svm line 1)");
  CHECK(fault_of("1 0:1 0:1\n", true) == "index 0 is there twice (a.svm line 1)");
  CHECK(parsed("1 3:1 1:1\n1 1:1\n1 1:1 3:1").rows.columns
        == std::vector<std::uint32_t>{2, 0, 0, 0, 2});
}

TEST_CASE("a value is a number that f32 can hold") {
  CHECK(parsed("1 1:1e-400 2:+2 3:-1e-9999\n").rows.values == std::vector<float>{0, 2, 0});
  CHECK(fault_of("1 1:1e400\n")
        == "bad feature '1:1e400': a value too large for f32 '1e400' (a.svm line 1)");
  CHECK(fault_of("1 1:+-1\n") == "bad feature '1:+-1': bad number '+-1' (a.svm line 1)");
  CHECK(fault_of("1 1:NA\n") == "bad feature '1:NA': a missing value 'NA' (a.svm line 1)");
  CHECK(fault_of("1 1:\n") == "bad feature '1:': a missing value '' (a.svm line 1)");
}

TEST_CASE("groups of ranking data and comments are ignored, and groups are told") {
  const auto file = parsed("2 qid:1 1:0.5 # a\n1 qid:10 2:0.5\n0 1:1#b 2:1\n# c\n\n");
  CHECK(file.grouped == 2);
  CHECK(file.labels.size() == 3);
  CHECK(file.rows.values == std::vector<float>{0.5f, 0.5f, 1.0f});
  for (const char* word : {"qid:", "qid:x", "qid:-1", "sid:1"})
    CHECK(fault_of("1 " + std::string(word) + " 1:1")
          == "bad feature '" + std::string(word) + "', not index:value (a.svm line 1)");
  CHECK(fault_of("1 qid:1 qid:2 1:1") == "bad feature 'qid:2', not index:value (a.svm line 1)");
}

TEST_CASE("a row must have a label, and spellings of one number are one class") {
  CHECK(parsed("1 1:1\n+1 1:1\n1.0 1:1\n-1 1:1\n").labels.names().size() == 2);
  CHECK(fault_of("1 1:1\n1:1 2:1\n") == "no label in front of '1:1' (a.svm line 2)");
  CHECK(fault_of("+-1 1:1\n")
        == "bad label '+-1', not a whole number up to 1000000000 (a.svm line 1)");
}

TEST_CASE("what was read of libsvm files is told") {
  const temp_folder folder;
  const auto train = folder.write("train", "1 qid:1 1:1\n0 2:1\n0 2:1\n");
  const auto test = folder.write("test", "1 3:1 5:1\n0 2:1\n0 3:1\n");
  const auto data = load_dataset("libsvm:" + train + "," + test);
  REQUIRE(data);
  CHECK(data->remarks
        == std::vector<std::string>{"read " + train + ": 3 rows, 2 features, 2 classes (0 2, 1 1)",
                                    "ignored qid:N in 1 row of " + train
                                      + ": groups of ranking data are not used",
                                    "read " + test + ": 3 rows, 5 features, 2 classes (0 2, 1 1)",
                                    "2 features of " + test + " do not occur in " + train,
                                    "class '1' has a single row in " + train});
  const auto zero_based = load_dataset("libsvm:" + train + "," + test, {"", true});
  REQUIRE(zero_based);
  CHECK(remark_with(*zero_based, "no row has index 0") != "");
}

} // namespace async_sgd::libsvm_test
