#include "examples/02_async_sgd/data/input_file.hpp"

#include "storage/file_content.hpp"
#include "storage/regular_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

using troupe::errc;
using troupe::failure;
using troupe::result;
using troupe::storage::file_head_bytes;

namespace async_sgd {

namespace {

constexpr std::size_t input_buffer_bytes = 1u << 18;

std::string_view text_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

} // namespace

input_file::handle::~handle() {
  if (number_ >= 0)
    ::close(number_);
}

result<input_file> input_file::open(const std::string& path) {
  if (const auto other = troupe::storage::other_than_file(path))
    return {errc::io_failed, "cannot read " + path + ": it is " + *other
                               + ", but every process of a job reads the data by itself: "
                                 "name a regular file"};
  // O_NONBLOCK: open() must not wait if a pipe has taken the file's place.
  const int number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (number < 0)
    return {errc::io_failed, "cannot open " + path + ": " + std::strerror(errno)};
  input_file file(path, number);
  struct stat about {};
  const auto memory = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES))
                      * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  if (fstat(number, &about) != 0)
    return {errc::io_failed, "cannot read " + path + ": " + std::strerror(errno)};
  if (static_cast<std::uint64_t>(about.st_size) > memory)
    return {errc::io_failed, "cannot read " + path + ": it has "
                               + std::to_string(about.st_size >> 30) + " GiB, and this machine "
                               + std::to_string(memory >> 30) + " GiB of memory"};
  file.buffer_.resize(
    std::clamp(static_cast<std::size_t>(about.st_size), file_head_bytes, input_buffer_bytes));
  if (auto filled = file.fill(file_head_bytes); !filled)
    return filled.error();
  const std::string_view head = text_of(file.buffered());
  file.packing_ = packing_of(head);
  if (file.packing_ != packing::none) {
    auto made = make_unpacker(file.packing_);
    if (!made)
      return file.with_path(made.error());
    file.unpacker_ = *std::move(made);
  } else if (const auto content = troupe::storage::content_of(head)) {
    const auto choice = content->is_packed() ? ", or pack it with gzip, bzip2 or xz" : "";
    return {errc::malformed, path + " is " + content->text() + choice};
  }
  return file;
}

failure input_file::with_path(failure why) const {
  why.text += " in " + path_;
  return why;
}

result<std::size_t> input_file::read_raw(std::span<std::uint8_t> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const auto got = ::read(file_.get(), out.data() + done, out.size() - done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return {errc::io_failed, "cannot read " + path_ + ": " + std::strerror(errno)};
    if (got == 0) {
      at_end_ = true;
      break;
    }
    done += static_cast<std::size_t>(got);
  }
  return done;
}

result<void> input_file::fill(std::size_t bytes) {
  if (last_ - first_ >= bytes || at_end_)
    return {};
  std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(first_),
            buffer_.begin() + static_cast<std::ptrdiff_t>(last_), buffer_.begin());
  last_ -= std::exchange(first_, 0);
  const auto got = read_raw(std::span{buffer_}.subspan(last_));
  if (!got)
    return got.error();
  last_ += *got;
  return {};
}

std::span<const std::uint8_t> input_file::buffered() const {
  return std::span{buffer_}.subspan(first_, last_ - first_);
}

result<std::size_t> input_file::take_plain(std::span<std::uint8_t> out) {
  if (first_ == last_)
    return read_raw(out);
  const std::size_t count = std::min(out.size(), last_ - first_);
  std::memcpy(out.data(), buffer_.data() + first_, count);
  first_ += count;
  return count;
}

result<bool> input_file::begin_stream() {
  // Some programs fill the last block of a tape or disk with zeros.
  do {
    if (auto filled = fill(1); !filled)
      return filled.error();
    while (first_ < last_ && buffer_[first_] == 0)
      ++first_;
  } while (first_ == last_ && !at_end_);
  if (first_ == last_)
    return false;
  if (auto filled = fill(file_head_bytes); !filled)
    return filled.error();
  if (packing_of(text_of(buffered())) != packing_)
    return with_path({errc::damaged, "other bytes follow the compressed data"});
  if (auto ready = unpacker_->restart(); !ready)
    return with_path(ready.error());
  between_streams_ = false;
  return true;
}

result<std::size_t> input_file::take_unpacked(std::span<std::uint8_t> out) {
  for (;;) {
    if (between_streams_) {
      const auto more = begin_stream();
      if (!more)
        return more.error();
      if (!*more)
        return std::size_t{0};
    }
    if (auto filled = fill(1); !filled)
      return filled.error();
    const auto step = unpacker_->unpack(buffered(), out);
    if (!step)
      return with_path(step.error());
    first_ += step->taken;
    between_streams_ = step->at_end;
    if (step->made > 0)
      return step->made;
    if (step->taken == 0 && !step->at_end)
      return with_path({errc::damaged, first_ == last_ ? "compressed data end too early"
                                                       : "compressed data are damaged"});
  }
}

result<std::size_t> input_file::read(std::span<std::uint8_t> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const auto rest = out.subspan(done);
    const auto got = unpacker_ ? take_unpacked(rest) : take_plain(rest);
    if (!got)
      return got.error();
    if (*got == 0)
      break;
    done += *got;
  }
  return done;
}

result<std::string> read_bytes(const std::string& path) {
  auto file = input_file::open(path);
  if (!file)
    return file.error();
  std::string text;
  for (std::size_t size = 0, step = 1u << 20;; step = text.size()) {
    text.resize(size + step);
    const auto got = file->read({reinterpret_cast<std::uint8_t*>(text.data()) + size, step});
    if (!got)
      return got.error();
    size += *got;
    if (*got < step) {
      text.resize(size);
      return text;
    }
  }
}

} // namespace async_sgd
