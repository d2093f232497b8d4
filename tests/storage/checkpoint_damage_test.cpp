// Checks that every single fault in a committed checkpoint is noticed, and the older good one is
// used.
#include "tests/storage/sample_checkpoint.hpp"
#include "tests/storage/temporary_directory.hpp"

#include <fstream>
#include <iterator>
#include <set>
#include <string>

namespace troupe::storage::checkpoint_damage_test {

namespace fs = std::filesystem;

namespace {

std::string content_of(const fs::path& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

void replace(const fs::path& path, const std::string& content) {
  std::ofstream{path, std::ios::binary | std::ios::trunc} << content;
}

std::vector<fs::path> files_in(const fs::path& directory) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator{directory})
    if (entry.is_regular_file())
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// Two good checkpoints, 1 and 2, of two servers. Each trial damages checkpoint 2, then restores
/// it.
class damage_fixture {
public:
  damage_fixture() {
    for (const std::uint64_t number : {1, 2}) {
      const auto images = sample_partitions(job, number);
      manifest whole{number, job, {}, 0, {}, {}};
      for (std::uint32_t server = 0; server < 2; ++server) {
        const auto writer = open_writer(home.path(), server);
        auto part = writer->write(sample_cut(number, server, 2, images));
        REQUIRE(part);
        whole.parts.push_back(*std::move(part));
      }
      REQUIRE(commit(home.path(), whole));
    }
    fs::copy(newest(), pristine(), fs::copy_options::recursive);
    for (const auto& file : files_in(newest()))
      whole_content.push_back(content_of(file));
  }

  fs::path newest() const { return home.path() / "checkpoints/00000002"; }
  fs::path pristine() const { return home.path() / "pristine"; }

  void restore() const {
    fs::remove_all(newest());
    fs::copy(pristine(), newest(), fs::copy_options::recursive);
  }

  /// Checks that checkpoint 1 is used and 2 is refused by name.
  void check_noticed() const {
    const auto found_there = newest_good(home.path(), job);
    REQUIRE(found_there);
    REQUIRE(found_there->newest);
    CHECK(found_there->newest->checkpoint == 1);
    REQUIRE(found_there->refused.size() == 1);
    CHECK(found_there->refused[0].text.starts_with("checkpoint 2 in " + home.path().string()));
    CHECK(!verify(home.path(), 2, job));
  }

  const job_spec job = sample_job();
  const temporary_directory home;
  std::vector<std::string> whole_content;
};

} // namespace

TEST_CASE_FIXTURE(damage_fixture, "every random single fault is noticed") {
  const auto files = files_in(newest());
  constexpr std::uint64_t seed = 20240;
  std::mt19937_64 random{seed};
  CAPTURE(seed);
  int faults = 0;
  for (int trial = 0; trial < 400; ++trial) {
    CAPTURE(trial);
    const auto i = random() % files.size();
    const auto& file = files[i];
    const auto& content = whole_content[i];
    CAPTURE(file.string());
    switch (random() % 5) {
    case 0:
    case 1: { // Flip one bit.
      if (content.empty())
        continue;
      auto changed = content;
      auto& byte = changed[random() % changed.size()];
      byte = static_cast<char>(byte ^ (1 << random() % 8));
      replace(file, changed);
      break;
    }
    case 2: // Truncate, possibly to zero bytes.
      if (content.empty())
        continue;
      replace(file, content.substr(0, random() % content.size()));
      break;
    case 3: fs::remove(file); break;
    case 4: { // Swap two files.
      const auto j = random() % files.size();
      if (whole_content[i] == whole_content[j])
        continue;
      replace(file, whole_content[j]);
      replace(files[j], content);
      break;
    }
    }
    ++faults;
    check_noticed();
    restore();
  }
  CHECK(faults >= 200);
  const auto found_there = newest_good(home.path(), job);
  REQUIRE(found_there);
  CHECK(found_there->newest->checkpoint == 2);
}

TEST_CASE_FIXTURE(damage_fixture, "a file emptied, missing, or of an older checkpoint is noticed") {
  for (const auto& file : files_in(newest())) {
    CAPTURE(file.string());
    const auto content = content_of(file);
    replace(file, "");
    check_noticed();
    fs::remove(file);
    check_noticed();
    const auto older = home.path() / "checkpoints/00000001" / fs::relative(file, newest());
    if (fs::exists(older) && content_of(older) != content) {
      fs::copy_file(older, file);
      check_noticed();
    }
    restore();
  }
}

TEST_CASE_FIXTURE(damage_fixture, "a file too many, or another's folder, is noticed") {
  // RocksDB would replay a log that it finds.
  replace(newest() / "chain-0/000099.log", "");
  check_noticed();
  restore();
  fs::remove_all(newest());
  fs::copy(home.path() / "checkpoints/00000001", newest(), fs::copy_options::recursive);
  check_noticed();
}

TEST_CASE_FIXTURE(damage_fixture, "reading past the search notices damage by itself") {
  const auto expected = sample_partitions(job, 2);
  std::mt19937_64 random{5};
  const auto files = files_in(newest());
  int noticed = 0;
  for (int trial = 0; trial < 150; ++trial) {
    CAPTURE(trial);
    const auto i = random() % files.size();
    auto changed = whole_content[i];
    if (changed.empty())
      continue;
    auto& byte = changed[random() % changed.size()];
    byte = static_cast<char>(byte ^ (1 << random() % 8));
    replace(files[i], changed);
    // A bit that RocksDB does not read may pass; wrong values may not.
    const auto images = read(home.path(), 2, job, partitions_of(0, 1, job));
    if (images)
      CHECK(same(*images, expected));
    else
      ++noticed;
    restore();
  }
  CHECK(noticed >= 100);
}

} // namespace troupe::storage::checkpoint_damage_test
