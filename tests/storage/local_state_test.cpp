#include "storage/local_state.hpp"

#include "doctest/doctest.h"
#include "base/bytes.hpp"
#include "base/crc32c.hpp"
#include "storage/detail/paths.hpp"
#include "tests/storage/sample_checkpoint.hpp"
#include "tests/storage/temporary_directory.hpp"

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace troupe::storage::test::local_state_test {

namespace {

namespace fs = std::filesystem;

log_entry entry_of(std::uint64_t batch, std::size_t count = 3) {
  const auto values = std::make_shared<std::vector<float>>(count, static_cast<float>(batch));
  const step_header step{{1}, {2}, {3}, {batch}, batch};
  return {{std::make_shared<const push_request>(
            push_request{step, {{0}}, batch, 0.5f, {{{{0}, 0, count}, {values, values->data()}}}})},
          {{0}}};
}

std::vector<std::uint64_t> batches_of(const std::vector<log_entry>& log) {
  std::vector<std::uint64_t> all;
  for (const auto& entry : log) {
    const auto& push = *entry.pushes.at(0);
    CHECK(push.pieces.at(0).values.get()[0] == static_cast<float>(push.step.batch.value));
    all.push_back(push.step.batch.value);
  }
  return all;
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& at : fs::directory_iterator{folder})
    names.insert(at.path().filename().string());
  return names;
}

struct sample_replica {
  sample_replica() : writer(open_writer(home.path())) {}

  write_ahead_log log(std::uint64_t sequence) {
    auto made = begin_log(home.path(), {0}, {0}, sequence);
    REQUIRE(made);
    return *std::move(made);
  }

  void keep(std::uint64_t sequence, const std::vector<partition_image>& images,
            std::uint64_t bases_from) {
    auto what = sample_cut(0, 0, 1, images);
    what.base = base_id{sequence, {77}, {5}, true};
    what.bases_from = bases_from;
    REQUIRE(writer->write(what));
  }

  result<std::optional<local_state>> read() const {
    return read_kept(home.path(), {0}, {0}, job, partitions_of(0, 1, job));
  }

  fs::path live() const { return detail::live_path(home.path(), {0}, {0}); }

  temporary_directory home;
  job_spec job = sample_job();
  std::unique_ptr<checkpoint_writer> writer;
};

} // namespace

TEST_CASE("what a replica kept comes back: base, and the entries that came after") {
  sample_replica replica;
  CHECK(newest_kept(replica.home.path(), {0}, {0}) == 0);
  REQUIRE(replica.read());
  CHECK_FALSE(*replica.read());

  const auto images = sample_partitions(replica.job, 7);
  auto log = replica.log(1);
  replica.keep(1, images, 1);
  CHECK(newest_kept(replica.home.path(), {0}, {0}) == 1);
  for (std::uint64_t batch : {3, 4, 5})
    REQUIRE(log.append(batch, entry_of(batch, 1000 + batch)));
  const auto kept = replica.read();
  REQUIRE(kept);
  REQUIRE(*kept);
  CHECK((*kept)->base == base_id{1, {77}, {5}, true});
  CHECK(same(images, (*kept)->images));
  CHECK(batches_of((*kept)->log) == std::vector<std::uint64_t>{3, 4, 5});
}

TEST_CASE("until a base is whole the one before holds, with both logs") {
  sample_replica replica;
  const auto first = sample_partitions(replica.job, 1);
  auto log = replica.log(1);
  replica.keep(1, first, 1);
  REQUIRE(log.append(1, entry_of(1)));
  REQUIRE(log.append(2, entry_of(2)));
  log = replica.log(2);
  REQUIRE(log.append(2, entry_of(2))); // Entry 2 was not applied when base 2 began.
  REQUIRE(log.append(3, entry_of(3)));
  auto kept = *replica.read();
  REQUIRE(kept);
  CHECK(kept->base.sequence == 1);
  CHECK(batches_of(kept->log) == std::vector<std::uint64_t>{1, 2, 3});

  const auto second = sample_partitions(replica.job, 2);
  replica.keep(2, second, 2);
  kept = *replica.read();
  REQUIRE(kept);
  CHECK(same(second, kept->images));
  CHECK(batches_of(kept->log) == std::vector<std::uint64_t>{2, 3});
  CHECK(names_in(replica.live()) == std::set<std::string>{"LOCK", "base-2", "db", "log-2"});
}

TEST_CASE("what cannot be listed is not taken for nothing") {
  const temporary_directory home;
  const auto live = detail::live_path(home.path(), {0}, {0});
  fs::create_directories(live.parent_path());
  std::ofstream{live} << "not a folder";
  const auto job = sample_job();
  const auto kept = read_kept(home.path(), {0}, {0}, job, partitions_of(0, 1, job));
  REQUIRE_FALSE(kept);
  CHECK(kept.error().code == errc::io_failed);
  CHECK(kept.error().text.find("cannot list " + live.string()) == 0);
}

TEST_CASE("of a bsp job the last clock is in the log, not in the base") {
  sample_replica replica;
  const auto first = sample_partitions(replica.job, 1);
  auto log = replica.log(1);
  replica.keep(1, first, 1);
  REQUIRE(log.append(1, entry_of(1)));
  log = replica.log(2);
  replica.keep(2, sample_partitions(replica.job, 2), 1);
  auto asked = *replica.read();
  REQUIRE(asked);
  CHECK(asked->log.empty());

  replica.job.tables.at(0).sync = {consistency_mode::bsp, 0};
  asked = *replica.read();
  REQUIRE(asked);
  CHECK(asked->base.sequence == 2);
  CHECK(same(first, asked->images));
  CHECK(batches_of(asked->log) == std::vector<std::uint64_t>{1});
}

TEST_CASE("what was taken back does not come again") {
  sample_replica replica;
  auto log = replica.log(1);
  replica.keep(1, sample_partitions(replica.job, 7), 1);
  for (std::uint64_t index : {1, 2, 3})
    REQUIRE(log.append(index, entry_of(index)));
  REQUIRE(log.truncate(1));
  REQUIRE(log.append(2, entry_of(9)));
  CHECK(batches_of((*replica.read())->log) == std::vector<std::uint64_t>{1, 9});
}

TEST_CASE("a record that was not written to its end is left out, a changed one is refused") {
  sample_replica replica;
  replica.keep(1, sample_partitions(replica.job, 7), 1);
  auto log = replica.log(1);
  const auto path = detail::log_path(replica.live(), 1);
  REQUIRE(log.append(1, entry_of(1)));
  const auto whole = fs::file_size(path);
  REQUIRE(log.append(2, entry_of(2)));
  const auto both = fs::file_size(path);
  for (auto size = both - 1; size >= whole; --size) {
    fs::resize_file(path, size);
    const auto kept = replica.read();
    REQUIRE(kept);
    CHECK(batches_of((*kept)->log) == std::vector<std::uint64_t>{1});
  }
  for (std::uintmax_t at = 0; at < whole; ++at) {
    std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
    const auto flip = [&] {
      file.seekg(static_cast<std::streamoff>(at));
      const auto byte = static_cast<char>(file.get() ^ 4);
      file.seekp(static_cast<std::streamoff>(at));
      file.put(byte);
      file.flush();
    };
    flip();
    const auto kept = replica.read();
    CAPTURE(at);
    REQUIRE_FALSE(kept);
    CHECK(kept.error().code == errc::damaged);
    flip();
  }
  CHECK(batches_of((*replica.read())->log) == std::vector<std::uint64_t>{1});
}

TEST_CASE("a writer leaves what was kept alone, and a damaged base is refused") {
  sample_replica replica;
  auto log = replica.log(1);
  replica.keep(1, sample_partitions(replica.job, 7), 1);
  replica.writer.reset();
  replica.writer = open_writer(replica.home.path());
  CHECK(*replica.read());
  const auto path = detail::base_path(replica.live(), 1) / detail::base_name;
  std::fstream{path, std::ios::in | std::ios::out | std::ios::binary}.put('x');
  const auto refused = replica.read();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == errc::damaged);
}

TEST_CASE(
  "a base says whether its generation recovered, and one of the first format that it did not") {
  for (const bool recovered : {false, true}) {
    const base_id base{3, {77}, {5}, recovered};
    CHECK(*decode_base(encode(base)) == base);
  }
  const std::string first{"\x09\x0e\x93\xc2\3\0\0\0\0\0\0\0\x4d\0\0\0\0\0\0\0\5\0\0\0\0\0\0\0", 28};
  CHECK(*decode_base(first) == base_id{3, {77}, {5}, false});
}

TEST_CASE("bytes that are no base, or one of a later format, are refused") {
  const auto bytes = encode({3, {77}, {5}, true});
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK(decode_base(bytes.substr(0, size)).error().code == errc::damaged);
  CHECK(decode_base(bytes + '\0').error().code == errc::damaged);
  auto later = bytes.substr(4);
  later[24] = 3;
  const auto sum = detail::crc32c(detail::bytes_of(later));
  later = detail::byte_writer{}.little(sum).take() + later;
  CHECK(decode_base(later).error().code == errc::version_mismatch);
}

} // namespace troupe::storage::test::local_state_test
