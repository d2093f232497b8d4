// Files through zlib, which reads plain ones as they are.
#include "examples/02_async_sgd/readers.hpp"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

using troupe::errc;
using troupe::result;

namespace async_sgd {

namespace {

/// Why reading stopped; Z_OK at a proper end.
result<void> check_end(gzFile file, const std::string& path) {
  int code = Z_OK;
  const std::string text = gzerror(file, &code);
  if (code == Z_OK || code == Z_STREAM_END)
    return {};
  if (code == Z_ERRNO)
    return {errc::io_failed, "cannot read " + path + ": " + std::strerror(errno)};
  if (code == Z_BUF_ERROR)
    return {errc::damaged, "compressed data end too early in " + path};
  return {errc::damaged, "compressed data are damaged in " + path};
}

} // namespace

void input_file::closer::operator()(gzFile_s* file) const { gzclose(file); }

result<input_file> input_file::open(const std::string& path) {
  errno = 0;
  gzFile file = gzopen(path.c_str(), "rb");
  if (!file)
    return {errc::io_failed,
            "cannot open " + path + ": " + (errno ? std::strerror(errno) : "out of memory")};
  gzbuffer(file, 1u << 18);
  return input_file(path, file);
}

result<std::size_t> input_file::read(std::span<std::uint8_t> out) {
  constexpr std::size_t piece_max = 1u << 30; // gzread counts in int.
  std::size_t done = 0;
  while (done < out.size()) {
    const auto want = static_cast<unsigned>(std::min(out.size() - done, piece_max));
    const int got = gzread(file_.get(), out.data() + done, want);
    if (got > 0)
      done += static_cast<std::size_t>(got);
    if (got < 0 || static_cast<unsigned>(got) < want) {
      if (auto end = check_end(file_.get(), path_); !end)
        return end.error();
      break;
    }
  }
  return done;
}

} // namespace async_sgd
