#include "examples/02_async_sgd/data/dataset.hpp"

#include "tests/examples/refused.hpp"
#include "tests/examples/temp_folder.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

using troupe::errc;

namespace async_sgd::dataset_test {

namespace {

std::string big_endian(std::uint32_t x) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes += static_cast<char>(x >> shift);
  return bytes;
}

std::string idx_images(std::uint32_t count, const std::string& pixels) {
  return big_endian(2051) + big_endian(count) + big_endian(2) + big_endian(3) + pixels;
}

std::string idx_labels(std::uint32_t count, const std::string& labels) {
  return big_endian(2049) + big_endian(count) + labels;
}

/// A folder with three training images and one test image of 2 x 3 pixels.
struct idx_folder {
  temp_folder folder;
  std::string pixels = std::string("\0\1\2\3\4\5\6\7\x8\x9\xa\xb\xc\xd\xe\xf\x10\xff", 18);
  std::string train_images = idx_images(3, pixels);
  std::string train_labels = idx_labels(3, std::string("\0\2\1", 3));
  std::string test_images = idx_images(1, pixels.substr(12));
  std::string test_labels = idx_labels(1, "\1");

  troupe::result<dataset> load() const {
    folder.write("train-images-idx3-ubyte", train_images);
    folder.write("train-labels-idx1-ubyte", train_labels);
    folder.write_gz("t10k-images-idx3-ubyte.gz", test_images);
    folder.write_gz("t10k-labels-idx1-ubyte.gz", test_labels);
    return load_dataset("mnist:" + folder.path());
  }
};

std::vector<float> row(const samples& from, std::uint32_t features, std::uint32_t which) {
  std::vector<float> out(features);
  gather(from, features, {&which, 1}, out);
  return out;
}

void check_idx_refused(const idx_folder& files, const std::vector<std::string>& parts) {
  const auto data = files.load();
  REQUIRE_FALSE(data);
  CAPTURE(data.error().text);
  for (const std::string& part : parts) {
    CAPTURE(part);
    CHECK(data.error().text.find(part) != std::string::npos);
  }
}

} // namespace

TEST_CASE("refuses unknown data sets with a list of the known") {
  for (const char* text : {"", "digit", "digits:5", "mnist", "mnist:", "imagenet:/x"})
    check_refused(text, errc::invalid_argument, {"known: digits, mnist:DIR"});
  for (const char* text : {"csv:one", "libsvm", "libsvm:,b", "csv:a,"})
    check_refused(text, errc::invalid_argument, {"two files", ":TRAIN,TEST"});
}

TEST_CASE("reads idx files, plain and gzipped") {
  const idx_folder files;
  const auto data = files.load();
  REQUIRE(data);
  CHECK(data->name == "mnist:" + files.folder.path());
  CHECK(data->features == 6);
  CHECK(data->classes == 3);
  CHECK(data->train.labels == std::vector<std::uint32_t>{0, 2, 1});
  CHECK(data->test.labels == std::vector<std::uint32_t>{1});
  const auto last = row(data->train, 6, 2);
  CHECK(last[0] == doctest::Approx(12.0 / 255.0));
  CHECK(last[5] == doctest::Approx(1.0));
  CHECK(row(data->test, 6, 0) == last);
}

TEST_CASE("refuses damaged idx files with file and offset") {
  idx_folder files;
  SUBCASE("missing") {
    check_refused("mnist:" + files.folder.path(), errc::io_failed,
                  {"no such file", "train-labels-idx1-ubyte[.gz|.bz2|.xz]"});
  }
  SUBCASE("wrong magic") {
    files.train_images = files.train_labels;
    check_idx_refused(files, {"magic number 2049 at offset 0 instead of 2051", "train-images"});
  }
  SUBCASE("truncated header") {
    files.train_images.resize(13);
    check_idx_refused(files, {"offset 13", "header", "train-images"});
  }
  SUBCASE("truncated images") {
    files.train_images.resize(16 + 10);
    check_idx_refused(files, {"offset 26", "8 bytes too early", "train-images"});
  }
  SUBCASE("a header that promises more than there is memory for") {
    files.train_images = big_endian(2051) + big_endian(1 << 14) + big_endian(1 << 10)
                         + big_endian(1 << 11) + std::string(100, '\1');
    files.train_labels = idx_labels(1 << 14, std::string(1 << 14, '\1'));
    check_idx_refused(files, {"offset 116", "34359738268 bytes too early", "train-images"});
  }
  SUBCASE("truncated labels, gzipped") {
    files.test_labels.resize(8);
    check_idx_refused(files, {"offset 8", "1 bytes too early", "t10k-labels"});
  }
  SUBCASE("bytes behind the last item") {
    files.train_labels += "x";
    check_idx_refused(files, {"offset 11", "train-labels"});
  }
  SUBCASE("count mismatch") {
    files.train_labels = idx_labels(2, std::string("\0\1", 2));
    check_idx_refused(files, {"3 images but 2 labels", "train-images"});
  }
  SUBCASE("label unknown in training") {
    files.test_labels = idx_labels(1, "\7");
    check_idx_refused(files, {"label 7 at offset 8", "training", "t10k-labels"});
  }
  SUBCASE("empty") {
    files.train_labels.clear();
    check_idx_refused(files, {"empty", "train-labels"});
  }
  SUBCASE("impossible sizes") {
    files.train_images = big_endian(2051) + std::string(12, '\xff');
    check_idx_refused(files, {"impossible sizes", "train-images"});
  }
  SUBCASE("other size in the test images") {
    files.test_images =
      big_endian(2051) + big_endian(1) + big_endian(1) + big_endian(2) + std::string(2, 'x');
    check_idx_refused(files, {"another size", "t10k-images"});
  }
}

TEST_CASE("reads libsvm text") {
  const temp_folder folder;
  const auto train = folder.write_gz("a.gz", "+1 1:0.5 3:2 # comment\r\n\n-1 2:-1e-1 \n1 3:+4");
  const auto test = folder.write("b", "-1\n+1 4:7\n");
  const auto data = load_dataset("libsvm:" + train + "," + test);
  REQUIRE(data);
  CHECK(data->features == 4);
  CHECK(data->classes == 2);
  CHECK(data->train.labels == std::vector<std::uint32_t>{1, 0, 1});
  CHECK(data->test.labels == std::vector<std::uint32_t>{0, 1});
  const auto& rows = std::get<sparse_rows>(data->train.rows);
  CHECK(rows.first == std::vector<std::uint64_t>{0, 2, 3, 4});
  CHECK(rows.columns == std::vector<std::uint32_t>{0, 2, 1, 2});
  CHECK(rows.values == std::vector<float>{0.5f, 2.0f, -0.1f, 4.0f});
  CHECK(std::get<sparse_rows>(data->test.rows).first == std::vector<std::uint64_t>{0, 0, 1});
}

TEST_CASE("numbers libsvm labels in the order of their values") {
  const temp_folder folder;
  const auto classes = [&](const std::string& text) {
    const auto path = folder.write("x", text);
    const auto data = load_dataset("libsvm:" + path + "," + path);
    REQUIRE(data);
    return data->train.labels;
  };
  CHECK(classes("0 1:1\n1 1:1\n") == std::vector<std::uint32_t>{0, 1});
  CHECK(classes("10 1:1\n2 1:1\n1 1:1\n") == std::vector<std::uint32_t>{2, 1, 0});
  CHECK(classes("+1 1:1\n1.0 1:1\n-1 1:1\n") == std::vector<std::uint32_t>{1, 1, 0});
}

TEST_CASE("refuses bad libsvm text with file and line") {
  const temp_folder folder;
  const auto good = folder.write("good", "1 1:1\n0 2:1\n");
  const auto refuse = [&](const std::string& text, const std::vector<std::string>& parts) {
    check_refused("libsvm:" + folder.write("bad", text) + "," + good, errc::malformed, parts);
  };
  refuse("1 1:1\n\n0 2:x\n", {"bad feature '2:x'", "bad line 3"});
  for (const char* token : {"7", ":1", "1:", "0:1", "-1:1", "a:1", "1:nan", "1:inf", "1:1e99",
                            "1:1:1", "999999999:1", "99999999999:1"})
    refuse("1 1:1\n0 " + std::string(token),
           {"bad feature '" + std::string(token) + "'", "line 2"});
  refuse("yes 1:1\n", {"bad label 'yes'", "line 1"});
  refuse("0.5 1:1\n", {"bad label '0.5'", "line 1"});
  refuse("1 1:1\n1 2:1\n", {"fewer than 2 different labels"});
  refuse("1\n0\n", {"no line has a feature"});
  refuse("", {"empty", "bad"});
  std::string regression;
  for (int i = 0; i <= 1000; ++i)
    regression += std::to_string(i) + " 1:1\n";
  refuse(regression, {"more than 1000 different labels"});
  check_refused("libsvm:" + good + "," + folder.write("test", "\n3 1:1\n"), errc::malformed,
                {"label '3'", "training", "test line 2"});
  check_refused("libsvm:" + good + "," + folder.path() + "/none", errc::io_failed,
                {"cannot open", "/none", "No such file"});
  check_refused("libsvm:" + folder.path() + "," + good, errc::io_failed, {"cannot read"});
}

TEST_CASE("refuses damaged gzip files") {
  const temp_folder folder;
  std::string text;
  for (int i = 0; i < 5000; ++i)
    text +=
      std::to_string(i % 2) + " " + std::to_string(i % 7 + 1) + ":" + std::to_string(i) + "\n";
  const auto path = folder.write_gz("a.gz", text);
  REQUIRE(load_dataset("libsvm:" + path + "," + path));
  std::ifstream file(path, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  const auto cut = folder.write("cut.gz", bytes.substr(0, bytes.size() / 2));
  check_refused("libsvm:" + path + "," + cut, errc::damaged, {"too early", "cut.gz"});
  bytes[bytes.size() - 6] ^= 1; // Flips a bit of the checksum.
  const auto bent = folder.write("bent.gz", bytes);
  check_refused("libsvm:" + bent + "," + path, errc::damaged, {"damaged", "bent.gz"});
}

TEST_CASE("reads csv with names and a header, and standardises by the training file") {
  const temp_folder folder;
  const auto train =
    folder.write("a.csv", "x, y ,z,\"kind\"\n1,5,0,b\n 3, 5,0,\"a\" \r\n\n5,5,0,b\n");
  const auto test = folder.write_gz("b.csv.gz", "7,6,1,a\n");
  const auto data = load_dataset("csv:" + train + "," + test);
  REQUIRE(data);
  CHECK(data->features == 3);
  CHECK(data->classes == 2);
  CHECK(data->train.labels == std::vector<std::uint32_t>{1, 0, 1});
  CHECK(data->test.labels == std::vector<std::uint32_t>{0});
  const double deviation = std::sqrt(8.0 / 3.0);
  CHECK(row(data->train, 3, 0)[0] == doctest::Approx(-2.0 / deviation));
  CHECK(row(data->train, 3, 1) == std::vector<float>{0.0f, 0.0f, 0.0f});
  const auto only = row(data->test, 3, 0);
  CHECK(only[0] == doctest::Approx(4.0 / deviation));
  CHECK(only[1] == 1.0f); // Constant in training, so only the mean is subtracted.
  CHECK(only[2] == 1.0f);
}

TEST_CASE("csv labels that are numbers keep their order") {
  const temp_folder folder;
  const auto path = folder.write("a", "1.5,10\n2.5,9\n0.5,0\n");
  const auto data = load_dataset("csv:" + path + "," + path);
  REQUIRE(data);
  CHECK(data->classes == 3);
  CHECK(data->train.labels == std::vector<std::uint32_t>{2, 1, 0});
}

TEST_CASE("refuses bad csv with file and line") {
  const temp_folder folder;
  const auto good = folder.write("good", "1,2,0\n3,4,1\n");
  const auto refuse = [&](const std::string& text, const std::vector<std::string>& parts) {
    check_refused("csv:" + folder.write("bad", text) + "," + good, errc::malformed, parts);
  };
  refuse("1,2,0\n\n1,2,3,0\n", {"4 columns instead of 3", "bad line 3"});
  refuse("1,2,0\n1,0\n", {"2 columns instead of 3", "bad line 2"});
  refuse("a,b,c\n1,x,0\n", {"bad number 'x' in column 2", "bad line 2"});
  refuse("1,x,0\n", {"bad number 'x' in column 2", "bad line 1"});
  refuse("1,,0\n", {"a missing value '' in column 2", "bad line 1"});
  refuse("1,2,\n", {"no label", "bad line 1"});
  refuse("5\n", {"no feature", "bad line 1"});
  refuse("a,b,c\n", {"no line with data"});
  refuse("\n\n", {"no line with data"});
  refuse("", {"empty", "bad"});
  refuse("1,2,0\n3,4,0\n", {"fewer than 2 different labels"});
  refuse("1,0\n2,1\n", {"3 columns, but 2 in the training file", "good"});
  check_refused("csv:" + good + "," + folder.write("test", "1,2,0\n1,2,two\n"), errc::malformed,
                {"label 'two'", "training", "test line 2"});
}

TEST_CASE("reads the public data sets") {
  const std::string root = public_data();
  if (root.empty()) {
    MESSAGE("SKIPPED: no public data; set TROUPE_DATA to their folder");
    return;
  }
  SUBCASE("mnist") {
    const auto data = load_dataset("mnist:" + root + "/mnist");
    REQUIRE(data);
    CHECK(data->features == 784);
    CHECK(data->classes == 10);
    CHECK(data->train.labels.size() == 60'000);
    CHECK(data->test.labels.size() == 10'000);
    CHECK(std::ranges::count(data->train.labels, 1u) == 6742);
    CHECK(data->train.labels[0] == 5);
    CHECK(data->test.labels[0] == 7);
    const auto image = row(data->train, 784, 0);
    CHECK(std::accumulate(image.begin(), image.end(), 0.0) == doctest::Approx(27525 / 255.0));
  }
  SUBCASE("a9a") {
    const auto data =
      load_dataset("libsvm:" + root + "/libsvm/a9a.gz," + root + "/libsvm/a9a.t.gz");
    REQUIRE(data);
    CHECK(data->features == 123);
    CHECK(data->classes == 2);
    CHECK(data->train.labels.size() == 32'561);
    CHECK(std::ranges::count(data->train.labels, 1u) == 7841);
    CHECK(std::ranges::count(data->test.labels, 1u) == 3846);
  }
  SUBCASE("optdigits and iris") {
    const auto digits = load_dataset("csv:" + root + "/optdigits/optdigits.tra.gz," + root
                                     + "/optdigits/optdigits.tes.gz");
    REQUIRE(digits);
    CHECK(digits->features == 64);
    CHECK(digits->classes == 10);
    CHECK(digits->train.labels.size() == 3823);
    CHECK(digits->test.labels.size() == 1797);
    const auto iris = load_dataset("csv:" + root + "/iris/iris.data," + root + "/iris/iris.data");
    REQUIRE(iris);
    CHECK(iris->features == 4);
    CHECK(iris->classes == 3);
    CHECK(iris->train.labels.size() == 150);
  }
}

} // namespace async_sgd::dataset_test
