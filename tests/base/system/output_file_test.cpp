// Writes to what a user may name: files, links, pipes, devices and open files.
#include "base/system/output_file.hpp"

#include "base/system/file.hpp"
#include "tests/storage/temporary_directory.hpp"

#include "doctest/doctest.h"

#include <array>
#include <fcntl.h>
#include <filesystem>
#include <future>
#include <iterator>
#include <span>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace output_file_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace fs = std::filesystem;

namespace {

struct folder {
  fs::path operator/(const std::string& name) const { return home.path() / name; }
  std::string text(const std::string& name) const { return *read_file(*this / name, 1 << 20); }
  struct stat state(const std::string& name) const {
    struct stat found {};
    REQUIRE(::lstat((*this / name).c_str(), &found) == 0);
    return found;
  }
  mode_t mode(const std::string& name) const { return state(name).st_mode & 07777; }
  void write(const std::string& name, const std::string& text, mode_t mode = 0644) const {
    REQUIRE(write_outputs({{*this / name, text, mode}}));
  }
  std::ptrdiff_t entries() const {
    return std::distance(fs::directory_iterator{home.path()}, fs::directory_iterator{});
  }

  storage::temporary_directory home;
};

/// Returns the message of check_output(), which write_outputs() must give, too, without `patience`.
std::string refusal(const fs::path& path) {
  const auto checked = check_output(path);
  REQUIRE_FALSE(checked);
  const auto written = write_outputs({{path, "new"}}, 0ms);
  REQUIRE_FALSE(written);
  CHECK(written.error() == checked.error());
  CHECK(checked.error().code == errc::io_failed);
  return checked.error().text;
}

/// Makes file number 55 one of `file`, as the shell's `55>file` does.
struct open_as_55 {
  explicit open_as_55(int file) { REQUIRE(::dup2(file, 55) == 55); }
  ~open_as_55() { ::close(55); }
  open_as_55(const open_as_55&) = delete;
  open_as_55& operator=(const open_as_55&) = delete;
};

} // namespace

TEST_CASE("a new file has the mode that the user's mask leaves, or the wanted one") {
  const folder home;
  const auto mask = ::umask(027);
  REQUIRE(check_output(home / "file"));
  CHECK(home.entries() == 0);
  REQUIRE(write_outputs({{home / "file", "text"}, {home / "key", "secret", 0600}}));
  ::umask(mask);
  CHECK(home.text("file") == "text");
  CHECK(home.mode("file") == 0640);
  CHECK(home.mode("key") == 0600);
  CHECK(home.entries() == 2);
}

TEST_CASE("a file is replaced as a whole, and keeps its mode and its owner") {
  const folder home;
  home.write("file", "old", 0604);
  const bool is_root = ::geteuid() == 0;
  if (is_root)
    REQUIRE(::chown((home / "file").c_str(), 1234, 4321) == 0);
  const auto before = home.state("file");
  const descriptor reader{::open((home / "file").c_str(), O_RDONLY | O_CLOEXEC)};
  REQUIRE(write_outputs({{home / "file", "new"}}));
  const auto after = home.state("file");
  CHECK(home.text("file") == "new");
  CHECK(after.st_ino != before.st_ino);
  CHECK(home.mode("file") == 0604);
  CHECK(after.st_uid == before.st_uid);
  CHECK(after.st_gid == before.st_gid);
  std::array<std::byte, 9> bytes{};
  CHECK(*read_some(reader, bytes, "file") == 3); // An open file stays as it is.
  CHECK(std::to_integer<char>(bytes[0]) == 'o');
}

TEST_CASE("a link is followed, also one that dangles, and stays a link") {
  const folder home;
  fs::create_directory(home / "sub");
  home.write("sub/file", "old", 0640);
  fs::create_symlink("sub/file", home / "direct");
  fs::create_symlink(home / "direct", home / "chain");
  fs::create_symlink("sub/fresh", home / "dangling");
  fs::create_symlink("sub", home / "link-to-sub");
  fs::create_symlink("../sub/file", home / "sub/back");
  for (const std::string name : {"direct", "chain", "dangling", "link-to-sub/file", "sub/back"}) {
    CAPTURE(name);
    REQUIRE(check_output(home / name));
    REQUIRE(write_outputs({{home / name, name}}));
    CHECK(home.text(name) == name);
  }
  CHECK(home.mode("sub/file") == 0640);
  CHECK(home.text("sub/fresh") == "dangling");
  for (const std::string name : {"direct", "chain", "dangling", "link-to-sub", "sub/back"})
    CHECK(fs::is_symlink(home / name));
}

TEST_CASE("what cannot be written is refused with its reason and the end of its link") {
  const folder home;
  fs::create_directory(home / "folder");
  fs::create_symlink("folder", home / "to-folder");
  fs::create_symlink("none/file", home / "dangling");
  fs::create_symlink("circle", home / "circle");
  const auto cannot = [&](const std::string& name) {
    return "cannot write " + (home / name).string();
  };
  CHECK(refusal(home / "folder") == cannot("folder") + ": it is a directory");
  CHECK(refusal(home / "to-folder")
        == cannot("to-folder") + ", a link to " + (home / "folder").string()
             + ": it is a directory");
  CHECK(refusal(home / "dangling")
        == cannot("dangling") + ", a link to " + (home / "none/file").string()
             + ": No such file or directory");
  CHECK(refusal(home / "circle") == cannot("circle") + ": Too many levels of symbolic links");
  CHECK(refusal(home / "none/file") == cannot("none/file") + ": No such file or directory");
  CHECK(refusal(home / "none/") == cannot("none/") + ": No such file or directory");
  CHECK(refusal("") == "cannot write : No such file or directory");
  const std::string long_name(300, 'x');
  CHECK(refusal(home / long_name) == cannot(long_name) + ": File name too long");
  const descriptor socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_un where{AF_UNIX, {}};
  REQUIRE((home / "socket").native().copy(where.sun_path, sizeof where.sun_path - 1) > 0);
  REQUIRE(::bind(socket.get(), reinterpret_cast<sockaddr*>(&where), sizeof where) == 0);
  CHECK(refusal(home / "socket") == cannot("socket") + ": it is a socket");
  CHECK(home.entries() == 5);
}

TEST_CASE("a file with another name, or in a folder that takes no file, is written in place") {
  const folder home;
  home.write("one", "old text");
  fs::create_hard_link(home / "one", home / "two");
  REQUIRE(write_outputs({{home / "one", "new"}}));
  CHECK(home.text("two") == "new");
  // With its suffix the temporary name would be too long, as on a system of encrypted names.
  const std::string long_name(250, 'x');
  REQUIRE(descriptor{::open((home / long_name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644)});
  REQUIRE(check_output(home / long_name));
  REQUIRE(write_outputs({{home / long_name, "new"}}));
  CHECK(home.text(long_name) == "new");
}

TEST_CASE("an error before the first replacement leaves all old files") {
  const folder home;
  home.write("one", "old");
  fs::create_directory(home / "folder");
  CHECK_FALSE(write_outputs({{home / "one", "new"}, {home / "folder", "new"}}));
  CHECK(home.text("one") == "old");
  CHECK(home.entries() == 2);
}

TEST_CASE("a pipe takes the whole text, however slowly it is read") {
  const folder home;
  REQUIRE(::mkfifo((home / "pipe").c_str(), 0600) == 0);
  fs::create_symlink("pipe", home / "link");
  REQUIRE(check_output(home / "link")); // It does not wait for a reader.
  const std::string text(300'000, 'x');
  auto reader = std::async(std::launch::async, [&] { return *read_file(home / "pipe", 1 << 20); });
  CHECK(write_outputs({{home / "link", text}}));
  CHECK(reader.get() == text);
  CHECK(fs::is_fifo(home / "pipe"));
}

TEST_CASE("a pipe that is not read ends the wait and not the process") {
  const folder home;
  const auto pipe = home / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(write_outputs({{pipe, "text"}}, 20ms).error().text
        == "cannot write " + pipe.string() + ": no process reads it");
  descriptor reader{::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
  CHECK(write_outputs({{pipe, std::string(1 << 20, 'x')}}, 20ms).error().text
        == "cannot write " + pipe.string() + ": its reader takes nothing");
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  const open_as_55 writer{ends[1]};
  ::close(ends[0]);
  ::close(ends[1]);
  CHECK(write_outputs({{"/dev/fd/55", "text"}}).error().text
        == "cannot write /dev/fd/55: Broken pipe");
}

TEST_CASE("a device is written through, and outputs may share it") {
  const folder home;
  fs::create_symlink("/dev/null", home / "null");
  fs::create_symlink("/dev/full", home / "full");
  for (const auto& path : {home / "null", fs::path{"/dev/null"}}) {
    CHECK(check_output(path));
    CHECK(is_written_through(path));
    CHECK(write_outputs({{path, "text"}}));
  }
  CHECK(write_outputs({{home / "full", "text"}}).error().text
        == "cannot write " + (home / "full").string()
             + ", a link to /dev/full: No space left on device");
  CHECK(fs::is_symlink(home / "null"));
  CHECK_FALSE(is_written_through(home / "file"));
}

TEST_CASE("an open file of the process goes on where it is") {
  const folder home;
  const auto file = home / "file";
  const descriptor opened{::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644)};
  const open_as_55 output{opened.get()};
  REQUIRE(write_all(opened, std::as_bytes(std::span{std::string_view{"before "}}), file));
  fs::create_symlink("/dev/fd/55", home / "link");
  REQUIRE(check_output(home / "link"));
  REQUIRE(write_outputs({{home / "link", "text "}}));
  REQUIRE(write_all(opened, std::as_bytes(std::span{std::string_view{"after"}}), file));
  CHECK(home.text("file") == "before text after");
  const descriptor reader{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  const open_as_55 input{reader.get()};
  CHECK(check_output("/dev/fd/55").error().text.ends_with(": it is open for reading only"));
  CHECK(check_output("/dev/fd/56").error().text.ends_with(": No such file or directory"));
}

TEST_CASE("a file that cannot be appended to is named") {
  const folder home;
  const auto none = appended_file::open(home / "no" / "file");
  REQUIRE_FALSE(none);
  CHECK(none.error().code == errc::io_failed);
  CHECK(none.error().text.find("no/file") != std::string::npos);
  auto full = appended_file::open("/dev/full");
  REQUIRE(full);
  CHECK(full->write("line\n").error()
        == failure{errc::io_failed, "cannot write /dev/full: No space left on device"});
}

TEST_CASE("lines are appended behind a link, and to a pipe as long as it takes them") {
  const folder home;
  home.write("file", "old\n");
  fs::create_symlink("file", home / "link");
  auto log = appended_file::open(home / "link");
  REQUIRE(log);
  CHECK(log->write("new\n"));
  CHECK(home.text("file") == "old\nnew\n");
  const auto pipe = home / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(appended_file::open(pipe, 0ms).error().text
        == "cannot write " + pipe.string() + ": no process reads it");
  const descriptor reader{::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
  auto lines = appended_file::open(pipe);
  REQUIRE(lines);
  const std::string line(1000, 'x');
  auto written = lines->write(line);
  for (int i = 0; written && i < 1000; ++i)
    written = lines->write(line);
  CHECK(written.error().text == "cannot write " + pipe.string() + ": its reader takes nothing");
}

} // namespace output_file_test
