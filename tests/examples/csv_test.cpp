#include "examples/02_async_sgd/data/csv_file.hpp"

#include "tests/examples/refused.hpp"
#include "tests/examples/temp_folder.hpp"

#include "doctest/doctest.h"

#include <string>
#include <vector>

using troupe::errc;

namespace async_sgd::csv_test {

namespace {

using words = std::vector<std::string>;

csv_file parsed(const std::string& text, const data_options& options = {},
                const csv_file* train = nullptr) {
  const std::string path = "a.csv";
  auto file = parse_csv({path, text}, options, train);
  CAPTURE(text);
  REQUIRE_MESSAGE(file, file.error().text);
  return *std::move(file);
}

std::string fault_of(const std::string& text, const data_options& options = {}) {
  const std::string path = "a.csv";
  const auto file = parse_csv({path, text}, options);
  CAPTURE(text);
  REQUIRE_FALSE(file);
  return file.error().text;
}

/// Returns the labels of the rows as class_name() gives them.
words labels_of(const csv_file& file) {
  words labels;
  for (const std::uint32_t row : file.labels.rows())
    labels.push_back(file.labels.names()[row].text);
  return labels;
}

} // namespace

TEST_CASE("quoted fields hold separators, quotes and line ends") {
  const auto file = parsed("x,who\n1,\"Smith, John\"\n2,\"a \"\"b\"\"\"\n3,\"two\r\nlines\" \n"
                           " \"4\" , \"Smith, John\"\n5,5\" pipe");
  CHECK(labels_of(file)
        == words{"Smith, John", "a \"b\"", "two\r\nlines", "Smith, John", "5\" pipe"});
  CHECK(file.values == std::vector<float>{1, 2, 3, 4, 5});
  CHECK(fault_of("1,\"two\nlines\"\n2,b\nx,c\n") == "bad number 'x' in column 1 (a.csv line 4)");
  CHECK(fault_of("1,a\n2,\"b\n3,c\n") == "a quote that no other one closes (a.csv line 2)");
  CHECK(fault_of("1,a\n2,\"b\"c\n") == "text behind the closing quote of 'b' (a.csv line 2)");
}

TEST_CASE("commas, semicolons and tabs separate columns, as the first record has them") {
  for (const char* text : {"x,y,z\n1,2,a\n3,4,b\n", "x;y;z\n1;2;a\n3;4;b\n",
                           "x\ty\tz\n1\t2\ta\n3\t4\tb\n", "\"x;,\";y;z\n1;2;a\n3;4;b\n"}) {
    const auto file = parsed(text);
    CHECK(file.columns == 3);
    CHECK(file.values == std::vector<float>{1, 2, 3, 4});
    CHECK(labels_of(file) == words{"a", "b"});
  }
  CHECK(fault_of("1\t2\t\ta\n") == "a missing value '' in column 3 (a.csv line 1)");
  CHECK(fault_of("1,5;2,5;a\n")
        == "a decimal comma instead of a point in '1,5' in column 1 (a.csv line 1)");
  CHECK(fault_of("\"1,5\",2,a\n")
        == "a decimal comma instead of a point in '1,5' in column 1 (a.csv line 1)");
  CHECK(fault_of("1 2 a\n")
        == "a single column and no feature in '1 2 a': columns need commas, semicolons or tabs "
           "between them (a.csv line 1)");
}

TEST_CASE("lines end with CR too") {
  const auto file = parsed("x,y\r1,a\r2,b\r");
  CHECK(file.values == std::vector<float>{1, 2});
  CHECK(labels_of(file) == words{"a", "b"});
  CHECK(fault_of("1,a\r\r2,b\rx,c") == "bad number 'x' in column 1 (a.csv line 4)");
}

TEST_CASE("a first record that names the columns is found") {
  const char* with_header[] = {
    "x,y,label\n1,2,a\n3,4,b\n",    // No feature is a number.
    "x,y,7\n1,2,3\n3,4,5\n",        // No feature is a number here either.
    "0,1,label\n1,2,3\n3,4,5\n",    // All other labels are numbers.
    "2019,y,label\n1,2,3\n3,4,5\n", // One feature name is a number.
    "0,1,2\n1,2,5\n3,4,6\n",        // The names are pandas' defaults, and no class is 2.
    "0,1,2\n1,2,2\n3,4,6\n",        // Default names are likelier than a row of data.
    "0,1,kind\n1,2,a\n3,4,b\n",     // Only the label has a name.
    ",x,label\n0,2,a\n1,4,b\n",     // The table's index column has no name.
    ",0,label\n0,2,a\n1,4,b\n",     // An index column precedes pandas' default name.
  };
  for (const char* text : with_header) {
    const auto file = parsed(text);
    CAPTURE(text);
    CHECK(file.header.size() == 3);
    CHECK(file.labels.size() == 2);
    CHECK(file.values.size() == 4);
    CHECK(file.values[1] != 1.0f);
  }
  const char* without_header[] = {
    "1,2,a\n3,4,b\n",
    "0,1,a\n3,4,b\n5,6,a\n", // 0 and 1 could be default names, but a is a class.
    "1,2,a\n3,4,5\n5,6,b\n", // Other labels are words too.
    "1,2,3\n",
    "0,1,2\n", // There is no other record.
  };
  for (const char* text : without_header) {
    CAPTURE(text);
    const auto file = parsed(text);
    CHECK(file.header.empty());
    CHECK(file.values.size() == 2 * file.labels.size());
    CHECK(labels_of(file)[0] == std::string(1, text[4]));
  }
  CHECK(parsed("0,1\n5,1\n6,0\n").header_like_row);
  CHECK(fault_of("?,NA,3\n1,2,3\n") == "a missing value '?' in column 1 (a.csv line 1)");
  CHECK(fault_of("1,x,a\n1,2,b\n") == "bad number 'x' in column 2 (a.csv line 1)");
}

TEST_CASE("--label names a column by its name or its number") {
  const std::string text = "kind,x,y\nb,1,2\na,3,4\n";
  for (const char* label : {"kind", "1"}) {
    const auto file = parsed(text, {label, false});
    CHECK(labels_of(file) == words{"b", "a"});
    CHECK(file.values == std::vector<float>{1, 2, 3, 4});
  }
  CHECK(labels_of(parsed("1,2,3\n4,5,6\n", {"2", false})) == words{"2", "5"});
  CHECK(labels_of(parsed("9,label,1\n2,3,4\n5,6,7\n", {"label", false})) == words{"3", "6"});
  CHECK(fault_of(text, {"sort", false})
        == "--label 'sort' is no column's name; the first record is 'kind', 'x', 'y': a.csv");
  CHECK(fault_of(text, {"4", false}) == "--label '4', but there are 3 columns, from 1: a.csv");
  CHECK(fault_of(text, {"0", false}) == "--label '0', but there are 3 columns, from 1: a.csv");
  CHECK(fault_of("kind,x\n,1\n", {"kind", false})
        == "no label '' in column 1 ('kind') (a.csv line 2)");
  check_refused("digits", errc::invalid_argument, {"--label needs CSV data", "'digits'"},
                {"kind", false});
  const temp_folder folder;
  const auto train = folder.write("train", text), test = folder.write("test", "a,5,6\n");
  const auto data = load_dataset("csv:" + train + "," + test, {"kind", false});
  REQUIRE(data);
  CHECK(data->test.labels == std::vector<std::uint32_t>{0}); // The training header decides.
}

TEST_CASE("what is doubtful in a csv file is refused or told") {
  const temp_folder folder;
  const auto good = folder.write("good", "1,2,a\n3,4,b\n");
  for (const std::string first :
       {"inf,inf,a", "nan,-inf,a", "1e400,1e500,a", "0x1,0x2,a", "\"1,000,000\",\"2,000,000\",a"}) {
    const auto refused =
      load_dataset("csv:" + folder.write("refused", first + "\n3,4,b\n5,6,a\n") + "," + good);
    REQUIRE_FALSE(refused);
    CHECK_MESSAGE(refused.error().text.find("refused line 1") != std::string::npos,
                  refused.error().text);
  }
  const auto twice = folder.write("twice", "x,l,l\n1,2,a\n2,3,b\n");
  data_options by_name;
  by_name.label = "l";
  const auto ambiguous = load_dataset("csv:" + twice + "," + twice, by_name);
  REQUIRE_FALSE(ambiguous);
  CHECK(ambiguous.error().text.find("is the name of several columns") != std::string::npos);

  const auto holes = folder.write("holes", "1,2,a\n2,3,NA\n3,4,NA\n4,5,a\n");
  const auto missing = load_dataset("csv:" + holes + "," + holes);
  REQUIRE(missing);
  CHECK(missing->remarks[1]
        == "label 'NA' of " + holes + " is taken for a class: is it a missing value?");
}

TEST_CASE("both files must have the same columns in the same order") {
  const temp_folder folder;
  const auto train = folder.write("train", "x,y,kind\n1,2,a\n3,4,b\n");
  check_refused("csv:" + train + "," + folder.write("test", "y,x,kind\n1,2,a\n"), errc::malformed,
                {"column 1 is 'y', but 'x' in the training file", "test line 1"});
  CHECK(load_dataset("csv:" + train + "," + folder.write("test", "1,2,a\n")));
  CHECK(load_dataset("csv:" + folder.write("bare", "1,2,a\n3,4,b\n") + "," + train));
  const auto numbers = folder.write("numbers", "0,1,2\n1,2,7\n3,4,8\n");
  const auto one_row = load_dataset("csv:" + numbers + "," + folder.write("one", "0,1,2\n5,6,7\n"));
  REQUIRE(one_row);
  CHECK(one_row->test.labels.size() == 1);
}

TEST_CASE("spellings of one number are one class") {
  CHECK(labels_of(parsed("5,1\n6,1.0\n7,+1\n8,1e0\n9,01\n9,-0\n9,0\n"))
        == words{"1", "1", "1", "1", "1", "0", "0"});
  // As doubles these two labels would be equal.
  CHECK(labels_of(parsed("5,9007199254740993\n6,9007199254740992.5\n"))
        == words{"9007199254740993", "9007199254740992.5"});
  CHECK(labels_of(parsed("5,1\n6,1.0x\n")) == words{"1", "1.0x"});
}

TEST_CASE("a missing value is named with its column and line") {
  const std::string head = "x,petal,kind\n1,2,a\n\n";
  for (const char* word : {"", "NA", "?", "NaN", "null"})
    CHECK(fault_of(head + "3," + word + ",b\n")
          == "a missing value '" + std::string(word) + "' in column 2 ('petal') (a.csv line 4)");
  for (const char* word : {"", "?", "nan"})
    CHECK(fault_of(head + "3,4," + word + "\n")
          == "no label '" + std::string(word) + "' in the last column (a.csv line 4)");
  CHECK(fault_of(head + "3,inf,b\n")
        == "an infinite value 'inf' in column 2 ('petal') (a.csv line 4)");
  CHECK(fault_of(head + "3,1e99,b\n")
        == "a value too large for f32 '1e99' in column 2 ('petal') (a.csv line 4)");
  CHECK(parsed(head + "3,1e-400,b\n").values.back() == 0.0f);
}

TEST_CASE("what was read of csv files is told") {
  const temp_folder folder;
  std::string text = "x;y;kind\n";
  for (int i = 0; i < 27; ++i)
    text += std::to_string(i) + ";1;class" + std::to_string(10 + i) + "\n";
  const auto many = folder.write("many", text + "5;1;class10\n");
  const auto data = load_dataset("csv:" + many + "," + many);
  REQUIRE(data);
  REQUIRE(data->remarks.size() == 3);
  CHECK(data->remarks[0]
        == "read " + many
             + ": 28 rows, 2 features, 27 classes (class10 2, class11 1, class12 1, "
               "class13 1, class14 1, class15 1, class16 1, class17 1, class18 1, class19 1 and 17 "
               "more), "
               "header in line 1, separator ';'");
  CHECK(data->remarks[2].starts_with("26 classes have a single row in " + many + ": 'class11', "));
  CHECK(data->remarks[2].ends_with(" and 16 more"));

  const auto numbers = folder.write("numbers", "0,1,label\n1,2,0\n3,4,1\n3,4,1\n3,4,0\n");
  const auto doubtful = load_dataset("csv:" + numbers + "," + numbers);
  REQUIRE(doubtful);
  CHECK(remark_with(*doubtful, "read ")
        == "read " + numbers
             + ": 4 rows, 2 features, 2 classes (0 2, 1 2), header in line 1, "
               "separator ','");
  CHECK(remark_with(*doubtful,
                    "line 1 of " + numbers + " is taken for a header, although it holds numbers")
        != "");
  const auto row = folder.write("row", "0,1\n5,1\n6,0\n7,0\n");
  CHECK(remark_with(*load_dataset("csv:" + row + "," + row),
                    "line 1 of " + row + " is taken for a row, although it could be a header")
        != "");
  const auto index = folder.write("index", ",x,kind\n0,5,a\n1,6,b\n");
  CHECK(remark_with(*load_dataset("csv:" + index + "," + index), "has no name: is it an index")
        != "");
  const auto first = folder.write("first", "kind,x\na,1\nb,2\n");
  CHECK(remark_with(*load_dataset("csv:" + first + "," + first, {"kind", false}),
                    ", label in column 1, header")
        != "");
}

} // namespace async_sgd::csv_test
