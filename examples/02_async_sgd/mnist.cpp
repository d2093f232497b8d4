// IDX: big-endian u32 magic (2051 images, 2049 labels), count, for images rows and columns, then
// bytes.
#include "examples/02_async_sgd/readers.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

using troupe::errc;
using troupe::failure;
using troupe::result;

namespace async_sgd {

namespace {

constexpr std::uint32_t magic_images = 2051, magic_labels = 2049;

struct idx_file {
  std::string path;
  std::uint64_t count = 0;
  std::uint64_t bytes_each = 1;
  std::unique_ptr<std::uint8_t[]> bytes;
};

failure bad_file(const std::string& what, const std::string& path) {
  return {errc::malformed, what + ": " + path};
}

result<std::string> find_file(const std::string& directory, const std::string& name) {
  for (const char* ending : {"", ".gz"}) {
    std::string path = directory + "/" + name + ending;
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored))
      return path;
  }
  return {errc::io_failed, "no such file: " + directory + "/" + name + "[.gz]"};
}

result<idx_file> read_idx(const std::string& directory, const std::string& name,
                          std::uint32_t magic) {
  auto path = find_file(directory, name);
  if (!path)
    return path.error();
  auto file = input_file::open(*path);
  if (!file)
    return file.error();
  std::array<std::uint8_t, 16> header{};
  const std::size_t header_size = magic == magic_images ? 16 : 8;
  const auto got = file->read({header.data(), header_size});
  if (!got)
    return got.error();
  if (*got == 0)
    return bad_file("the file is empty", *path);
  const auto word = [&](std::size_t i) {
    return std::uint32_t{header[i]} << 24 | std::uint32_t{header[i + 1]} << 16
           | std::uint32_t{header[i + 2]} << 8 | header[i + 3];
  };
  if (*got >= 4 && word(0) != magic)
    return bad_file("magic number " + std::to_string(word(0)) + " at offset 0 instead of "
                      + std::to_string(magic),
                    *path);
  if (*got < header_size)
    return bad_file("the file ends at offset " + std::to_string(*got) + ", within its header",
                    *path);
  idx_file result{*path, word(4), 1, nullptr};
  if (magic == magic_images)
    result.bytes_each = std::uint64_t{word(8)} * word(12);
  // Below 2^24 features and 2^36 bytes, sizes neither overflow nor exhaust the address space.
  if (result.count == 0 || result.bytes_each == 0 || result.bytes_each >> 24
      || (result.count * result.bytes_each) >> 36)
    return bad_file("a header with impossible sizes", *path);
  const std::uint64_t size = result.count * result.bytes_each;
  result.bytes = std::make_unique_for_overwrite<std::uint8_t[]>(size);
  const auto body = file->read({result.bytes.get(), size});
  if (!body)
    return body.error();
  if (*body < size)
    return bad_file("the file ends at offset " + std::to_string(header_size + *body) + ", "
                      + std::to_string(size - *body) + " bytes too early",
                    *path);
  const auto more = file->read({header.data(), 1});
  if (!more)
    return more.error();
  if (*more != 0)
    return bad_file("bytes follow the last item at offset " + std::to_string(header_size + size),
                    *path);
  return result;
}

struct idx_part {
  idx_file images;
  idx_file labels;
};

result<idx_part> read_part(const std::string& directory, const std::string& prefix) {
  auto labels = read_idx(directory, prefix + "-labels-idx1-ubyte", magic_labels);
  if (!labels)
    return labels.error();
  auto images = read_idx(directory, prefix + "-images-idx3-ubyte", magic_images);
  if (!images)
    return images.error();
  if (images->count != labels->count)
    return bad_file(std::to_string(images->count) + " images but " + std::to_string(labels->count)
                      + " labels",
                    images->path);
  return idx_part{*std::move(images), *std::move(labels)};
}

samples to_samples(idx_part part) {
  samples result;
  result.labels.assign(part.labels.bytes.get(), part.labels.bytes.get() + part.labels.count);
  result.rows = byte_rows{std::move(part.images.bytes)};
  return result;
}

} // namespace

result<dataset> load_mnist(const std::string& directory) {
  auto train = read_part(directory, "train");
  if (!train)
    return train.error();
  auto test = read_part(directory, "t10k");
  if (!test)
    return test.error();
  if (train->images.bytes_each != test->images.bytes_each)
    return bad_file("images of another size than the training images", test->images.path);
  const std::string test_labels = test->labels.path;
  dataset data;
  data.features = static_cast<std::uint32_t>(train->images.bytes_each);
  data.train = to_samples(*std::move(train));
  data.test = to_samples(*std::move(test));
  data.classes = std::max(2u, *std::ranges::max_element(data.train.labels) + 1);
  for (std::size_t i = 0; i < data.test.labels.size(); ++i)
    if (data.test.labels[i] >= data.classes)
      return bad_file("label " + std::to_string(data.test.labels[i]) + " at offset "
                        + std::to_string(8 + i) + " does not occur in the training file",
                      test_labels);
  return data;
}

} // namespace async_sgd
