#include "storage/checkpoint_reader.hpp"

#include "base/system/file.hpp"
#include "storage/detail/database.hpp"
#include "tests/storage/sample_checkpoint.hpp"
#include "tests/storage/temporary_directory.hpp"

#include "rocksdb/db.h"

#include <filesystem>
#include <memory>
#include <string>

namespace troupe::storage::checkpoint_reader_test {

namespace {

/// Writes and commits one checkpoint with `servers` servers; returns its manifest.
manifest commit_by(const std::filesystem::path& directory, std::uint64_t checkpoint,
                   std::uint32_t servers, const job_spec& job,
                   const std::vector<partition_image>& images) {
  manifest whole{checkpoint, job, {}, 0, {}, {}};
  for (std::uint32_t server = 0; server < servers; ++server) {
    const auto writer = open_writer(directory, server);
    auto part = writer->write(sample_cut(checkpoint, server, servers, images));
    REQUIRE(part);
    whole.parts.push_back(*std::move(part));
  }
  REQUIRE(commit(directory, whole));
  return whole;
}

} // namespace

TEST_CASE("1 to 4 servers' checkpoints are read by 1 to 4 servers, equal each time") {
  const auto job = sample_job();
  const auto images = sample_partitions(job, 1);
  for (std::uint32_t writers = 1; writers <= 4; ++writers) {
    const temporary_directory home;
    commit_by(home.path(), 1, writers, job, images);
    for (std::uint32_t readers = 1; readers <= 4; ++readers) {
      CAPTURE(writers);
      CAPTURE(readers);
      std::vector<partition_image> whole(job.partitions);
      for (std::uint32_t reader = 0; reader < readers; ++reader) {
        auto share = read(home.path(), 1, job, partitions_of(reader, readers, job));
        REQUIRE(share);
        for (auto& image : *share)
          whole[image.partition.value] = std::move(image);
      }
      CHECK(same(whole, images));
    }
  }
}

TEST_CASE("partitions come back in the order asked for") {
  const temporary_directory home;
  const auto job = sample_job();
  commit_by(home.path(), 1, 2, job, sample_partitions(job, 1));
  const auto images = read(home.path(), 1, job, {{5}, {0}, {3}});
  REQUIRE(images);
  REQUIRE(images->size() == 3);
  CHECK((*images)[0].partition == partition_id{5});
  CHECK((*images)[1].partition == partition_id{0});
  CHECK((*images)[2].partition == partition_id{3});
}

TEST_CASE("reading leaves the checkpoint as it is") {
  const temporary_directory home;
  const auto job = sample_job();
  commit_by(home.path(), 1, 2, job, sample_partitions(job, 1));
  const auto before = listing(home.path() / "checkpoints");
  REQUIRE(read(home.path(), 1, job, partitions_of(0, 1, job)));
  REQUIRE(verify(home.path(), 1, job));
  CHECK(listing(home.path() / "checkpoints") == before);
}

TEST_CASE("blocks that are missing, too many or of another size are damage") {
  const auto job = sample_job();
  struct variant {
    const char* text;
    void (*change)(partition_image&);
  };
  const variant variants[] = {
    {"block 0 of table 'b' is missing", [](partition_image& x) { x.blocks.pop_back(); }},
    {"more blocks than",
     [](partition_image& x) {
       x.blocks.push_back(x.blocks.back());
       x.blocks.back().block = 99;
     }},
    {"has 9 values", [](partition_image& x) { x.blocks.back().count = 9; }},
    {"applied batches of partition", [](partition_image& x) { x.applied.pop_back(); }},
  };
  for (const auto& variant : variants) {
    CAPTURE(variant.text);
    const temporary_directory home;
    auto images = sample_partitions(job, 1);
    auto& image = images[partition_of(job, {2}, 0).value];
    variant.change(image);
    commit_by(home.path(), 1, 1, job, images);
    const auto refused = read(home.path(), 1, job, {image.partition});
    REQUIRE(!refused);
    CHECK(refused.error().code == errc::damaged);
    CHECK_MESSAGE(refused.error().text.find(variant.text) != std::string::npos,
                  refused.error().text);
  }
}

TEST_CASE("a partition in two parts is damage") {
  const temporary_directory home;
  const auto job = sample_job();
  const auto images = sample_partitions(job, 1);
  manifest whole{1, job, {}, 0, {}, {}};
  for (std::uint32_t server = 0; server < 2; ++server) {
    auto what = sample_cut(1, 0, 1, images);
    what.shard = {server};
    const auto writer = open_writer(home.path(), server);
    auto part = writer->write(what);
    REQUIRE(part);
    whole.parts.push_back(*std::move(part));
  }
  REQUIRE(commit(home.path(), whole));
  const auto refused = read(home.path(), 1, job, {{4}});
  REQUIRE(!refused);
  CHECK(refused.error().code == errc::damaged);
  CHECK(refused.error().text.find("partition 4 is in two parts") != std::string::npos);
}

TEST_CASE("another job's checkpoint is not read, and the text says what differs") {
  const temporary_directory home;
  const auto job = sample_job();
  commit_by(home.path(), 12, 1, job, sample_partitions(job, 1));
  auto other = job;
  other.tables[0].shape = {784, 128};
  const auto refused = read(home.path(), 12, other, {{0}});
  REQUIRE(!refused);
  CHECK(refused.error().code == errc::wrong_job);
  CHECK(refused.error().text
        == "checkpoint 12 in " + home.path().string()
             + " belongs to another model: table 'w1' is 784x64 there and "
               "784x128 here");
}

TEST_CASE("a checkpoint of other data says so") {
  const temporary_directory home;
  auto job = sample_job();
  job.name = "sgd on data 17";
  commit_by(home.path(), 12, 1, job, sample_partitions(job, 1));
  auto other = job;
  other.name = "sgd on data 18";
  const auto refused = read(home.path(), 12, other, {{0}});
  REQUIRE(!refused);
  CHECK(refused.error().code == errc::wrong_job);
  CHECK(refused.error().text
        == "checkpoint 12 in " + home.path().string()
             + " belongs to another data set: it is 'data 17' there and 'data 18' here: the files, "
               "or the options that read them, differ");
  other.name = "cgd on data 17";
  CHECK(read(home.path(), 12, other, {{0}})
          .error()
          .text.ends_with("another job: it is 'sgd on data 17' there and 'cgd on data 17' here"));
}

TEST_CASE("a checkpoint that also holds the workers' clocks, as they were once written, is read") {
  const temporary_directory home;
  const auto job = sample_job();
  const auto images = sample_partitions(job, 1);
  const auto writer = open_writer(home.path());
  auto part = writer->write(sample_cut(7, 0, 1, images));
  REQUIRE(part);
  const auto checkpoint = home.path() / "checkpoints/00000007";
  {
    rocksdb::DB* opened = nullptr;
    auto options = detail::small_database();
    REQUIRE(rocksdb::DB::Open(options, (checkpoint / "chain-0").string(), &opened).ok());
    const std::unique_ptr<rocksdb::DB> database{opened};
    REQUIRE(database->Put({}, "c", std::string(8 + 8 + 21, 'x')).ok());
    REQUIRE(database->Flush({}).ok());
  }
  part->files.clear();
  for (const auto& entry : std::filesystem::directory_iterator{checkpoint / "chain-0"}) {
    const auto sum = sum_file(entry.path(), /* from_disk = */ false);
    REQUIRE(sum);
    part->files.push_back(
      {"chain-0/" + entry.path().filename().string(), sum->size_bytes, sum->crc32c});
  }
  REQUIRE(commit(home.path(), {7, job, {}, 0, {}, {*part}}));
  REQUIRE(verify(home.path(), 7, job));
  const auto read_images = read(home.path(), 7, job, partitions_of(0, 1, job));
  REQUIRE(read_images);
  CHECK(same(*read_images, images));
}

} // namespace troupe::storage::checkpoint_reader_test
