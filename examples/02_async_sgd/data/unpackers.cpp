// Wraps the three libraries behind packing.hpp. Each library checks its format's checksums.
#include "examples/02_async_sgd/data/packing.hpp"

#include <algorithm>
#include <bzlib.h>
#include <limits>
#include <lzma.h>
#include <zlib.h>

using troupe::errc;
using troupe::failure;
using troupe::result;

namespace async_sgd {

namespace {

/// The libraries count in 32 bits.
constexpr std::size_t unpack_piece_max = 1u << 30;

failure damaged_stream() { return {errc::damaged, "compressed data are damaged"}; }
failure no_unpack_memory() { return {errc::io_failed, "not enough memory to unpack"}; }

unsigned int piece_of(std::size_t bytes) {
  return static_cast<unsigned int>(std::min(bytes, unpack_piece_max));
}

class gzip_unpacker : public unpacker {
public:
  ~gzip_unpacker() override { inflateEnd(&stream_); }

  result<void> begin() {
    constexpr int gzip_window = 15 + 16; // The largest window, with gzip's header and checksums.
    if (inflateInit2(&stream_, gzip_window) != Z_OK)
      return no_unpack_memory();
    return {};
  }

  result<progress> unpack(std::span<const std::uint8_t> in, std::span<std::uint8_t> out) override {
    const unsigned in_bytes = piece_of(in.size()), out_bytes = piece_of(out.size());
    stream_.next_in = const_cast<Bytef*>(in.data());
    stream_.avail_in = in_bytes;
    stream_.next_out = out.data();
    stream_.avail_out = out_bytes;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    if (code == Z_MEM_ERROR)
      return no_unpack_memory();
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
      return damaged_stream();
    return progress{in_bytes - stream_.avail_in, out_bytes - stream_.avail_out,
                    code == Z_STREAM_END};
  }

  result<void> restart() override {
    if (inflateReset(&stream_) != Z_OK)
      return no_unpack_memory();
    return {};
  }

private:
  z_stream stream_ = {};
};

class bzip2_unpacker : public unpacker {
public:
  ~bzip2_unpacker() override { BZ2_bzDecompressEnd(&stream_); }

  result<void> begin() {
    if (BZ2_bzDecompressInit(&stream_, 0, 0) != BZ_OK)
      return no_unpack_memory();
    return {};
  }

  result<progress> unpack(std::span<const std::uint8_t> in, std::span<std::uint8_t> out) override {
    const unsigned in_bytes = piece_of(in.size()), out_bytes = piece_of(out.size());
    stream_.next_in = reinterpret_cast<char*>(const_cast<std::uint8_t*>(in.data()));
    stream_.avail_in = in_bytes;
    stream_.next_out = reinterpret_cast<char*>(out.data());
    stream_.avail_out = out_bytes;
    const int code = BZ2_bzDecompress(&stream_);
    if (code == BZ_MEM_ERROR)
      return no_unpack_memory();
    if (code != BZ_OK && code != BZ_STREAM_END)
      return damaged_stream();
    return progress{in_bytes - stream_.avail_in, out_bytes - stream_.avail_out,
                    code == BZ_STREAM_END};
  }

  result<void> restart() override {
    BZ2_bzDecompressEnd(&stream_);
    stream_ = {};
    return begin();
  }

private:
  bz_stream stream_ = {};
};

class xz_unpacker : public unpacker {
public:
  ~xz_unpacker() override { lzma_end(&stream_); }

  result<void> begin() {
    // xz -9 needs 65 MiB; a file's header may ask for 4 GiB.
    constexpr std::uint64_t memory_max = std::uint64_t{1} << 30;
    if (lzma_stream_decoder(&stream_, memory_max, LZMA_TELL_UNSUPPORTED_CHECK) != LZMA_OK)
      return no_unpack_memory();
    return {};
  }

  result<progress> unpack(std::span<const std::uint8_t> in, std::span<std::uint8_t> out) override {
    stream_.next_in = in.data();
    stream_.avail_in = in.size();
    stream_.next_out = out.data();
    stream_.avail_out = out.size();
    const lzma_ret code = lzma_code(&stream_, LZMA_RUN);
    if (code == LZMA_MEM_ERROR)
      return no_unpack_memory();
    if (code == LZMA_MEMLIMIT_ERROR)
      return {errc::io_failed, "unpacking needs more than 1 GiB of memory"};
    if (code == LZMA_UNSUPPORTED_CHECK)
      return {errc::damaged, "compressed data have a checksum of an unknown kind"};
    if (code != LZMA_OK && code != LZMA_STREAM_END && code != LZMA_BUF_ERROR)
      return damaged_stream();
    return progress{in.size() - stream_.avail_in, out.size() - stream_.avail_out,
                    code == LZMA_STREAM_END};
  }

  result<void> restart() override { return begin(); }

private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
};

template <class Kind>
result<std::unique_ptr<unpacker>> begun() {
  auto made = std::make_unique<Kind>();
  if (auto ready = made->begin(); !ready)
    return ready.error();
  return std::unique_ptr<unpacker>{std::move(made)};
}

} // namespace

result<std::unique_ptr<unpacker>> make_unpacker(packing kind) {
  switch (kind) {
  case packing::bzip2: return begun<bzip2_unpacker>();
  case packing::xz: return begun<xz_unpacker>();
  default: return begun<gzip_unpacker>();
  }
}

} // namespace async_sgd
