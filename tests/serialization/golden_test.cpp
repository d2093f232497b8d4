// Checks that the bytes of every message and of a job's file are those of the released formats. To
// add files for new messages, run the test program with --no-skip --test-case="writes the golden
// files*".
#include "doctest/doctest.h"
#include "tests/serialization/frame_bytes.hpp"
#include "tests/serialization/golden_messages.hpp"
#include "tests/serialization/random_messages.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <variant>

namespace troupe::test::golden_test {

namespace {

std::filesystem::path golden_file(const std::string& name, int version) {
  return std::filesystem::path{TROUPE_SOURCE_DIR} / "tests/serialization/golden"
         / (name + "_v" + std::to_string(version) + ".bin");
}

/// Returns the newest version of a golden file. A field appended to a schema changes the bytes of
/// old content; the files with the old bytes stay.
int newest_golden(const std::string& name) {
  int version = 1;
  while (std::filesystem::exists(golden_file(name, version + 1)))
    ++version;
  return version;
}

std::vector<std::byte> read_golden(const std::string& name, int version) {
  std::ifstream file{golden_file(name, version), std::ios::binary};
  REQUIRE_MESSAGE(file, golden_file(name, version).string());
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  const auto bytes = std::as_bytes(std::span{text});
  return {bytes.begin(), bytes.end()};
}

std::uint32_t protocol_of(const std::vector<std::byte>& frame) {
  std::uint32_t version = 0; // It follows the root pointer: see envelope.capnp.
  std::memcpy(&version, frame.data() + wire::prefix_bytes + 8, sizeof version);
  return version;
}

std::vector<std::byte> newest_bytes(const std::string& name) {
  return read_golden(name, newest_golden(name));
}

void write_missing(const std::string& name, const std::vector<std::byte>& bytes) {
  int version = newest_golden(name);
  if (std::filesystem::exists(golden_file(name, version))) {
    if (newest_bytes(name) == bytes)
      return;
    ++version;
  }
  std::ofstream file{golden_file(name, version), std::ios::binary};
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  CHECK(file.flush());
}

std::vector<std::pair<std::string, job_spec>> golden_jobs() {
  return {{"job", golden_job()},
          {"job_replicated", golden_replicated_job()},
          {"job_durable", golden_durable_job()},
          {"job_ftrl", golden_ftrl_job()},
          {"job_function", golden_function_job()},
          {"job_frozen", golden_frozen_job()},
          {"job_own", golden_own_job()},
          {"job_stale", golden_stale_job()},
          {"job_actors", golden_actors_job()}};
}

/// The kinds of messages that a list has, by the numbers of their alternatives.
struct message_census {
  std::set<std::size_t> statuses, desired_states, news, of_lanes;

  void count(const message& what) {
    if (const auto* const status = std::get_if<status_message>(&what))
      statuses.insert(status->body.index());
    else if (const auto* const desired = std::get_if<desired_state>(&what))
      desired_states.insert(desired->body.index());
    else if (const auto* const between = std::get_if<replica_message>(&what))
      news.insert(between->what.index());
    else if (const auto* const of_lane = std::get_if<channel_message>(&what))
      of_lanes.insert(of_lane->index());
  }
};

} // namespace

TEST_CASE("each kind of message is among the golden ones and the random ones") {
  message_census golden, random;
  for (const auto& [name, message] : golden_messages())
    golden.count(message);
  random_source source{1};
  for (std::size_t kind = 0; kind < message_kinds; ++kind)
    random.count(random_message(source, kind));
  for (const auto* const each : {&golden, &random}) {
    CHECK(each->statuses.size() == std::variant_size_v<decltype(status_message::body)>);
    CHECK(each->desired_states.size() == std::variant_size_v<decltype(desired_state::body)>);
    CHECK(each->news.size() == replica_message_kinds);
    CHECK(each->of_lanes.size() == channel_message_kinds);
  }
}

TEST_CASE("messages are written as the golden bytes") {
  for (const auto& [name, message] : golden_messages()) {
    CAPTURE(name);
    CHECK(flatten(wire::encode(message)) == newest_bytes(name));
  }
}

TEST_CASE("golden bytes are read as their messages, those of older protocols refused") {
  for (const auto& [name, message] : golden_messages()) {
    for (int version = newest_golden(name); version > 0; --version) {
      const auto bytes = read_golden(name, version);
      const auto read = decode_frame(bytes);
      CAPTURE(name);
      CAPTURE(version);
      if (protocol_of(bytes) != wire::protocol_version) {
        CHECK(read.error().code == errc::version_mismatch);
        continue;
      }
      REQUIRE_MESSAGE(read, read.error().text);
      CHECK(same(*read, message));
    }
  }
}

TEST_CASE("a job's file has its golden bytes") {
  for (const auto& [name, job] : golden_jobs()) {
    CAPTURE(name);
    CHECK(wire::encode_job(job) == newest_bytes(name));
    for (int version = newest_golden(name); version > 0; --version) {
      const auto read = wire::decode_job(read_golden(name, version));
      REQUIRE(read);
      CHECK(*read == job);
    }
  }
}

TEST_CASE("writes the golden files that are missing or old" * doctest::skip()) {
  for (const auto& [name, message] : golden_messages())
    write_missing(name, flatten(wire::encode(message)));
  for (const auto& [name, job] : golden_jobs())
    write_missing(name, wire::encode_job(job));
}

} // namespace troupe::test::golden_test
