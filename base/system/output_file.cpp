#include "base/system/output_file.hpp"

#include "base/clock.hpp"
#include "base/number_from.hpp"
#include "base/system/draw_random.hpp"
#include "base/system/file.hpp"
#include "base/system/links.hpp"
#include "base/system/without_signals.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <fcntl.h>
#include <poll.h>
#include <span>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace troupe {

namespace fs = std::filesystem;

namespace {

using std::chrono::milliseconds;

constexpr milliseconds reader_poll{10};

/// The place to which a user's name leads.
struct place {
  fs::path named; ///< By the user.
  fs::path path;  ///< Behind all links.
  /// Number of an open file of this process: /dev/stdout and the shell's `>(...)`.
  std::optional<int> own_descriptor = {};
  bool through = false;
  std::optional<struct stat> old = {}; ///< The regular file that is there.

  failure cannot_write(const std::string& why) const {
    const auto link = named == path ? "" : ", a link to " + path.string();
    return {errc::io_failed, "cannot write " + named.string() + link + ": " + why};
  }
  failure cannot_write(int problem) const {
    return cannot_write(std::generic_category().message(problem));
  }
};

/// Returns N of /proc/self/fd/N.
std::optional<int> own_descriptor(const fs::path& open_file) {
  std::error_code absent;
  if (!fs::equivalent(open_file.parent_path(), "/proc/self/fd", absent))
    return std::nullopt;
  return number_from<int>(open_file.filename().native());
}

result<place> find(const fs::path& named) {
  place there{.named = named, .path = named};
  const auto end = follow_links(named);
  if (!end)
    return there.cannot_write(ELOOP);
  there.path = end->path;
  if (end->is_open_file) {
    there.own_descriptor = own_descriptor(end->path);
    there.through = true;
  }
  struct stat now {};
  if (::stat(there.path.c_str(), &now) != 0) {
    if (errno != ENOENT || there.through || !there.path.has_filename())
      return there.cannot_write(errno);
    return there;
  }
  if (there.through)
    return there;
  switch (now.st_mode & S_IFMT) {
  case S_IFREG: there.old = now; return there;
  case S_IFIFO:
  case S_IFCHR: there.through = true; return there;
  case S_IFDIR: return there.cannot_write("it is a directory");
  case S_IFSOCK: return there.cannot_write("it is a socket");
  default: return there.cannot_write("it is a disk");
  }
}

/// Opens a pipe, a device or an open file. Tries a pipe without a reader again for `patience`.
result<descriptor> open_through(const place& there, milliseconds patience) {
  if (const auto own = there.own_descriptor) {
    std::fflush(stdout); // Lines that the program has printed come first.
    descriptor copy{::fcntl(*own, F_DUPFD_CLOEXEC, 0)};
    if (!copy)
      return there.cannot_write(errno);
    return copy;
  }
  const auto deadline = steady_now() + patience;
  while (true) {
    descriptor opened{
      ::open(there.path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)};
    if (opened)
      return opened;
    if (errno == EINTR)
      continue;
    if (errno != ENXIO)
      return there.cannot_write(errno);
    if (steady_now() >= deadline)
      return there.cannot_write("no process reads it");
    // No event tells of a reader: its open() waits for this one.
    ::poll(nullptr, 0, static_cast<int>(reader_poll.count()));
  }
}

/// Writes a part of the bytes, at most as many as a ready pipe takes at once; returns their number.
/// 0: the reader took no byte for `patience`.
ssize_t write_part(int file, std::string_view bytes, milliseconds patience) {
  const auto deadline = steady_now() + patience;
  while (true) {
    const auto left = std::max(deadline - steady_now(), time_point{0});
    pollfd state{file, POLLOUT, 0};
    const int ready =
      ::poll(&state, 1, static_cast<int>(std::chrono::ceil<milliseconds>(left).count()));
    if (ready == 0)
      return 0;
    const auto written =
      ready < 0 ? -1 : ::write(file, bytes.data(), std::min<std::size_t>(bytes.size(), PIPE_BUF));
    if (written >= 0 || (errno != EINTR && errno != EAGAIN))
      return written;
  }
}

/// Writes to a file that may be a pipe. Removes the written part from `bytes`; returns the reason
/// if a part is left.
std::optional<std::string> write_through(int file, std::string_view& bytes, milliseconds patience) {
  const without_signals guard{SIGPIPE};
  while (!bytes.empty()) {
    const auto written = write_part(file, bytes, patience);
    if (written == 0)
      return "its reader takes nothing";
    if (written < 0)
      return std::generic_category().message(errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return std::nullopt;
}

result<void> write_through(const place& there, std::string_view text, milliseconds patience) {
  const auto file = open_through(there, patience);
  if (!file)
    return file.error();
  if (const auto problem = write_through(file->get(), text, patience))
    return there.cannot_write(*problem);
  return {};
}

/// Writes the text to a new file, syncs it and sets its mode if there is one. Returns 0, or the
/// system's number of the error.
int fill(const descriptor& file, std::string_view text, std::optional<mode_t> mode) {
  if (const int problem = write_bytes(file, std::as_bytes(std::span{text})); problem != 0)
    return problem;
  if (const int problem = sync_bytes(file); problem != 0)
    return problem;
  return !mode || ::fchmod(file.get(), *mode) == 0 ? 0 : errno;
}

/// An output on its way: all of its text under a temporary name, or none yet.
struct draft {
  place to;
  const output_text* output = nullptr;
  fs::path temporary; ///< Empty: the output is written to `to` without one.
};

/// Gives the new file the owner of the old one; false if that is not allowed.
bool keeps_owner(int file, const struct stat& old) {
  struct stat fresh {};
  if (::fstat(file, &fresh) != 0)
    return false;
  return (fresh.st_uid == old.st_uid && fresh.st_gid == old.st_gid)
         || ::fchown(file, old.st_uid, old.st_gid) == 0;
}

bool may_be_writable_in_place(int problem) {
  return problem == EACCES || problem == EPERM || problem == EROFS || problem == ENAMETOOLONG;
}

/// Makes an empty file beside `there`, whose mode is 0600 if it gets another one later.
descriptor make_beside(const place& there, bool gets_mode, fs::path& name) {
  constexpr int how = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  name = there.path;
  name += "." + std::to_string(draw_random());
  return descriptor{::open(name.c_str(), how, gets_mode ? 0600 : 0666)};
}

result<draft> write_beside(const output_text& output) {
  auto there = find(output.path);
  if (!there)
    return there.error();
  draft made{*std::move(there), &output, {}};
  const auto& old = made.to.old;
  if (made.to.through)
    return made;
  if (old && ::access(made.to.path.c_str(), W_OK) != 0)
    return made.to.cannot_write(errno);
  if (old && old->st_nlink > 1)
    return made;
  fs::path name;
  const auto file = make_beside(made.to, old || output.mode, name);
  if (!file) {
    if (old && may_be_writable_in_place(errno))
      return made;
    return made.to.cannot_write(errno);
  }
  const auto mode = output.mode ? output.mode
                    : old       ? std::optional{old->st_mode & 07777}
                                : std::nullopt;
  if (old && !keeps_owner(file.get(), *old)) {
    ::unlink(name.c_str());
    return made;
  }
  if (const int problem = fill(file, output.text, mode); problem != 0) {
    ::unlink(name.c_str());
    return made.to.cannot_write(problem);
  }
  made.temporary = std::move(name);
  return made;
}

result<void> write_in_place(const draft& made) {
  const descriptor file{::open(made.to.path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC)};
  if (const int problem = file ? fill(file, made.output->text, made.output->mode) : errno;
      problem != 0)
    return made.to.cannot_write(problem);
  return {};
}

result<void> put_in_place(const draft& made, milliseconds patience) {
  if (made.to.through)
    return write_through(made.to, made.output->text, patience);
  if (made.temporary.empty())
    return write_in_place(made);
  const auto& path = made.to.path;
  if (::rename(made.temporary.c_str(), path.c_str()) == 0) {
    (void)sync_directory(path.has_parent_path() ? path.parent_path()
                                                : "."); // It may be unreadable.
    return {};
  }
  const int problem = errno;
  ::unlink(made.temporary.c_str());
  if (problem == EBUSY) // A mount of this one file, as containers have.
    return write_in_place(made);
  return made.to.cannot_write(problem);
}

} // namespace

bool is_written_through(const fs::path& path) {
  const auto there = find(path);
  return there && there->through;
}

result<void> check_output(const fs::path& path) {
  const auto there = find(path);
  if (!there)
    return there.error();
  if (const auto own = there->own_descriptor) {
    const int how = ::fcntl(*own, F_GETFL);
    if (how < 0)
      return there->cannot_write(errno);
    if ((how & O_ACCMODE) == O_RDONLY)
      return there->cannot_write("it is open for reading only");
    return {};
  }
  if (there->through || there->old) {
    if (::access(there->path.c_str(), W_OK) != 0)
      return there->cannot_write(errno);
    return {};
  }
  fs::path name;
  if (!make_beside(*there, true, name))
    return there->cannot_write(errno);
  ::unlink(name.c_str());
  return {};
}

result<void> write_outputs(const std::vector<output_text>& files, milliseconds patience) {
  std::vector<draft> drafts;
  const auto give_up = [&drafts](failure why) -> result<void> {
    for (const auto& each : drafts)
      if (!each.temporary.empty())
        ::unlink(each.temporary.c_str()); // Files already in place no longer have this name.
    return why;
  };
  for (const auto& each : files) {
    auto written = write_beside(each);
    if (!written)
      return give_up(written.error());
    drafts.push_back(*std::move(written));
  }
  for (const auto& each : drafts)
    if (auto done = put_in_place(each, patience); !done)
      return give_up(done.error());
  return {};
}

result<appended_file> appended_file::open(const fs::path& path, milliseconds patience) {
  const auto there = find(path);
  if (!there)
    return there.error();
  if (there->through) {
    auto file = open_through(*there, patience);
    if (!file)
      return file.error();
    return appended_file{path, *std::move(file)};
  }
  if (there->old && ::access(there->path.c_str(), W_OK) != 0)
    return there->cannot_write(errno);
  descriptor file{
    ::open(there->path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0666)};
  if (!file)
    return there->cannot_write(errno);
  return appended_file{path, std::move(file)};
}

result<void> appended_file::write(std::string_view line) {
  constexpr milliseconds at_once{0};
  std::string_view rest = line_is_cut_ ? "\n" : "";
  auto problem = write_through(file_.get(), rest, at_once);
  if (!problem) {
    rest = line;
    problem = write_through(file_.get(), rest, at_once);
    line_is_cut_ = problem && rest.size() < line.size();
  }
  if (problem)
    return {errc::io_failed, "cannot write " + path_.string() + ": " + *problem};
  return {};
}

} // namespace troupe
