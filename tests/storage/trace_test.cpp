#include "storage/trace.hpp"

#include "serialization/job.hpp"
#include "storage/detail/trace_bytes.hpp"
#include "storage/push_history.hpp"
#include "storage/trace_writer.hpp"
#include "tests/storage/sample_checkpoint.hpp"
#include "tests/storage/temporary_directory.hpp"

#include "doctest/doctest.h"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

namespace troupe::storage::trace_test {

namespace {

namespace fs = std::filesystem;

trace_entry record_at(std::uint64_t version, std::uint64_t batch) {
  trace_entry made;
  made.time_ns = 1000 + version;
  made.version = version;
  made.base_version = version - 1;
  made.batch = {batch};
  made.clock = 7;
  made.worker = {2};
  made.incarnation = {0xabcdef};
  return made;
}

trace_header header_of(std::uint32_t chain, std::uint32_t server) {
  return {fingerprint(sample_job()), {chain}, {1}, 0, {role::server, server, {77}}, {{0}, {3}}};
}

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void put(const fs::path& file, const std::string& content) {
  fs::remove(file);
  std::ofstream(file, std::ios::binary) << content;
}

fs::path written(const fs::path& folder, const trace_header& header,
                 const std::vector<trace_entry>& records) {
  trace_writer writer{folder, header};
  for (const auto& each : records)
    writer.add(each);
  REQUIRE(writer.flush());
  return folder / trace_name(header);
}

trace_file file_of(std::uint32_t server, std::vector<trace_entry> records) {
  return {"server " + std::to_string(server), header_of(0, server), std::move(records), 0, 0};
}

/// Returns the error of merging these files, or "".
std::string rejection_of(std::vector<trace_file> files) {
  const auto merged = merge_traces(sample_job(), std::move(files));
  return merged ? "" : merged.error().text;
}

} // namespace

TEST_CASE("what is recorded is read back") {
  const temporary_directory folder;
  const std::vector<trace_entry> records{record_at(1, 5), record_at(2, 9)};
  const auto path = written(folder.path(), header_of(1, 2), records);
  CHECK(path.filename() == "chain-1-generation-1-server-2-77.pushes");
  const auto read = read_trace_file(path);
  REQUIRE(read);
  CHECK(read->header == header_of(1, 2));
  CHECK(read->records == records);
  CHECK(read->torn_bytes == 0);
  CHECK(read->size_bytes == fs::file_size(path));
}

TEST_CASE("a record has 64 bytes, and these") {
  trace_entry one = record_at(0x0102, 3);
  one.slot = 1;
  one.slots = 4;
  const auto bytes = detail::bytes_of(one);
  REQUIRE(bytes.size() == trace_bytes);
  std::string hex;
  for (const unsigned char c : bytes) {
    char two[3];
    std::snprintf(two, sizeof(two), "%02x", c);
    hex += two;
  }
  CHECK(hex.substr(0, 120)
        == "ea04000000000000"
           "0201000000000000"
           "0101000000000000"
           "0300000000000000"
           "0700000000000000"
           "efcdab0000000000"
           "02000000"
           "0100"
           "0400"
           "01000000");
  CHECK(detail::trace_entry_from(bytes) == one);
}

TEST_CASE("a server that applied nothing leaves no file") {
  const temporary_directory folder;
  { trace_writer writer{folder.path(), header_of(0, 0)}; }
  CHECK(listing(folder.path()).empty());
}

TEST_CASE("a file that ends within a record ends before it") {
  const temporary_directory folder;
  const auto path =
    written(folder.path(), header_of(0, 0), {record_at(1, 5), record_at(2, 9), record_at(3, 1)});
  const auto whole = content_of(path);
  for (std::size_t lost = 1; lost <= 2 * trace_bytes; ++lost) {
    CAPTURE(lost);
    put(path, whole.substr(0, whole.size() - lost));
    const auto read = read_trace_file(path);
    REQUIRE(read);
    CHECK(read->records.size() == 3 - (lost + trace_bytes - 1) / trace_bytes);
    CHECK(read->torn_bytes == (trace_bytes - lost % trace_bytes) % trace_bytes);
  }
}

TEST_CASE("a damaged file is refused") {
  const temporary_directory folder;
  const auto path =
    written(folder.path(), header_of(0, 0), {record_at(1, 5), record_at(2, 9), record_at(3, 1)});
  const auto whole = content_of(path);
  for (std::size_t at = 0; at < whole.size() - trace_bytes; ++at) {
    CAPTURE(at);
    auto changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x20);
    put(path, changed);
    CHECK(!read_trace_file(path));
  }
  auto changed = whole;
  changed[whole.size() - trace_bytes - 1] ^= 1;
  put(path, changed);
  const auto read = read_trace_file(path);
  REQUIRE(!read);
  CHECK(read.error().code == errc::damaged);
  CHECK(read.error().text == "chain-0-generation-1-server-0-77.pushes: record 1 is damaged");
}

TEST_CASE("other files are no records") {
  const temporary_directory folder;
  put(folder.path() / "a.pushes", "something else that is long enough for a header");
  CHECK(read_trace_file(folder.path() / "a.pushes").error().text
        == "a.pushes: no record of pushes");
  auto newer = detail::bytes_of(header_of(0, 0));
  newer[8] = 2;
  put(folder.path() / "a.pushes", newer);
  CHECK(read_trace_file(folder.path() / "a.pushes").error().text
        == "a.pushes: format 2 of records is unknown, only 1 is known");
}

TEST_CASE("a disk that fails is told once, and what is there stays good") {
  const temporary_directory folder;
  trace_writer writer{folder.path() / "not there", header_of(0, 0)};
  writer.add(record_at(1, 5));
  const auto failed = writer.flush();
  REQUIRE(!failed);
  CHECK(failed.error().code == errc::io_failed);
  writer.add(record_at(2, 5));
  CHECK(writer.flush());
}

TEST_CASE("replicas fill each other's gaps") {
  const auto late = [](trace_entry x) {
    x.time_ns += 50;
    return x;
  };
  const auto merged =
    merge_traces(sample_job(), {file_of(0, {record_at(1, 5), record_at(2, 6)}),
                                file_of(1, {late(record_at(2, 6)), late(record_at(3, 7))})});
  REQUIRE(merged);
  REQUIRE(merged->chains.size() == 1);
  CHECK(merged->chains[0].applied
        == std::vector{record_at(1, 5), record_at(2, 6), late(record_at(3, 7))});
  CHECK(merged->chains[0].partitions == header_of(0, 0).partitions);
}

TEST_CASE("replicas that disagree are refused") {
  CHECK(rejection_of({file_of(0, {record_at(1, 5)}), file_of(1, {record_at(1, 6)})})
        == "servers disagree about step 1 of shard 0");
  auto other = file_of(1, {record_at(1, 5)});
  other.header.partitions = {{1}};
  CHECK(rejection_of({file_of(0, {record_at(1, 5)}), other})
        == "servers disagree about the beginning of shard 0");
  other = file_of(1, {record_at(1, 5)});
  other.header.job += 1;
  CHECK(rejection_of({file_of(0, {record_at(1, 5)}), other}) == "server 1 is of another job");
}

TEST_CASE("a step that nobody recorded is named") {
  CHECK(rejection_of({file_of(0, {record_at(1, 5), record_at(4, 6)})})
        == "no server's record has step 2 of shard 0, but step 4");
  CHECK(rejection_of({file_of(0, {record_at(2, 5)})})
        == "no server's record has step 1 of shard 0, but step 2");
  auto later = file_of(0, {record_at(9, 5)});
  later.header.base_checkpoint = 3;
  CHECK(rejection_of({later}) == "");
  auto job = sample_job(); // Its first values are checkpoint 1.
  job.tables.at(0).values_checksum = 5;
  later.header.job = fingerprint(job);
  later.header.base_checkpoint = 1;
  CHECK(merge_traces(job, {later}).error().text
        == "no server's record has step 1 of shard 0, but step 9");
}

TEST_CASE("a clock has all of its slots, or ends the record") {
  auto slot = [](std::uint64_t version, std::uint16_t number) {
    auto made = record_at(version, number);
    made.slot = number;
    made.slots = 2;
    return made;
  };
  const auto merged =
    merge_traces(sample_job(), {file_of(0, {slot(1, 0), slot(1, 1), slot(2, 0)})});
  REQUIRE(merged);
  CHECK(merged->chains[0].applied == std::vector{slot(1, 0), slot(1, 1)});
  CHECK(rejection_of({file_of(0, {slot(1, 0), slot(2, 0), slot(2, 1)})})
        == "no server's record has step 1 of shard 0, but step 2");
}

TEST_CASE("a directory holds one record") {
  const temporary_directory folder;
  const auto directory = folder.path() / "a" / "record";
  REQUIRE(begin_trace(directory, sample_job()));
  CHECK(begin_trace(directory, sample_job()).error().code == errc::in_use);

  written(directory, header_of(0, 0), {record_at(1, 5)});
  const auto read = read_push_history(directory);
  REQUIRE(read);
  CHECK(read->job == sample_job());
  CHECK(read->files == 1);
  CHECK(read->chains[0].applied == std::vector{record_at(1, 5)});
}

TEST_CASE("a file whose server ended before it wrote anything says nothing") {
  const temporary_directory folder;
  REQUIRE(begin_trace(folder.path(), sample_job()));
  put(folder.path() / trace_name(header_of(0, 1)), "");
  CHECK(read_push_history(folder.path()).error().text
        == folder.path().string() + " has no records of pushes");
  written(folder.path(), header_of(0, 0), {record_at(1, 5)});
  const auto read = read_push_history(folder.path());
  REQUIRE(read);
  CHECK(read->files == 1);
  CHECK(read->chains[0].applied == std::vector{record_at(1, 5)});
}

TEST_CASE("what is cut off begins with a step, and nothing behind it stays") {
  const auto step = [](std::uint64_t version, std::uint16_t slot, double seconds) {
    auto made = record_at(version, 2 * version + slot);
    made.slot = slot;
    made.slots = 2;
    made.time_ns = static_cast<std::uint64_t>(1e9 * (100 + seconds));
    return made;
  };
  // Servers that fill each other's gaps have different clocks.
  const std::vector all{step(1, 0, 0), step(1, 1, 0), step(2, 0, 1),
                        step(2, 1, 3), step(3, 0, 1), step(3, 1, 1)};
  push_history recorded;
  recorded.chains.resize(1);
  recorded.chains[0].applied = all;
  auto cut = recorded;
  cut_after(cut, 3);
  CHECK(cut.chains[0].applied == all);
  cut = recorded;
  cut_after(cut, 2);
  CHECK(cut.chains[0].applied == std::vector{all[0], all[1]});
  CHECK(cut.chains[0].read == std::vector{all[2], all[3], all[4], all[5]});
}

TEST_CASE("a directory without a record, or with a damaged job, is refused") {
  const temporary_directory folder;
  CHECK(read_push_history(folder.path()).error().text.starts_with("no record of a run: "));
  REQUIRE(begin_trace(folder.path(), sample_job()));
  CHECK(read_push_history(folder.path()).error().text
        == folder.path().string() + " has no records of pushes");
  auto job = content_of(folder.path() / "job");
  job[job.size() / 2] ^= 1;
  put(folder.path() / "job", job);
  CHECK(read_push_history(folder.path()).error().code == errc::damaged);
}

} // namespace troupe::storage::trace_test
