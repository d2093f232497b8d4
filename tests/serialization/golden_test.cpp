// The bytes of every message and of a job's file are those of the released formats. To add files
// for new ones, run the test program with --no-skip --test-case="writes the golden files*".
#include "doctest/doctest.h"
#include "tests/serialization/frame_bytes.hpp"
#include "tests/serialization/golden_messages.hpp"
#include "tests/serialization/random_messages.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

namespace troupe::test {

namespace {

std::filesystem::path golden_file(const std::string& name) {
  return std::filesystem::path{TROUPE_SOURCE_DIR} / "tests/serialization/golden"
         / (name + "_v1.bin");
}

std::vector<std::byte> read_golden(const std::string& name) {
  std::ifstream file{golden_file(name), std::ios::binary};
  REQUIRE_MESSAGE(file, golden_file(name).string());
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  const auto bytes = std::as_bytes(std::span{text});
  return {bytes.begin(), bytes.end()};
}

void write_missing(const std::string& name, const std::vector<std::byte>& bytes) {
  if (std::filesystem::exists(golden_file(name)))
    return;
  std::ofstream file{golden_file(name), std::ios::binary};
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  CHECK(file.flush());
}

} // namespace

TEST_CASE("messages are written as the golden bytes") {
  for (const auto& [name, message] : golden_messages()) {
    CAPTURE(name);
    CHECK(flatten(wire::encode(message)) == read_golden(name));
  }
}

TEST_CASE("golden bytes are read as their messages") {
  for (const auto& [name, message] : golden_messages()) {
    const auto read = decode_frame(read_golden(name));
    CAPTURE(name);
    REQUIRE_MESSAGE(read, read.error().text);
    CHECK(same(*read, message));
  }
}

TEST_CASE("a job's file has its golden bytes") {
  CHECK(wire::encode_job(golden_job()) == read_golden("job"));
  const auto read = wire::decode_job(read_golden("job"));
  REQUIRE(read);
  CHECK(*read == golden_job());
}

TEST_CASE("writes the golden files that are missing" * doctest::skip()) {
  for (const auto& [name, message] : golden_messages())
    write_missing(name, flatten(wire::encode(message)));
  write_missing("job", wire::encode_job(golden_job()));
}

} // namespace troupe::test
