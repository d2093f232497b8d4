// Feeds any bytes, plain or packed, to the reader of IDX images and labels. Input: the length of
// the image file, that file, the label file. Both serve for training and for the test.
#include "examples/02_async_sgd/data/readers.hpp"
#include "tests/serialization/fuzz_main.hpp"
#include "tests/storage/temporary_directory.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <span>
#include <string>
#include <variant>

using namespace async_sgd;

namespace {

constexpr std::size_t head_bytes = 2;

void require(bool holds) {
  if (!holds)
    std::abort();
}

/// A directory with the same files as training data and as test data.
class image_directory {
public:
  image_directory() {
    for (const char* ending : {"-images-idx3-ubyte", "-labels-idx1-ubyte"})
      std::filesystem::create_symlink(std::string{"train"} + ending,
                                      folder_.path() / (std::string{"t10k"} + ending));
  }

  troupe::result<dataset> load(std::span<const std::uint8_t> images,
                               std::span<const std::uint8_t> labels) {
    write("train-images-idx3-ubyte", images);
    write("train-labels-idx1-ubyte", labels);
    return load_mnist(folder_.path().string());
  }

private:
  void write(const char* name, std::span<const std::uint8_t> bytes) {
    std::ofstream out{folder_.path() / name, std::ios::binary};
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
    require(out.good());
  }

  troupe::storage::temporary_directory folder_;
};

void check(const troupe::result<dataset>& data) {
  if (!data) {
    const std::string& text = data.error().text;
    require(!text.empty() && text.size() < 2000);
    require(text.find_first_of("\n\r\x1b") == std::string::npos);
    return;
  }
  require(data->train.labels == data->test.labels && !data->train.labels.empty());
  for (const std::uint32_t label : data->train.labels)
    require(label < data->classes);
  const auto& rows = std::get<byte_rows>(data->train.rows);
  const std::span pixels{rows.values.get(), data->train.labels.size() * data->features};
  [[maybe_unused]] static volatile std::uint64_t read; // Sanitizers see each read.
  read = std::accumulate(pixels.begin(), pixels.end(), std::uint64_t{0});
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static image_directory directory;
  if (size < head_bytes)
    return 0;
  const std::span bytes{data + head_bytes, size - head_bytes};
  const std::size_t cut = std::min<std::size_t>(bytes.size(), data[0] + 256u * data[1]);
  check(directory.load(bytes.first(cut), bytes.subspan(cut)));
  return 0;
}

#ifndef TROUPE_FUZZ_REPLAY
  #include <bzlib.h>
  #include <lzma.h>
  #include <zlib.h>

namespace {

using troupe::test::random_source;

void put_word(std::string& to, std::uint32_t word) {
  for (int shift = 24; shift >= 0; shift -= 8)
    to += static_cast<char>(word >> shift);
}

std::string random_bytes(random_source& random, std::size_t count) {
  std::string made(count, '\0');
  for (char& byte : made)
    byte = static_cast<char>(random.below(4));
  return made;
}

std::string gzipped(std::string from) {
  z_stream stream{};
  require(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string made(from.size() + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(from.data());
  stream.avail_in = static_cast<uInt>(from.size());
  stream.next_out = reinterpret_cast<Bytef*>(made.data());
  stream.avail_out = static_cast<uInt>(made.size());
  require(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  made.resize(stream.total_out);
  deflateEnd(&stream);
  return made;
}

std::string bzip2ed(std::string from) {
  std::string made(from.size() + 700, '\0');
  auto size = static_cast<unsigned int>(made.size());
  require(BZ2_bzBuffToBuffCompress(made.data(), &size, from.data(),
                                   static_cast<unsigned int>(from.size()), 1, 0, 0)
          == BZ_OK);
  made.resize(size);
  return made;
}

std::string xzed(const std::string& from) {
  std::string made(lzma_stream_buffer_bound(from.size()), '\0');
  std::size_t size = 0;
  require(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, nullptr,
                                  reinterpret_cast<const std::uint8_t*>(from.data()), from.size(),
                                  reinterpret_cast<std::uint8_t*>(made.data()), &size, made.size())
          == LZMA_OK);
  made.resize(size);
  return made;
}

std::string maybe_packed(random_source& random, std::string file) {
  switch (random.below(24)) { // Unpackers of bzip2 and xz allocate much, so few files get them.
  case 0: return bzip2ed(std::move(file));
  case 1: return xzed(file);
  case 2:
  case 3:
  case 4: return gzipped(std::move(file));
  default: return file;
  }
}

} // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  return troupe::test::mutate_or_make(data, size, max_size, seed, [](auto& random) {
    const auto count = static_cast<std::uint32_t>(1 + random.below(4));
    const auto height = static_cast<std::uint32_t>(1 + random.below(3));
    const auto width = static_cast<std::uint32_t>(1 + random.below(3));
    std::string images, labels;
    for (const std::uint32_t word : {2051u, count, height, width})
      put_word(images, word);
    for (const std::uint32_t word : {2049u, count})
      put_word(labels, word);
    images =
      maybe_packed(random, images + random_bytes(random, std::size_t{count} * height * width));
    labels = maybe_packed(random, labels + random_bytes(random, count));
    std::string made{static_cast<char>(images.size() & 0xff),
                     static_cast<char>(images.size() >> 8)};
    made += images + labels;
    const auto* begin = reinterpret_cast<const std::byte*>(made.data());
    return std::vector<std::byte>{begin, begin + made.size()};
  });
}
#endif
