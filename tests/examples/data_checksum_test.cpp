#include "examples/02_async_sgd/data/dataset.hpp"

#include "tests/examples/refused.hpp"
#include "tests/examples/temp_folder.hpp"

#include "doctest/doctest.h"

#include <set>

namespace async_sgd::data_checksum_test {

namespace {

std::string checksum_of_files(const std::string& kind, const std::string& train,
                              const std::string& test, const data_options& options = {}) {
  const temp_folder folder;
  const auto data = load_dataset(
    kind + ":" + folder.write("train", train) + "," + folder.write("test", test), options);
  REQUIRE_MESSAGE(data, data.error().text);
  return checksum_of(*data);
}

} // namespace

TEST_CASE("the checksum differs for other labels, values, columns, rows and test data") {
  const std::set<std::string> csv{
    checksum_of_files("csv", "1,5,a\n2,7,b\n4,9,b\n", "1,2,a\n"),
    checksum_of_files("csv", "1,5,b\n2,7,a\n4,9,b\n", "1,2,a\n"), // Other labels.
    checksum_of_files("csv", "1,5,a\n3,7,b\n4,9,b\n", "1,2,a\n"), // Another value.
    checksum_of_files("csv", "5,1,a\n7,2,b\n9,4,b\n", "1,2,a\n"), // Swapped columns.
    checksum_of_files("csv", "1,5,a\n4,9,b\n2,7,b\n", "1,2,a\n"), // Swapped rows.
    checksum_of_files("csv", "1,5,a\n2,7,b\n4,9,b\n", "1,3,a\n"), // Another test value.
    checksum_of_files("csv", "1,5,a\n2,7,b\n4,9,b\n", "1,2,b\n"), // Another test label.
  };
  CHECK(csv.size() == 7);
  const std::set<std::string> libsvm{
    checksum_of_files("libsvm", "1 1:1 2:2\n0 3:1\n", "1 1:1\n"),
    checksum_of_files("libsvm", "1 1:1 2:3\n0 3:1\n", "1 1:1\n"),
    checksum_of_files("libsvm", "1 1:1\n0 2:2 3:1\n", "1 1:1\n"),
    checksum_of_files("libsvm", "1 1:1 2:2\n0 4:1\n", "1 1:1\n"),
    checksum_of_files("libsvm", "1 1:1 2:2\n0 3:1\n", "1 1:2\n"),
    checksum_of_files("libsvm", "1 1:1 2:2\n0 3:1\n", "1 1:1\n", {"", true}),
  };
  CHECK(libsvm.size() == 6);
  for (const std::string& checksum : libsvm)
    CHECK(checksum.size() == 16);
}

TEST_CASE("the checksum is that of the values, not of how they are written") {
  CHECK(checksum_of_files("csv", "1,5,a\n2,7,b\n", "1,2,a\n")
        == checksum_of_files("csv", "x;y;kind\r\n1.0;+5;a\r\n\"2\";7e0;b\r\n", "1,2,a"));
}

TEST_CASE("drawn digits have the checksum of their seed") {
  const auto data = load_dataset("digits");
  REQUIRE(data);
  CHECK(checksum_of(*data) == checksum_of(*load_dataset("digits")));
  CHECK(data->remarks == std::vector<std::string>{"drew digits: 60000 + 10000 images, 10 classes"});
}

} // namespace async_sgd::data_checksum_test
