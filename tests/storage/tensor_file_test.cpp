#include "storage/tensor_file.hpp"

#include "tests/storage/temporary_directory.hpp"

#include "doctest/doctest.h"

#include <bit>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <string_view>

namespace troupe::storage::tensor_file_test {

namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void put(const fs::path& file, std::string_view content) {
  fs::remove(file); // Some file systems flush a file that is truncated and written again.
  std::ofstream(file, std::ios::binary) << content;
}

/// Returns the file of `tensors` with this extension.
std::string written(const std::string& extension, const std::vector<tensor>& tensors) {
  const temporary_directory folder;
  REQUIRE(write_tensors(folder.path() / ("t" + extension), tensors));
  return content_of(folder.path() / ("t" + extension));
}

result<std::vector<tensor>> read_back(const std::string& extension, std::string_view content) {
  const temporary_directory folder;
  put(folder.path() / ("t" + extension), content);
  return read_tensors(folder.path() / ("t" + extension));
}

errc code_of(const result<std::vector<tensor>>& what) {
  REQUIRE_FALSE(what);
  return what.error().code;
}

std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i)
    text += i < 8 ? static_cast<char>(value >> (8 * i)) : '\0';
  return text;
}

/// Returns the CRC-32, computed bit by bit from its polynomial.
std::uint32_t crc32_of(std::string_view bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
  }
  return ~crc;
}

std::string npy(const std::string& dictionary, const std::string& values) {
  return "\x93NUMPY\x01\x00"s + little(dictionary.size(), 2) + dictionary + values;
}

std::string safetensors(const std::string& header, const std::string& values) {
  return little(header.size(), 8) + header + values;
}

const std::vector<tensor> several{
  {"layer/0/weight", {2, 3}, {1, -2, 3.5f, 0, -0.0f, 1e-45f}},
  {"scalar", {}, {42}},
  {"nothing", {4, 0, 2}, {}},
  {"\xc3\xa4 \"quoted\" \\ back\nslash", {1, 1, 1, 2}, {1e38f, -1e-38f}},
  {"z", {3}, {0.1f, 0.2f, 0.3f}},
};

} // namespace

TEST_CASE("tensors come back from .npz and .safetensors as they were written") {
  for (const std::string extension : {".npz", ".safetensors"})
    for (const auto& tensors : {several, std::vector<tensor>{}}) {
      const auto back = read_back(extension, written(extension, tensors));
      REQUIRE_MESSAGE(back, back.error().text);
      CHECK(*back == tensors);
    }
}

TEST_CASE("a tensor that is not wanted has no values") {
  for (const std::string extension : {".npz", ".safetensors"}) {
    const temporary_directory folder;
    const auto file = folder.path() / ("t" + extension);
    REQUIRE(write_tensors(file, several));
    const auto wanted = several[1].name;
    const auto back = read_tensors(file, [&](const auto& name, auto) { return name == wanted; });
    REQUIRE_MESSAGE(back, back.error().text);
    REQUIRE(back->size() == several.size());
    for (std::size_t i = 0; i < several.size(); ++i)
      CHECK((*back)[i]
            == tensor{several[i].name, several[i].shape,
                      i == 1 ? several[i].values : std::vector<float>{}});
  }
}

TEST_CASE("a .npy's tensor has the file's stem as its name") {
  for (const tensor& one : several) {
    const auto back = read_back(".npy", written(".npy", {one}));
    REQUIRE(back);
    REQUIRE(back->size() == 1);
    CHECK(back->front() == tensor{"t", one.shape, one.values});
  }
}

TEST_CASE("NaN payloads and infinities keep their bits") {
  const float infinity = std::numeric_limits<float>::infinity();
  const tensor odd{"t", {3}, {std::bit_cast<float>(0xffc12345u), infinity, -infinity}};
  for (const std::string extension : {".npy", ".npz", ".safetensors"}) {
    const auto back = read_back(extension, written(extension, {odd}));
    REQUIRE(back);
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(std::bit_cast<std::uint32_t>(back->front().values[i])
            == std::bit_cast<std::uint32_t>(odd.values[i]));
  }
}

TEST_CASE("equal tensors give equal bytes") {
  for (const std::string extension : {".npz", ".safetensors"})
    CHECK(written(extension, several) == written(extension, several));
}

TEST_CASE("a .npy has the bytes of its format") {
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  const std::string golden = "\x93NUMPY\x01\x00\x76\x00"s + header + std::string(58, ' ') + "\n"
                             + "\x00\x00\x80\x3f\x00\x00\x00\xc0\x00\x00\x60\x40"s
                             + "\x00\x00\x00\x00\x00\x00\x00\x80\x01\x00\x00\x00"s;
  CHECK(golden.size() == 128 + 24);
  CHECK(written(".npy", {several[0]}) == golden);
  CHECK(written(".npy", {{"t", {1}, {0}}}).find("'shape': (1,), }") != std::string::npos);
  CHECK(written(".npy", {{"t", {}, {0}}}).find("'shape': (), }") != std::string::npos);
}

TEST_CASE("a .npy with very many dimensions has version 2.0") {
  const tensor deep{"t", std::vector<std::uint64_t>(30'000, 1), {7}};
  const std::string bytes = written(".npy", {deep});
  CHECK(bytes.substr(6, 2) == "\x02\x00"s);
  CHECK((bytes.size() - 4) % 64 == 0);
  const auto back = read_back(".npy", bytes);
  REQUIRE(back);
  CHECK(back->front() == deep);
}

TEST_CASE("a .npz has the bytes of its format") {
  const tensor one{"a/b", {1}, {1}};
  const std::string member = written(".npy", {one});
  const std::string name = "a/b.npy";
  const std::string common = little(10, 2) + little(0, 2) + little(0, 2) + little(0, 2)
                             + little(0x21, 2) + little(crc32_of(member), 4)
                             + little(member.size(), 4) + little(member.size(), 4)
                             + little(name.size(), 2) + little(0, 2);
  const std::string local = "PK\x03\x04" + common + name + member;
  // libzip writes version 6.3 of Unix, and a regular file that all users may read and write.
  const std::string central = "PK\x01\x02" + little(0x033f, 2) + common + little(0, 2)
                              + little(0, 2) + little(0, 2) + little(0100666u << 16, 4)
                              + little(0, 4) + name;
  const std::string end = "PK\x05\x06" + little(0, 4) + little(1, 2) + little(1, 2)
                          + little(central.size(), 4) + little(local.size(), 4) + little(0, 2);
  CHECK(written(".npz", {one}) == local + central + end);
  CHECK(written(".npz", {}) == "PK\x05\x06" + std::string(18, '\0'));
}

TEST_CASE("a .safetensors has the bytes of its format") {
  const std::string header = "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                             "\"b\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[8,12]}}";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  const std::string values = "\x00\x00\x80\x3f\x00\x00\x00\xc0\x00\x00\x60\x40"s;
  CHECK(written(".safetensors", {{"a", {2}, {1, -2}}, {"b", {}, {3.5f}}})
        == safetensors(padded, values));
  CHECK(written(".safetensors", {}) == safetensors("{}      ", ""));
}

TEST_CASE("what other programs write is read") {
  const std::string one = little(0x3f800000, 4);
  for (const auto& dictionary :
       {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n"s,
        "{\"shape\":(1),\"fortran_order\":False,\"descr\":\"<f4\"}"s,
        "  { 'shape' : ( 1 , ) ,'descr':'<f4', 'fortran_order': False }   "s}) {
    const auto back = read_back(".npy", npy(dictionary, one));
    REQUIRE(back);
    CHECK(back->front() == tensor{"t", {1}, {1}});
  }
  // The file has metadata, names in another order than the values, escapes and unknown fields.
  const auto back =
    read_back(".safetensors",
              safetensors(R"( {"b\u00e4":{"data_offsets":[4,8],"shape":[1,1],"dtype":"F32"},)"
                          R"("__metadata__":{"format":"pt"},)"
                          R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"note":[{}]}} )",
                          one + one));
  REQUIRE(back);
  CHECK(*back == std::vector<tensor>{{"a", {1}, {1}}, {"b\xc3\xa4", {1, 1}, {1}}});
}

TEST_CASE("a zip with streamed members and a comment is read, as numpy and others write it") {
  const std::string member = written(".npy", {{"x", {1}, {1}}});
  // Local sizes are in a zip64 field or behind the content; the directory has them too.
  const std::string local = "PK\x03\x04" + little(45, 2) + little(0, 12) + little(0xffffffff, 4)
                            + little(0xffffffff, 4) + little(5, 2) + little(20, 2) + "x.npy"
                            + little(1, 2) + little(16, 2) + little(member.size(), 8)
                            + little(member.size(), 8) + member;
  const std::string central = "PK\x01\x02" + little(45, 2) + little(45, 2) + little(0, 8)
                              + little(crc32_of(member), 4) + little(member.size(), 4)
                              + little(member.size(), 4) + little(5, 2) + little(0, 2)
                              + little(3, 2) + little(0, 12) + "x.npy" + "abc";
  const auto end = [&](std::uint64_t count) {
    return "PK\x05\x06" + little(0, 4) + little(count, 2) + little(count, 2)
           + little(central.size() * count, 4) + little(local.size(), 4) + little(5, 2)
           + "PK\x05\x06!";
  };
  const auto back = read_back(".npz", local + central + end(1));
  REQUIRE(back);
  CHECK(*back == std::vector<tensor>{{"x", {1}, {1}}});
  CHECK(code_of(read_back(".npz", local + central + central + end(2))) == errc::malformed);
}

TEST_CASE("a zip64 archive is read, unless it claims more members than fit in it") {
  const std::string member = written(".npy", {{"x", {1}, {1}}});
  const std::string sum = little(crc32_of(member), 4), all_ones = little(0xffffffff, 4);
  const std::string sizes = little(member.size(), 8) + little(member.size(), 8);
  const std::string head = little(45, 2) + little(0, 8) + sum + all_ones + all_ones + little(5, 2);
  const std::string local =
    "PK\x03\x04" + head + little(20, 2) + "x.npy" + little(1, 2) + little(16, 2) + sizes + member;
  const std::string central = "PK\x01\x02" + little(45, 2) + head + little(28, 2) + little(0, 10)
                              + all_ones + "x.npy" + little(1, 2) + little(24, 2) + sizes
                              + little(0, 8);
  const auto archive = [&](std::uint64_t count) {
    return local + central + "PK\x06\x06" + little(44, 8) + little(45, 2) + little(45, 2)
           + little(0, 8) + little(count, 8) + little(count, 8) + little(central.size(), 8)
           + little(local.size(), 8) + "PK\x06\x07" + little(0, 4)
           + little(local.size() + central.size(), 8) + little(1, 4) + "PK\x05\x06" + little(0, 4)
           + little(0xffffffff, 4) + all_ones + all_ones + little(0, 2);
  };
  const auto back = read_back(".npz", archive(1));
  REQUIRE_MESSAGE(back, back.error().text);
  CHECK(*back == std::vector<tensor>{{"x", {1}, {1}}});
  for (const std::uint64_t count : {0ull, 2ull, 1ull << 28, 1ull << 40, ~0ull})
    CHECK(code_of(read_back(".npz", archive(count))) == errc::malformed);
}

TEST_CASE("what is sound but not supported is an invalid argument") {
  const std::string one = little(0x3f800000, 4);
  for (const auto& dictionary :
       {"{'descr': '<i4', 'fortran_order': False, 'shape': (1,), }"s,
        "{'descr': '|S4', 'fortran_order': False, 'shape': (1,), }"s,
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }"s,
        "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }"s})
    CHECK(code_of(read_back(".npy", npy(dictionary, one))) == errc::invalid_argument);
  CHECK(code_of(read_back(".npy", "\x93NUMPY\x04\x00"s + little(0, 4) + one))
        == errc::invalid_argument);
  CHECK(code_of(
          read_back(".safetensors",
                    safetensors(R"({"a":{"dtype":"I16","shape":[2],"data_offsets":[0,4]}})", one)))
        == errc::invalid_argument);
  std::string compressed = written(".npz", {several[1]});
  compressed[compressed.rfind("PK\x01\x02") + 10] = 12; // Method 12 is bzip2.
  CHECK(code_of(read_back(".npz", compressed)) == errc::invalid_argument);
  CHECK(code_of(read_tensors("x.txt")) == errc::invalid_argument);
  CHECK(code_of(read_tensors("npz")) == errc::invalid_argument);
}

TEST_CASE("write_tensors refuses what a file cannot hold, and leaves no file") {
  const temporary_directory folder;
  const tensor one{"a", {1}, {1}};
  const auto refused = [&](const std::string& name, const std::vector<tensor>& tensors) {
    const auto done = write_tensors(folder.path() / name, tensors);
    REQUIRE_FALSE(done);
    CHECK(done.error().code == errc::invalid_argument);
    CHECK(fs::is_empty(folder.path()));
  };
  refused("t.txt", {one});
  refused("t.npy", {});
  refused("t.npy", {one, {"b", {1}, {1}}});
  refused("t.safetensors", {{"__metadata__", {1}, {1}}});
  for (const std::string name : {"t.npz", "t.safetensors"}) {
    refused(name, {one, one});
    refused(name, {{"a", {2}, {1}}});
    refused(name, {{"a", {std::uint64_t{1} << 63, 2}, {}}});
    for (const auto& bad : {"\xff"s, "\xc0\x80"s, "\xed\xa0\x80"s, "\xf4\x90\x80\x80"s,
                            "\xe0\x9f\xbf"s, "a\xc3"s, "a\0b"s})
      refused(name, {{bad, {1}, {1}}});
  }
  refused("t.npz", {{std::string(70'000, 'a'), {1}, {1}}});
}

TEST_CASE("files that cannot be read or written are io_failed") {
  const temporary_directory folder;
  CHECK(code_of(read_tensors(folder.path() / "absent.npz")) == errc::io_failed);
  const auto done = write_tensors(folder.path() / "absent/t.npz", several);
  REQUIRE_FALSE(done);
  CHECK(done.error().code == errc::io_failed);
}

TEST_CASE("write_tensors replaces a file and leaves nothing else behind") {
  const temporary_directory folder;
  REQUIRE(write_tensors(folder.path() / "t.npz", several));
  REQUIRE(write_tensors(folder.path() / "t.npz", {several[1]}));
  CHECK(*read_tensors(folder.path() / "t.npz") == std::vector<tensor>{several[1]});
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("write_tensors takes a name without a directory") {
  const temporary_directory folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  const auto done = write_tensors("t.safetensors", several);
  fs::current_path(before);
  CHECK(done);
  CHECK(fs::exists(folder.path() / "t.safetensors"));
}

TEST_CASE("malformed .npy and .safetensors headers are refused by name") {
  const std::string one = little(0x3f800000, 4);
  for (const auto& dictionary :
       {""s, "{"s, "{}"s, "{'descr': '<f4', 'fortran_order': False, }"s,
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,), }"s,
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': False}"s,
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"s,
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 1), }"s,
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x"s,
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"s,
        "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551616,), }"s,
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4,), }"s,
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }"s}) {
    CAPTURE(dictionary);
    CHECK(code_of(read_back(".npy", npy(dictionary, one))) == errc::malformed);
  }
  for (const auto& header : {""s, "{"s, "[]"s, "7"s, R"({"a":7})"s, R"({"a":{}})"s,
                             R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})"s,
                             R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":7})"s,
                             R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})"s,
                             R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})"s,
                             R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})"s,
                             R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})"s,
                             R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})"s,
                             R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})"s,
                             R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})"s,
                             R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"s
                               + R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                             std::string(100'000, '['), "{\"a\":" + std::string(100'000, '[')}) {
    CAPTURE(header.substr(0, 100));
    CHECK(code_of(read_back(".safetensors", safetensors(header, one))) == errc::malformed);
  }
  CHECK(code_of(read_back(".safetensors", little(~0ull, 8) + "{}")) == errc::malformed);
}

TEST_CASE("every truncation is refused") {
  for (const std::string extension : {".npy", ".npz", ".safetensors"}) {
    const std::string whole =
      written(extension, extension == ".npy" ? std::vector{several[0]} : several);
    const temporary_directory folder;
    const fs::path file = folder.path() / ("t" + extension);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      put(file, std::string_view{whole}.substr(0, size));
      CHECK_FALSE(read_tensors(file));
    }
  }
}

TEST_CASE("flipped bits give an error or tensors, and never a damaged .npz member") {
  std::mt19937 random{42};
  for (const std::string extension : {".npy", ".npz", ".safetensors"}) {
    const std::string whole =
      written(extension, extension == ".npy" ? std::vector{several[0]} : several);
    const temporary_directory folder;
    const fs::path file = folder.path() / ("t" + extension);
    const auto try_out = [&](const std::string& bytes) {
      put(file, bytes);
      const auto back = read_tensors(file);
      for (const tensor& one : back ? *back : std::vector<tensor>{}) {
        std::uint64_t count = 1;
        for (const std::uint64_t extent : one.shape)
          count *= extent;
        CHECK(count == one.values.size());
      }
      return back;
    };
    for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
      std::string bytes = whole;
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
      const auto back = try_out(bytes);
      if (back && extension == ".npz")
        for (std::size_t i = 0; i < back->size(); ++i) // Only flags or names may differ.
          CHECK((*back)[i].values == several[i].values);
    }
    for (int round = 0; round < 2000; ++round) {
      std::string bytes = whole;
      for (int flips = 1 + static_cast<int>(random() % 8); flips > 0; --flips)
        bytes[random() % bytes.size()] = static_cast<char>(random());
      (void)try_out(bytes);
    }
  }
}

TEST_CASE("a damaged value of a .npz is damaged") {
  std::string bytes = written(".npz", {{"a", {1}, {1}}});
  bytes[bytes.find("PK\x01\x02") - 1] ^= 1;
  CHECK(code_of(read_back(".npz", bytes)) == errc::damaged);
}

} // namespace troupe::storage::tensor_file_test
