#include "storage/checkpoint_directory.hpp"

#include "tests/storage/sample_checkpoint.hpp"
#include "tests/storage/temporary_directory.hpp"

#include <fstream>
#include <string>
#include <sys/stat.h>

namespace troupe::storage::checkpoint_directory_test {

namespace fs = std::filesystem;

TEST_CASE("an absent directory has no checkpoints") {
  const temporary_directory home;
  const auto found_there = newest_good(home.path() / "absent", sample_job());
  REQUIRE(found_there);
  CHECK(!found_there->newest);
  CHECK(found_there->refused.empty());
  CHECK(last_number(home.path() / "absent") == 0);
  const auto removed = retain(home.path() / "absent", 1);
  REQUIRE(removed);
  CHECK(removed->empty());
}

TEST_CASE("the newest committed checkpoint is found, with everything its manifest says") {
  const temporary_directory home;
  const auto job = sample_job();
  const auto writer = open_writer(home.path());
  commit_sample(home.path(), *writer, 3, job, sample_partitions(job, 1));
  const auto whole = commit_sample(home.path(), *writer, 9, job, sample_partitions(job, 2));
  const auto found_there = newest_good(home.path(), job);
  REQUIRE(found_there);
  REQUIRE(found_there->newest);
  CHECK(found_there->newest->checkpoint == 9);
  CHECK(found_there->newest->job == job);
  CHECK(found_there->newest->generation == whole.generation);
  CHECK(found_there->newest->clock == whole.clock);
  CHECK(found_there->newest->cursor == whole.cursor);
  CHECK(found_there->newest->parts == whole.parts);
  CHECK(found_there->refused.empty());
  CHECK(last_number(home.path()) == 9);
}

TEST_CASE("an uncommitted checkpoint is ignored, but its number is used") {
  const temporary_directory home;
  const auto job = sample_job();
  const auto writer = open_writer(home.path());
  commit_sample(home.path(), *writer, 3, job, sample_partitions(job, 1));
  REQUIRE(writer->write(sample_cut(4, 0, 1, sample_partitions(job, 2))));
  const auto found_there = newest_good(home.path(), job);
  REQUIRE(found_there);
  REQUIRE(found_there->newest);
  CHECK(found_there->newest->checkpoint == 3);
  CHECK(found_there->refused.empty());
  CHECK(last_number(home.path()) == 4);
  const auto refused = verify(home.path(), 4, job);
  REQUIRE(!refused);
  CHECK(refused.error().code == errc::io_failed);
}

TEST_CASE("a checkpoint that a server could not read is passed over, and named") {
  const temporary_directory home;
  const auto job = sample_job();
  const auto writer = open_writer(home.path());
  commit_sample(home.path(), *writer, 3, job, sample_partitions(job, 1));
  commit_sample(home.path(), *writer, 9, job, sample_partitions(job, 2));
  const auto found_there = newest_good(home.path(), job, {9});
  REQUIRE(found_there);
  REQUIRE(found_there->newest);
  CHECK(found_there->newest->checkpoint == 3);
  REQUIRE(found_there->refused.size() == 1);
  CHECK(found_there->refused[0].code == errc::damaged);
  CHECK(found_there->refused[0].text
        == "checkpoint 9 in " + home.path().string() + " is damaged: a server could not read it");
}

TEST_CASE("committing without a part's files is refused") {
  const temporary_directory home;
  const auto job = sample_job();
  const auto writer = open_writer(home.path());
  auto part = writer->write(sample_cut(4, 0, 1, sample_partitions(job, 2)));
  REQUIRE(part);
  fs::remove(home.path() / "checkpoints/00000004" / part->files.front().name);
  const auto refused = commit(home.path(), {4, job, {}, 0, {}, {*part}});
  REQUIRE(!refused);
  CHECK(refused.error().code == errc::io_failed);
  CHECK(!is_committed(home.path(), 4));
}

TEST_CASE("committing twice is allowed with the same manifest only") {
  const temporary_directory home;
  const auto job = sample_job();
  const auto writer = open_writer(home.path());
  auto whole = commit_sample(home.path(), *writer, 3, job, sample_partitions(job, 1));
  CHECK(commit(home.path(), whole));
  whole.clock += 1;
  CHECK(!commit(home.path(), whole));
}

TEST_CASE("retention keeps the newest committed ones and what may be in the making") {
  const temporary_directory home;
  const auto job = sample_job();
  const auto writer = open_writer(home.path());
  for (const std::uint64_t number : {1, 2, 3, 5}) {
    commit_sample(home.path(), *writer, number, job, sample_partitions(job, number));
    if (number == 3)
      REQUIRE(writer->write(sample_cut(4, 0, 1, sample_partitions(job, 4))));
  }
  REQUIRE(writer->write(sample_cut(6, 0, 1, sample_partitions(job, 6))));
  const auto removed = retain(home.path(), 2);
  REQUIRE(removed);
  CHECK(*removed == std::vector<std::uint64_t>{4, 2, 1});
  CHECK(fs::exists(home.path() / "checkpoints/00000006"));
  CHECK(verify(home.path(), 5, job));
  CHECK(verify(home.path(), 3, job));
  const auto least = retain(home.path(), 0);
  REQUIRE(least);
  CHECK(*least == std::vector<std::uint64_t>{3});
}

TEST_CASE("retention does not count a checkpoint whose COMMIT is damaged") {
  const temporary_directory home;
  const auto job = sample_job();
  const auto writer = open_writer(home.path());
  commit_sample(home.path(), *writer, 1, job, sample_partitions(job, 1));
  commit_sample(home.path(), *writer, 2, job, sample_partitions(job, 2));
  std::ofstream{home.path() / "checkpoints/00000002/COMMIT"}.flush();
  const auto removed = retain(home.path(), 1);
  REQUIRE(removed);
  CHECK(removed->empty());
  CHECK(verify(home.path(), 1, job));
}

TEST_CASE("a checkpoint that was found damaged is not counted, and an older one stays") {
  const temporary_directory home;
  const auto job = sample_job();
  const auto writer = open_writer(home.path());
  commit_sample(home.path(), *writer, 1, job, sample_partitions(job, 1));
  const auto newest = commit_sample(home.path(), *writer, 2, job, sample_partitions(job, 2));
  REQUIRE(scrub(home.path(), 1));
  REQUIRE(scrub(home.path(), 2));
  const auto file = home.path() / "checkpoints/00000002" / newest.parts[0].files[0].name;
  std::fstream{file, std::ios::in | std::ios::out | std::ios::binary}.put('?');
  const auto found_there = scrub(home.path(), 2);
  REQUIRE(!found_there);
  CHECK(found_there.error().code == errc::damaged);
  const auto all = committed(home.path());
  REQUIRE(all);
  CHECK(*all == std::vector<std::uint64_t>{1, 2});
  const auto removed = retain(home.path(), 1);
  REQUIRE(removed);
  CHECK(removed->empty());
  const auto newest_left = newest_good(home.path(), job);
  REQUIRE(newest_left);
  REQUIRE(newest_left->newest);
  CHECK(newest_left->newest->checkpoint == 1);
  commit_sample(home.path(), *writer, 3, job, sample_partitions(job, 3));
  commit_sample(home.path(), *writer, 4, job, sample_partitions(job, 4));
  const auto later = retain(home.path(), 1);
  REQUIRE(later);
  CHECK(*later == std::vector<std::uint64_t>{3, 2, 1});
}

TEST_CASE("a checkpoint that was passed over as damaged is not counted either") {
  const temporary_directory home;
  const auto job = sample_job();
  const auto writer = open_writer(home.path());
  commit_sample(home.path(), *writer, 1, job, sample_partitions(job, 1));
  const auto newest = commit_sample(home.path(), *writer, 2, job, sample_partitions(job, 2));
  fs::remove(home.path() / "checkpoints/00000002" / newest.parts[0].files[0].name);
  REQUIRE(newest_good(home.path(), job));
  commit_sample(home.path(), *writer, 3, job, sample_partitions(job, 3));
  const auto removed = retain(home.path(), 2);
  REQUIRE(removed);
  CHECK(removed->empty());
  CHECK(verify(home.path(), 1, job));
}

TEST_CASE("what cannot be scrubbed is not called damaged") {
  const temporary_directory home;
  const auto none = committed(home.path());
  REQUIRE(none);
  CHECK(none->empty());
  const auto absent = scrub(home.path(), 1);
  REQUIRE(!absent);
  CHECK(absent.error().code == errc::io_failed);
}

TEST_CASE("retention leaves a checkpoint that it cannot read just now") {
  for (const auto* name : {"COMMIT", "manifest.json"}) {
    CAPTURE(name);
    const temporary_directory home;
    const auto job = sample_job();
    const auto writer = open_writer(home.path());
    for (const std::uint64_t number : {1, 2, 3, 4})
      commit_sample(home.path(), *writer, number, job, sample_partitions(job, number));
    // A link to itself is a file that even root cannot read.
    for (const auto* number : {"00000003", "00000002"}) {
      const auto file = home.path() / "checkpoints" / number / name;
      fs::rename(file, home.path() / number);
      fs::create_symlink(file, file);
    }
    const auto removed = retain(home.path(), 1);
    REQUIRE(removed);
    CHECK(*removed == std::vector<std::uint64_t>{1});
    for (const auto* number : {"00000003", "00000002"})
      fs::rename(home.path() / number, home.path() / "checkpoints" / number / name);
    for (const std::uint64_t number : {2, 3, 4})
      CHECK(verify(home.path(), number, job));
    const auto later = retain(home.path(), 1);
    REQUIRE(later);
    CHECK(*later == std::vector<std::uint64_t>{3, 2});
  }
}

TEST_CASE("retention keeps a damaged checkpoint until newer ones are as many as it keeps") {
  const temporary_directory home;
  const auto job = sample_job();
  const auto writer = open_writer(home.path());
  for (const std::uint64_t number : {1, 2, 3})
    commit_sample(home.path(), *writer, number, job, sample_partitions(job, number));
  std::ofstream{home.path() / "checkpoints/00000002/COMMIT"}.flush();
  auto removed = retain(home.path(), 2);
  REQUIRE(removed);
  CHECK(removed->empty());
  commit_sample(home.path(), *writer, 4, job, sample_partitions(job, 4));
  removed = retain(home.path(), 2);
  REQUIRE(removed);
  CHECK(*removed == std::vector<std::uint64_t>{2, 1});
}

TEST_CASE("another job's checkpoint stops the search") {
  const temporary_directory home;
  const auto job = sample_job();
  const auto writer = open_writer(home.path());
  commit_sample(home.path(), *writer, 12, job, sample_partitions(job, 1));
  struct variant {
    const char* text;
    void (*change)(job_spec&);
  };
  const variant variants[] = {
    {"another model: table 'w1' is 784x64 there and 784x128 here",
     [](job_spec& x) {
       x.tables[0].shape = {784, 128};
     }},
    {"another model: table 'w9' is not in it", [](job_spec& x) { x.tables[1].name = "w9"; }},
    {"another model: its table 'adam_rows' is not in this job",
     [](job_spec& x) { x.tables.pop_back(); }},
    {"another model: table 'rows' is sparse with rows of 600 there and sparse with rows of 601 "
     "here",
     [](job_spec& x) { x.tables[3].width = 601; }},
    {"another model: the optimizer of table 'w2' is momentum there and adagrad here",
     [](job_spec& x) { x.tables[1].optimizer.kind = optimizer_kind::adagrad; }},
    {"another model: the optimizer of table 'w2' is momentum there and mean/1 here",
     [](job_spec& x) {
       x.tables[1].optimizer = {.kind = optimizer_kind::user, .function = "mean/1"};
     }},
    {"another model: table 0 is 'w1' there and 'w2' here",
     [](job_spec& x) { std::swap(x.tables[0], x.tables[1]); }},
    {"another job: it is 'sample' there and 'x' here", [](job_spec& x) { x.name = "x"; }},
    {"another job: the seed is 1 there and 5 here", [](job_spec& x) { x.seed = 5; }},
    {"another job: the number of partitions is 8 there and 16 here",
     [](job_spec& x) { x.partitions = 16; }},
    {"another job: the batch size is 64 there and 32 here",
     [](job_spec& x) { x.batch_samples = 32; }},
    {"another job: the number of samples is 1000 there and 5 here",
     [](job_spec& x) { x.samples = 5; }},
    {"another job: bsp is used in one of them only",
     [](job_spec& x) { x.tables[2].sync.mode = consistency_mode::bsp; }},
  };
  for (const auto& variant : variants) {
    auto other = job;
    variant.change(other);
    const auto refused = newest_good(home.path(), other);
    REQUIRE(!refused);
    CHECK(refused.error().code == errc::wrong_job);
    CHECK(refused.error().text
          == "checkpoint 12 in " + home.path().string() + " belongs to " + variant.text);
  }
  auto same_model = job;
  same_model.servers = 7;
  same_model.epochs = 9;
  CHECK(newest_good(home.path(), same_model)->newest);
}

TEST_CASE("a directory that cannot be read is an error, not an empty one") {
  const temporary_directory home;
  std::ofstream{home.path() / "checkpoints"} << "a file";
  const auto refused = newest_good(home.path(), sample_job());
  REQUIRE(!refused);
  CHECK(refused.error().code == errc::io_failed);
  CHECK(refused.error().text.find((home.path() / "checkpoints").string()) != std::string::npos);
  const auto below_a_file = checkpoint_writer::open(home.path() / "checkpoints", {0}, {0});
  REQUIRE(!below_a_file);
  CHECK(below_a_file.error().code == errc::io_failed);

  if (::geteuid() == 0) {
    MESSAGE("permissions are not tested: root may read everything");
    return;
  }
  fs::remove(home.path() / "checkpoints");
  fs::create_directories(home.path() / "checkpoints");
  ::chmod((home.path() / "checkpoints").c_str(), 0);
  const auto closed = newest_good(home.path(), sample_job());
  ::chmod((home.path() / "checkpoints").c_str(), 0755);
  REQUIRE(!closed);
  CHECK(closed.error().code == errc::io_failed);
}

} // namespace troupe::storage::checkpoint_directory_test
