#include "storage/checkpoint_writer.hpp"

#include "tests/storage/sample_checkpoint.hpp"
#include "tests/storage/temporary_directory.hpp"

#include <algorithm>
#include <fstream>

namespace troupe::storage::checkpoint_writer_test {

namespace fs = std::filesystem;

TEST_CASE("what is written comes back: values, optimiser state, steps and applied batches") {
  const temporary_directory home;
  const auto job = sample_job();
  const auto images = sample_partitions(job, 1);
  const auto writer = open_writer(home.path());
  const auto whole = commit_sample(home.path(), *writer, 12, job, images);
  CHECK(whole.parts[0].version == images.back().version);

  const auto read_images = read(home.path(), 12, job, partitions_of(0, 1, job));
  REQUIRE(read_images);
  CHECK(same(*read_images, images));
}

TEST_CASE("a cut writes only the blocks that changed since the last one") {
  const temporary_directory home;
  const auto job = sample_job();
  auto images = sample_partitions(job, 1);
  const auto writer = open_writer(home.path());
  const auto first = bytes_of(commit_sample(home.path(), *writer, 1, job, images));

  std::mt19937_64 random{5};
  auto& changed = images[2].blocks.at(0);
  changed.version = 2;
  changed.values = random_floats(changed.count, random);
  images[2].version += 1;
  images[2].applied[0].insert(batch_id{900});
  const auto second = bytes_of(commit_sample(home.path(), *writer, 2, job, images));
  const auto written = (changed.count + changed.state_count) * sizeof(float);
  CHECK(second >= first + written);
  CHECK(second < first + written + 10'000); // RocksDB frames one more table.

  const auto read_images = read(home.path(), 2, job, partitions_of(0, 1, job));
  REQUIRE(read_images);
  CHECK(same(*read_images, images));
}

TEST_CASE("servers write a chain's part in turn, each from a live database of its own") {
  const temporary_directory home;
  const auto job = sample_job();
  const auto one = sample_partitions(job, 1), two = sample_partitions(job, 2);
  const auto first = open_writer(home.path(), 1, 0);
  const auto second = open_writer(home.path(), 2, 0);
  commit_sample(home.path(), *first, 1, job, one);
  commit_sample(home.path(), *second, 2, job, two);
  commit_sample(home.path(), *first, 3, job, one);
  for (const auto& [checkpoint, images] : {std::pair{1, &one}, {2, &two}, {3, &one}}) {
    const auto read_images = read(home.path(), checkpoint, job, partitions_of(0, 1, job));
    REQUIRE(read_images);
    CHECK(same(*read_images, *images));
  }
}

TEST_CASE("what another server had begun of a chain's part is replaced") {
  const temporary_directory home;
  const auto job = sample_job();
  const auto one = sample_partitions(job, 1), two = sample_partitions(job, 2);
  REQUIRE(open_writer(home.path(), 1, 0)->write(sample_cut(1, 0, 1, one)));
  const auto second = open_writer(home.path(), 2, 0);
  commit_sample(home.path(), *second, 1, job, two);
  const auto read_images = read(home.path(), 1, job, partitions_of(0, 1, job));
  REQUIRE(read_images);
  CHECK(same(*read_images, two));
}

TEST_CASE("a block with a repeated version but other memory is written: histories roll back") {
  const temporary_directory home;
  const auto job = sample_job();
  auto images = sample_partitions(job, 1);
  const auto writer = open_writer(home.path());
  commit_sample(home.path(), *writer, 1, job, images);
  images = sample_partitions(job, 2);
  for (auto& image : images)
    for (auto& block : image.blocks)
      block.version = 1;
  commit_sample(home.path(), *writer, 2, job, images);
  const auto read_images = read(home.path(), 2, job, partitions_of(0, 1, job));
  REQUIRE(read_images);
  CHECK(same(*read_images, images));
}

TEST_CASE("space stays bounded over many cuts, and every cut is right") {
  const temporary_directory home;
  const auto job = sample_job();
  auto images = sample_partitions(job, 1);
  const auto writer = open_writer(home.path());
  const auto first = bytes_of(commit_sample(home.path(), *writer, 1, job, images));
  std::mt19937_64 random{9};
  for (std::uint64_t number = 2; number < 40; ++number) {
    for (auto& image : images)
      for (auto& block : image.blocks)
        if (random() % 4 == 0) {
          block.version += 1;
          block.values = random_floats(block.count, random);
        }
    const auto whole = commit_sample(home.path(), *writer, number, job, images);
    CHECK(bytes_of(whole) <= first * 2 + 100'000);
    const auto read_images = read(home.path(), number, job, partitions_of(0, 1, job));
    REQUIRE(read_images);
    CHECK(same(*read_images, images));
    REQUIRE(retain(home.path(), 2));
  }
}

TEST_CASE("a partition that left the server is in none of its later cuts") {
  const temporary_directory home;
  const auto job = sample_job();
  const auto images = sample_partitions(job, 1);
  const auto writer = open_writer(home.path());
  commit_sample(home.path(), *writer, 1, job, images);
  auto fewer = images;
  fewer.pop_back();
  commit_sample(home.path(), *writer, 2, job, fewer);
  CHECK(read(home.path(), 2, job, {{0}}));
  const auto gone = read(home.path(), 2, job, {images.back().partition});
  REQUIRE(!gone);
  CHECK(gone.error().code == errc::damaged);
  CHECK(gone.error().text.find("partition 7 is in no part") != std::string::npos);
}

TEST_CASE("a checkpoint holds no log files and the live folder no staging") {
  const temporary_directory home;
  const auto writer = open_writer(home.path());
  const auto job = sample_job();
  commit_sample(home.path(), *writer, 1, job, sample_partitions(job, 1));
  for (const auto& [name, size] : listing(home.path()))
    CHECK_MESSAGE(!fs::path{name}.filename().string().starts_with("LOG"), name);
  for (const auto& [name, size] : listing(home.path() / "checkpoints"))
    CHECK_MESSAGE(!fs::path{name}.filename().string().starts_with("OPTIONS"), name);
  CHECK(!fs::exists(home.path() / "servers/0/chain-0/staging"));
}

TEST_CASE("an uncommitted part of the same number is replaced, a committed one is not") {
  const temporary_directory home;
  const auto job = sample_job();
  const auto writer = open_writer(home.path());
  REQUIRE(writer->write(sample_cut(5, 0, 1, sample_partitions(job, 1))));
  const auto images = sample_partitions(job, 2);
  commit_sample(home.path(), *writer, 5, job, images);
  const auto read_images = read(home.path(), 5, job, partitions_of(0, 1, job));
  REQUIRE(read_images);
  CHECK(same(*read_images, images));

  const auto again = writer->write(sample_cut(5, 0, 1, sample_partitions(job, 3)));
  REQUIRE(!again);
  CHECK(again.error().code == errc::io_failed);
  CHECK(verify(home.path(), 5, job));
}

TEST_CASE("damage of a live file is noticed before it gets into a checkpoint") {
  const temporary_directory home;
  const auto job = sample_job();
  auto images = sample_partitions(job, 1);
  const auto writer = open_writer(home.path());
  commit_sample(home.path(), *writer, 1, job, images);
  for (const auto& entry : fs::directory_iterator{home.path() / "servers/0/chain-0/db"}) {
    if (entry.path().extension() != ".sst")
      continue;
    std::fstream file{entry.path(), std::ios::in | std::ios::out | std::ios::binary};
    file.seekp(1000);
    file.put('\x55');
  }
  images[0].version += 1;
  const auto part = writer->write(sample_cut(2, 0, 1, images));
  REQUIRE(!part);
  CHECK(part.error().code == errc::damaged);
  CHECK(part.error().text.find(".sst") != std::string::npos);
  CHECK(!fs::exists(home.path() / "checkpoints/00000002"));
  CHECK(verify(home.path(), 1, job));

  commit_sample(home.path(), *writer, 3, job, images);
  CHECK(verify(home.path(), 3, job));
  const auto read_images = read(home.path(), 3, job, partitions_of(0, 1, job));
  REQUIRE(read_images);
  CHECK(same(*read_images, images));
}

TEST_CASE("opening a writer empties what an earlier one left, and refuses a second owner") {
  const temporary_directory home;
  const auto job = sample_job();
  fs::create_directories(home.path() / "servers/0/chain-0/staging");
  std::ofstream{home.path() / "servers/0/chain-0/staging/000001.sst"} << "rest of a killed process";
  const auto writer = open_writer(home.path());
  CHECK(!fs::exists(home.path() / "servers/0/chain-0/staging"));
  const auto second = checkpoint_writer::open(home.path(), {0}, {0});
  REQUIRE(!second);
  CHECK(second.error().code == errc::in_use);
  CHECK(second.error().text.find(std::to_string(::getpid())) != std::string::npos);
  CHECK(second.error().text.find((home.path() / "servers/0/chain-0").string())
        != std::string::npos);
  CHECK(checkpoint_writer::open(home.path(), {1}, {1}));
}

} // namespace troupe::storage::checkpoint_writer_test
