// Reads tensor files in the forms that other programs write.
#include "storage/tensor_file.hpp"

#include "tests/storage/temporary_directory.hpp"

#include "doctest/doctest.h"

#include <zlib.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/stat.h>

namespace troupe::storage::tensor_formats_test {

namespace {

using namespace std::string_literals;

std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i)
    text += static_cast<char>(value >> (8 * i));
  return text;
}

template <class T>
std::string bytes_of(std::initializer_list<T> values, bool big_endian = false) {
  std::string bytes;
  for (const T value : values) {
    std::string one(sizeof value, '\0');
    std::memcpy(one.data(), &value, sizeof value);
    bytes += big_endian ? std::string(one.rbegin(), one.rend()) : one;
  }
  return bytes;
}

std::string npy(const std::string& descr, const std::string& shape, const std::string& values) {
  const std::string header =
    "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + shape + "), }\n";
  return "\x93NUMPY\x01\x00"s + little(header.size(), 2) + header + values;
}

std::string safetensors(const std::string& header, const std::string& values) {
  return little(header.size(), 8) + header + values;
}

std::string one_safetensor(const std::string& dtype, const std::string& values) {
  return safetensors("{\"a\":{\"dtype\":\"" + dtype + "\",\"shape\":[3],\"data_offsets\":[0,"
                       + std::to_string(values.size()) + "]}}",
                     values);
}

result<std::vector<tensor>> decoded(const std::string& extension, const std::string& bytes) {
  return decode_tensors("t" + extension, bytes);
}

std::vector<float> values_of(const std::string& extension, const std::string& bytes) {
  const auto tensors = decoded(extension, bytes);
  REQUIRE_MESSAGE(tensors, tensors.error().text);
  REQUIRE(tensors->size() == 1);
  return tensors->front().values;
}

std::string fault_of(const std::string& extension, const std::string& bytes) {
  const auto tensors = decoded(extension, bytes);
  REQUIRE_FALSE(tensors);
  return tensors.error().text;
}

/// Returns a zip archive with one deflated member, x.npy.
std::string deflated_npz(const std::string& content, std::uint32_t stated_bytes) {
  std::string packed(compressBound(content.size()) + 64, '\0');
  z_stream stream = {};
  deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(packed.size() - stream.avail_out);
  deflateEnd(&stream);
  const auto crc =
    crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
  const std::string common = little(20, 2) + little(0, 2) + little(8, 2) + little(0, 4)
                             + little(crc, 4) + little(packed.size(), 4) + little(stated_bytes, 4)
                             + little(5, 2) + little(0, 2);
  const std::string local = "PK\x03\x04" + common + "x.npy" + packed;
  const std::string central =
    "PK\x01\x02" + little(20, 2) + common + std::string(14, '\0') + "x.npy";
  return local + central + "PK\x05\x06" + little(0, 4) + little(1, 2) + little(1, 2)
         + little(central.size(), 4) + little(local.size(), 4) + little(0, 2);
}

/// Returns a zip archive with stored members: their names and contents.
std::string stored_zip(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string local, central;
  for (const auto& [name, content] : members) {
    const auto crc =
      crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
    const std::string common = little(20, 2) + little(0, 2) + little(0, 2) + little(0, 4)
                               + little(crc, 4) + little(content.size(), 4)
                               + little(content.size(), 4) + little(name.size(), 2) + little(0, 2);
    central += "PK\x01\x02" + little(20, 2) + common + std::string(10, '\0')
               + little(local.size(), 4) + name;
    local += "PK\x03\x04" + common + name + content;
  }
  return local + central + "PK\x05\x06" + little(0, 4) + little(members.size(), 2)
         + little(members.size(), 2) + little(central.size(), 4) + little(local.size(), 4)
         + little(0, 2);
}

/// Returns the peak memory of the process since the last reset_peak_memory(), in KiB.
long peak_memory_kb() {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss;
}

void reset_peak_memory() { std::ofstream{"/proc/self/clear_refs"} << "5"; }

} // namespace

TEST_CASE("other floats become f32") {
  const std::vector<float> wanted{1, -2.5f, 0};
  CHECK(values_of(".npy", npy("<f8", "3,", bytes_of({1.0, -2.5, 0.0}))) == wanted);
  CHECK(values_of(".npy", npy(">f8", "3,", bytes_of({1.0, -2.5, 0.0}, true))) == wanted);
  CHECK(values_of(".npy", npy(">f4", "3,", bytes_of({1.0f, -2.5f, 0.0f}, true))) == wanted);
  const std::initializer_list<std::uint16_t> halves{0x3c00, 0xc100, 0};
  CHECK(values_of(".npy", npy("<f2", "3,", bytes_of(halves))) == wanted);
  CHECK(values_of(".npy", npy(">f2", "3,", bytes_of(halves, true))) == wanted);
  CHECK(values_of(".safetensors", one_safetensor("F64", bytes_of({1.0, -2.5, 0.0}))) == wanted);
  CHECK(values_of(".safetensors", one_safetensor("F16", bytes_of(halves))) == wanted);
  const std::initializer_list<std::uint16_t> brain{0x3f80, 0xc020, 0};
  CHECK(values_of(".safetensors", one_safetensor("BF16", bytes_of(brain))) == wanted);
}

TEST_CASE("every f16 becomes its value") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto read = values_of(".npy", npy("<f2", "1,", little(bits, 2)));
    const int exponent = static_cast<int>(bits >> 10 & 0x1f), fraction = bits & 0x3ff;
    const double size = exponent == 0 ? fraction * std::pow(2.0, -24)
                                      : (1.0 + fraction / 1024.0) * std::pow(2.0, exponent - 15);
    const double value = (bits & 0x8000) != 0 ? -size : size;
    if (exponent < 31)
      REQUIRE(static_cast<double>(read[0]) == value);
    else
      REQUIRE((fraction == 0 ? std::isinf(read[0]) : std::isnan(read[0])));
  }
}

TEST_CASE("a value too large for f32 is refused by its place") {
  CHECK(fault_of(".npy", npy("<f8", "2, 2", bytes_of({1.0, 2.0, 1e39, 3.0})))
        == "a value is too large for f32: tensor 't' at [1, 0], in t.npy");
  CHECK(fault_of(".safetensors", one_safetensor("F64", bytes_of({1.0, 1.0, -1e300})))
        == "a value is too large for f32: tensor 'a' at [2], in t.safetensors");
  CHECK(std::isinf(values_of(".npy", npy("<f8", "1,", bytes_of({1.0 / 0.0})))[0]));
}

TEST_CASE("long integers of Python 2 are read") {
  CHECK(values_of(".npy", npy("<f4", "2L, 1L", bytes_of({1.0f, 2.0f}))).size() == 2);
  CHECK(values_of(".npy", npy("<f4", "2L,", bytes_of({1.0f, 2.0f}))).size() == 2);
  for (const char* shape : {"2l,", "2LL,", "L,", "2 L,"})
    CHECK(fault_of(".npy", npy("<f4", shape, bytes_of({1.0f, 2.0f}))).find("header")
          != std::string::npos);
}

TEST_CASE("deflated members of a .npz are read and checked") {
  std::string values;
  for (int i = 0; i < 5000; ++i)
    values += bytes_of({static_cast<float>(i % 7)});
  const std::string member = npy("<f4", "5000,", values);
  const auto size = static_cast<std::uint32_t>(member.size());
  const std::string whole = deflated_npz(member, size);
  REQUIRE(whole.size() < member.size() / 2);
  const auto back = decoded(".npz", whole);
  REQUIRE_MESSAGE(back, back.error().text);
  CHECK(back->front().name == "x");
  CHECK(back->front().values.size() == 5000);
  CHECK(back->front().values[13] == 6.0f);
  for (const std::uint32_t stated : {0u, size - 1, size + 1, 0xfffffffeu})
    CHECK(decoded(".npz", deflated_npz(member, stated)).error().code == errc::damaged);
  std::string bent = whole;
  bent[whole.size() / 2] = static_cast<char>(bent[whole.size() / 2] ^ 1);
  const auto damaged = decoded(".npz", bent);
  REQUIRE_FALSE(damaged);
  CHECK(damaged.error().code == errc::damaged);
}

TEST_CASE("a .npz that unpacks to more than its .npy header says takes little memory") {
  constexpr std::size_t zeros = 64 << 20;
  const std::string content = npy("<f4", "1,", std::string(zeros, '\0'));
  const std::string bomb = deflated_npz(content, static_cast<std::uint32_t>(content.size()));
  REQUIRE(bomb.size() < zeros / 900);
  reset_peak_memory();
  const long before = peak_memory_kb();
  CHECK(fault_of(".npz", bomb)
        == "the .npy header and the size of the zip member differ, in 'x.npy', in t.npz");
#ifndef TROUPE_SANITIZED
  CHECK(peak_memory_kb() - before < 8 * 1024);
#endif
}

TEST_CASE("values of a .npz that are not wanted take little memory, and their damage is kept") {
  constexpr std::size_t zeros = 64 << 20;
  const std::string content = npy("<f4", "16777216,", std::string(zeros, '\0'));
  const std::string packed = deflated_npz(content, static_cast<std::uint32_t>(content.size()));
  const auto unwanted = [](const std::string& name, std::span<const std::uint64_t> shape) {
    return name != "x" || shape.size() != 1 || shape[0] != 16777216;
  };
  reset_peak_memory();
  const long before = peak_memory_kb();
  const auto found = decode_tensors("t.npz", packed, unwanted);
  REQUIRE_MESSAGE(found, found.error().text);
  CHECK(*found == std::vector<tensor>{{"x", {16777216}, {}}});
#ifndef TROUPE_SANITIZED
  CHECK(peak_memory_kb() - before < 8 * 1024);
#endif
  std::string bent = packed;
  bent[packed.size() / 2] = static_cast<char>(bent[packed.size() / 2] ^ 1);
  const auto damaged = decode_tensors("t.npz", bent, unwanted);
  REQUIRE_MESSAGE(damaged, damaged.error().text);
  REQUIRE(damaged->front().unread);
  CHECK(damaged->front().unread->code == errc::damaged);
}

TEST_CASE("a tensor that cannot be read is an error only for a caller that wants it all") {
  const auto wants = [](const std::string& name, auto) { return name == "a"; };
  const auto i64 = one_safetensor("I64", bytes_of({1.0, 2.0, 3.0}));
  const std::string line =
    "dtype is 'I64', not F16, BF16, F32 or F64: tensor 'a', in t.safetensors";
  CHECK(fault_of(".safetensors", i64) == line);
  const auto found = decode_tensors("t.safetensors", i64, wants);
  REQUIRE_MESSAGE(found, found.error().text);
  CHECK(found->front().unread == failure{errc::invalid_argument, line});

  const std::string two = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                          R"("b":{"dtype":"F64","shape":[1],"data_offsets":[4,12]}})";
  const auto large = safetensors(two, bytes_of({1.0f}) + bytes_of({1e300}));
  const auto read = decode_tensors("t.safetensors", large, wants);
  REQUIRE_MESSAGE(read, read.error().text);
  CHECK(*read == std::vector<tensor>{{"a", {1}, {1.0f}}, {"b", {1}, {}}});
  CHECK_FALSE((*read)[1].unread); // It has not been converted.

  const std::string text = npy("<U5", "2,", std::string(40, '\0'));
  const auto member = deflated_npz(text, static_cast<std::uint32_t>(text.size()));
  const auto listed = decode_tensors("t.npz", member, wants);
  REQUIRE_MESSAGE(listed, listed.error().text);
  CHECK(listed->front().name == "x");
  CHECK(listed->front().unread->text.starts_with("dtype is '<U5'"));
  auto readme = member;
  for (auto at = readme.find("x.npy"); at != std::string::npos; at = readme.find("x.npy", at))
    readme.replace(at, 5, "x.txt");
  CHECK(decode_tensors("t.npz", readme, wants)->empty());
  CHECK(fault_of(".npz", readme) == "a member of a .npz is not a .npy, in 'x.txt', in t.npz");
}

TEST_CASE("of members with one name only those of a wanted tensor are an error") {
  const auto one = npy("<f4", "1,", bytes_of({1.0f})), two = npy("<f4", "1,", bytes_of({2.0f}));
  const auto wants = [](const std::string& name, auto) { return name == "a"; };
  const auto reread = [&](std::vector<std::pair<std::string, std::string>> members) {
    auto found = decode_tensors("t.npz", stored_zip(members), wants);
    REQUIRE_MESSAGE(found, found.error().text);
    return *found;
  };
  const std::vector<tensor> right{{"a", {1}, {1.0f}}};
  CHECK(reread({{"README", "x"}, {"a.npy", one}, {"README", "y"}, {"README", "z"}}) == right);
  const auto extra = reread({{"a.npy", one}, {"b.npy", one}, {"b.npy", two}});
  REQUIRE(extra.size() == 3);
  CHECK(extra[0] == right[0]);
  CHECK_FALSE(extra[0].unread);
  CHECK((extra[1].unread && extra[2].unread));
  const auto twice = reread({{"a.npy", one}, {"b.npy", one}, {"a.npy", two}});
  const failure why{errc::malformed, "two members of a .npz have one name, in 'a.npy', in t.npz"};
  REQUIRE(twice.size() == 3);
  CHECK(twice[0].unread == why);
  CHECK_FALSE(twice[1].unread);
  CHECK(twice[2].unread == why);
  CHECK(fault_of(".npz", stored_zip({{"a.npy", one}, {"a.npy", two}})) == why.text);
}

TEST_CASE("a file that is cut off is told by the bytes that it lacks") {
  const auto whole = one_safetensor("F32", bytes_of({1.0f, 2.0f, 3.0f}));
  CHECK(fault_of(".safetensors", whole.substr(0, whole.size() - 5))
        == "the file ends 5 bytes before the end of tensor 'a', in t.safetensors");
}

TEST_CASE("a file of another format is named by what it is, in each format") {
  const std::string python =
    ": load it in Python and save its arrays in a format that is read here";
  const std::pair<std::string, std::string> cases[] = {
    {"", "empty"},
    {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n",
     "a git-lfs pointer, not the file itself: fetch that with git lfs pull"},
    {"/annex/objects/SHA256E-s5--1\n",
     "a git-annex pointer, not the file itself: fetch that with git annex get"},
    {"\n<!DOCTYPE html>\n<html>", "an HTML page, not the file itself: download the file again"},
    {"{\"error\": \"Unauthorized\"}", "a JSON text"},
    {"\x1f\x8b\x08" + std::string(20, '\0'), "gzip: unpack it first"},
    {"\x80\x02\x8a\x0al\xfc\x9c"s, "a pickle of Python (.pkl, .pt)" + python},
    {stored_zip({{"archive/data.pkl", "\x80\x02."}, {"archive/data/0", "1234"}}),
     "a zip with a pickle of Python, as torch.save writes it" + python}};
  for (const std::string extension : {".npy", ".npz", ".safetensors"})
    for (const auto& [bytes, what] : cases) {
      CHECK(fault_of(extension, bytes) == "t" + extension + " is " + what);
      const auto wanted = decode_tensors("t" + extension, bytes, [](auto&, auto) { return true; });
      REQUIRE_FALSE(wanted);
      CHECK(wanted.error() == failure{errc::malformed, "t" + extension + " is " + what});
    }
  const auto array = npy("<f4", "1,", bytes_of({1.0f}));
  CHECK(fault_of(".safetensors", array) == "t.safetensors is a .npy of numpy");
  CHECK(fault_of(".safetensors", stored_zip({{"a.npy", array}}))
        == "t.safetensors is a .npz of numpy");
  CHECK(fault_of(".npz", one_safetensor("F32", bytes_of({1.0f, 2.0f, 3.0f})))
        == "t.npz is a .safetensors file");
}

TEST_CASE("a sound file that begins like another format is read") {
  for (const std::size_t length : {0x0280, 0x8b1f}) { // Bytes of a pickle and of gzip.
    std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
    header.resize(length, ' ');
    CHECK(values_of(".safetensors", safetensors(header, bytes_of({1.0f})))
          == std::vector<float>{1});
  }
}

TEST_CASE("a .safetensors header is JSON, and nothing but spaces follows") {
  const std::string one = bytes_of({1.0f});
  const std::string head = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  CHECK(decoded(".safetensors", safetensors(head + "   ", one)));
  for (const auto& tail : {"\0\0\0"s, "\0  "s, "\n"s, "\t"s, "x"s, "{}"s, " \0 }"s}) {
    CAPTURE(tail);
    CHECK(decoded(".safetensors", safetensors(head + tail, one)).error().code == errc::malformed);
  }
  for (const auto& twice :
       {R"("dtype":"F16","dtype":"F32","shape":[1],"data_offsets":[0,4])"s,
        R"("dtype":"F32","shape":[2],"shape":[1],"data_offsets":[0,4])"s,
        R"("dtype":"F32","shape":[1],"data_offsets":[0,8],"data_offsets":[0,4])"s,
        R"("dtype":"F32","shape":[1],"x":1,"x":1,"data_offsets":[0,4])"s})
    CHECK(fault_of(".safetensors", safetensors("{\"a\":{" + twice + "}}", one))
          == "the .safetensors header describes a tensor badly: 'a', in t.safetensors");
  CHECK(decoded(".safetensors",
                safetensors(R"({"__metadata__":{},"__metadata__":{},)" + head.substr(1), one))
          .error()
          .code
        == errc::malformed);
}

TEST_CASE("names of files in messages are bounded and have no control characters") {
  const std::string name = R"(\u001b[31mred\u0007)" + std::string(100'000, 'x');
  const std::string described = R"(":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})";
  const auto text =
    fault_of(".safetensors", safetensors("{\"" + name + described, bytes_of({1.0f, 2.0f})));
  CHECK(
    text.starts_with("dtype is 'I64', not F16, BF16, F32 or F64: tensor '\\x1b[31mred\\x07xxx"));
  CHECK(text.size() < 200);
}

TEST_CASE("a large header of a .safetensors takes a small multiple of its size") {
  constexpr std::size_t header_bytes = 20'000'000;
  std::string header = "{";
  for (int i = 0; header.size() < header_bytes; ++i)
    header += (i > 0 ? ",\"" : "\"") + std::to_string(i)
              + "\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}";
  header += "}";
  const std::string file = safetensors(header, "");
  reset_peak_memory();
  const long before = peak_memory_kb();
  const auto tensors = decoded(".safetensors", file);
  REQUIRE_MESSAGE(tensors, tensors.error().text);
  CHECK(tensors->size() > 300'000);
#ifndef TROUPE_SANITIZED
  CHECK(peak_memory_kb() - before < 12 * static_cast<long>(header_bytes / 1024));
#endif
}

TEST_CASE("shapes and places in words") {
  CHECK(shape_text(std::vector<std::uint64_t>{}) == "a scalar");
  CHECK(shape_text(std::vector<std::uint64_t>{2, 3}) == "2x3");
  CHECK(shape_text(std::vector<std::uint64_t>(1000, 1)).size() < 50);
  CHECK(position_text(std::vector<std::uint64_t>{}, 0) == "[]");
  CHECK(position_text(std::vector<std::uint64_t>{2, 3}, 5) == "[1, 2]");
}

TEST_CASE("a pipe is refused at once") {
  const temporary_directory folder;
  const auto pipe = folder.path() / "p.npz";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const auto read = read_tensors(pipe);
  REQUIRE_FALSE(read);
  CHECK(read.error()
        == failure{errc::io_failed, "cannot read " + pipe.string() + ": it is a pipe"});
}

} // namespace troupe::storage::tensor_formats_test
