// Fills the disk at various moments of a cut: the writer reports it, leaves no files behind and
// goes on.
#include "tests/storage/sample_checkpoint.hpp"
#include "tests/storage/temporary_directory.hpp"

#include <cstdio>
#include <fstream>
#include <string>
#include <sys/mount.h>

namespace troupe::storage::checkpoint_full_disk_test {

namespace fs = std::filesystem;

namespace {

/// Mounts a small tmpfs, if that is permitted.
class small_disk {
public:
  explicit small_disk(std::size_t size_bytes) {
    const auto options = "size=" + std::to_string(size_bytes);
    mounted_ = ::mount("tmpfs", home_.path().c_str(), "tmpfs", 0, options.c_str()) == 0;
  }
  small_disk(const small_disk&) = delete;
  small_disk& operator=(const small_disk&) = delete;
  ~small_disk() {
    if (mounted_)
      ::umount2(home_.path().c_str(), MNT_DETACH);
  }

  bool mounted() const { return mounted_; }
  const fs::path& path() const { return home_.path(); }
  std::uintmax_t available() const { return fs::space(home_.path()).available; }

private:
  temporary_directory home_;
  bool mounted_ = false;
};

/// Takes space on the disk until only `left_bytes` are left.
void fill(const small_disk& disk, std::uintmax_t left_bytes) {
  std::ofstream file{disk.path() / "ballast", std::ios::binary};
  const std::string page(4096, 'x');
  while (file && disk.available() > left_bytes)
    file.write(page.data(), static_cast<std::streamsize>(page.size())).flush();
}

} // namespace

TEST_CASE("a cut on a full disk fails by name, leaves nothing, and the next one succeeds") {
  const small_disk disk{std::size_t{16} << 20};
  if (!disk.mounted()) {
    std::puts("SKIPPED: mounting a small tmpfs needs root; the full disk is not tested");
    return;
  }
  const auto job = sample_job();
  auto writer = open_writer(disk.path());
  const auto need =
    bytes_of(commit_sample(disk.path(), *writer, 1, job, sample_partitions(job, 1)));
  std::uint64_t number = 2;
  int failures = 0;
  // The free space grows from zero to enough for the live database but not for the copy.
  for (const double part : {0.0, 0.1, 0.5, 0.9, 1.1, 1.5, 1.9}) {
    CAPTURE(part);
    const auto images = sample_partitions(job, number);
    fill(disk, static_cast<std::uintmax_t>(part * static_cast<double>(need)));
    const auto part_written = writer->write(sample_cut(number, 0, 1, images));
    if (!part_written) {
      ++failures;
      CHECK(part_written.error().code == errc::io_failed);
      CHECK_MESSAGE(part_written.error().text.find("No space left on device") != std::string::npos,
                    part_written.error().text);
      CHECK_MESSAGE(part_written.error().text.find(disk.path().string()) != std::string::npos,
                    part_written.error().text);
      CHECK(!fs::exists(disk.path() / "checkpoints" / ("0000000" + std::to_string(number))));
      CHECK(!fs::exists(disk.path() / "servers/0/chain-0/staging"));
    }
    fs::remove(disk.path() / "ballast");
    ++number;
    const auto whole = commit_sample(disk.path(), *writer, number, job, images);
    const auto read_images = read(disk.path(), number, job, partitions_of(0, 1, job));
    REQUIRE(read_images);
    CHECK(same(*read_images, images));
    REQUIRE(retain(disk.path(), 1));
    ++number;
  }
  CHECK(failures >= 4);
}

TEST_CASE("a commit on a full disk fails and the checkpoint does not exist") {
  const small_disk disk{std::size_t{16} << 20};
  if (!disk.mounted()) {
    std::puts("SKIPPED: mounting a small tmpfs needs root; the full disk is not tested");
    return;
  }
  const auto job = sample_job();
  auto writer = open_writer(disk.path());
  const auto part = writer->write(sample_cut(1, 0, 1, sample_partitions(job, 1)));
  REQUIRE(part);
  fill(disk, 0);
  const manifest whole{1, job, {}, 0, {}, {*part}};
  const auto refused = commit(disk.path(), whole);
  REQUIRE(!refused);
  CHECK(refused.error().code == errc::io_failed);
  CHECK(refused.error().text.find("No space left on device") != std::string::npos);
  CHECK(!is_committed(disk.path(), 1));
  fs::remove(disk.path() / "ballast");
  CHECK(commit(disk.path(), whole));
  CHECK(verify(disk.path(), 1, job));
}

} // namespace troupe::storage::checkpoint_full_disk_test
