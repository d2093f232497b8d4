// Reads IDX files: big-endian u32 magic (2051 images, 2049 labels), count, for images rows and
// columns, then bytes.
#include "examples/02_async_sgd/data/input_file.hpp"
#include "examples/02_async_sgd/data/readers.hpp"
#include "examples/02_async_sgd/data/remarks.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <span>

using troupe::errc;
using troupe::failure;
using troupe::result;

namespace async_sgd {

namespace {

constexpr std::uint32_t magic_images = 2051, magic_labels = 2049;
constexpr std::uint64_t first_room = 64u << 20; ///< Bytes of the first allocation.

struct idx_file {
  std::string path;
  std::uint64_t count = 0;
  std::uint32_t height = 1, width = 1;
  std::unique_ptr<std::uint8_t[]> bytes;

  std::uint64_t bytes_each() const { return std::uint64_t{height} * width; }
};

failure bad_file(const std::string& what, const std::string& path) {
  return {errc::malformed, what + ": " + path};
}

/// Finds DIRECTORY/train-images-idx3-ubyte and its like, packed or not. Some copies have a dot in
/// the name: train-images.idx3-ubyte.
result<std::string> find_file(const std::string& directory, const std::string& what,
                              const std::string& type) {
  for (const char* separator : {"-", "."})
    for (const char* ending : {"", ".gz", ".bz2", ".xz"}) {
      std::string path = directory + "/" + what + separator + type + ending;
      std::error_code ignored;
      if (std::filesystem::exists(path, ignored))
        return path;
    }
  return {errc::io_failed,
          "no such file: " + directory + "/" + what + "-" + type + "[.gz|.bz2|.xz]"};
}

/// Returns the big-endian u32 at bytes[i].
std::uint32_t word_at(std::span<const std::uint8_t> bytes, std::size_t i) {
  return std::uint32_t{bytes[i]} << 24 | std::uint32_t{bytes[i + 1]} << 16
         | std::uint32_t{bytes[i + 2]} << 8 | bytes[i + 3];
}

/// Reads the values behind the header, and checks that the file ends there. A header may promise
/// more than the file or the memory holds, so memory grows with the bytes that were read. Files
/// above `first_room` need up to twice their values' memory for a moment.
result<void> read_values(input_file& file, std::size_t header_size, idx_file& to) {
  const std::uint64_t size = to.count * to.bytes_each();
  for (std::uint64_t done = 0, room = std::min(size, first_room); done < size;
       room = std::min(size, 2 * room)) {
    auto larger = std::make_unique_for_overwrite<std::uint8_t[]>(room);
    std::copy_n(to.bytes.get(), done, larger.get());
    to.bytes = std::move(larger);
    const auto got = file.read({to.bytes.get() + done, room - done});
    if (!got)
      return got.error();
    done += *got;
    if (done < room)
      return bad_file("the file ends at offset " + std::to_string(header_size + done) + ", "
                        + std::to_string(size - done) + " bytes too early",
                      to.path);
  }
  std::uint8_t next = 0;
  const auto more = file.read({&next, 1});
  if (!more)
    return more.error();
  if (*more != 0)
    return bad_file("bytes follow the last item at offset " + std::to_string(header_size + size),
                    to.path);
  return {};
}

result<idx_file> read_idx(const std::string& path, std::uint32_t magic) {
  auto file = input_file::open(path);
  if (!file)
    return file.error();
  std::array<std::uint8_t, 16> header{};
  const std::size_t header_size = magic == magic_images ? 16 : 8;
  const auto got = file->read({header.data(), header_size});
  if (!got)
    return got.error();
  if (*got == 0)
    return bad_file("the file is empty", path);
  if (*got >= 4 && word_at(header, 0) != magic)
    return bad_file("magic number " + std::to_string(word_at(header, 0))
                      + " at offset 0 instead of " + std::to_string(magic),
                    path);
  if (*got < header_size)
    return bad_file("the file ends at offset " + std::to_string(*got) + ", within its header",
                    path);
  idx_file made{path, word_at(header, 4), 1, 1, nullptr};
  if (magic == magic_images) {
    made.height = word_at(header, 8);
    made.width = word_at(header, 12);
  }
  const auto sizes = "a header with impossible sizes, " + std::to_string(made.count) + " of "
                     + std::to_string(made.height) + " x " + std::to_string(made.width);
  if (made.count == 0 || made.bytes_each() == 0)
    return bad_file(sizes + ", which is nothing", path);
  // Below these limits, sizes neither overflow nor exhaust the address space.
  if (made.bytes_each() >> 24 || (made.count * made.bytes_each()) >> 36)
    return bad_file(sizes + ": the limits are 2^24 bytes an item and 2^36 in all", path);
  if (auto values = read_values(*file, header_size, made); !values)
    return values.error();
  return made;
}

struct idx_part {
  idx_file images;
  idx_file labels;
};

result<idx_part> read_part(const std::string& directory, const std::string& prefix) {
  const auto labels_path = find_file(directory, prefix + "-labels", "idx1-ubyte");
  if (!labels_path)
    return labels_path.error();
  auto labels = read_idx(*labels_path, magic_labels);
  if (!labels)
    return labels.error();
  const auto images_path = find_file(directory, prefix + "-images", "idx3-ubyte");
  if (!images_path)
    return images_path.error();
  auto images = read_idx(*images_path, magic_images);
  if (!images)
    return images.error();
  if (images->count != labels->count)
    return bad_file(std::to_string(images->count) + " images but " + std::to_string(labels->count)
                      + " labels",
                    images->path);
  return idx_part{*std::move(images), *std::move(labels)};
}

/// Counts the labels of each class that occurs.
std::vector<class_count> count_labels(const idx_file& labels) {
  std::array<std::uint64_t, 256> rows{};
  for (const std::uint8_t label : std::span{labels.bytes.get(), labels.count})
    ++rows[label];
  std::vector<class_count> counts;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i] > 0)
      counts.push_back({std::to_string(i), rows[i]});
  return counts;
}

void remark_images(const idx_file& images, std::span<const class_count> classes,
                   std::vector<std::string>& remarks) {
  remarks.push_back("read " + images.path + ": " + count_of(images.count, "image") + " of "
                    + std::to_string(images.height) + " x " + std::to_string(images.width) + ", "
                    + describe_classes(classes));
}

samples to_samples(idx_part part) {
  samples made;
  made.labels.assign(part.labels.bytes.get(), part.labels.bytes.get() + part.labels.count);
  made.rows = byte_rows{std::move(part.images.bytes)};
  return made;
}

} // namespace

result<dataset> load_mnist(const std::string& directory) {
  auto train = read_part(directory, "train");
  if (!train)
    return train.error();
  auto test = read_part(directory, "t10k");
  if (!test)
    return test.error();
  if (train->images.height != test->images.height || train->images.width != test->images.width)
    return bad_file("images of another size than the training images", test->images.path);
  const std::string test_labels = test->labels.path;
  dataset data;
  for (const auto* part : {&*train, &*test})
    data.files.insert(data.files.end(), {part->images.path, part->labels.path});
  data.features = static_cast<std::uint32_t>(train->images.bytes_each());
  const auto train_classes = count_labels(train->labels);
  remark_images(train->images, train_classes, data.remarks);
  remark_images(test->images, count_labels(test->labels), data.remarks);
  remark_single_rows(train->images.path, train_classes, data.remarks);
  data.train = to_samples(*std::move(train));
  data.test = to_samples(*std::move(test));
  data.classes = std::max(2u, *std::ranges::max_element(data.train.labels) + 1);
  std::array<bool, 256> is_known{};
  for (const auto label : data.train.labels)
    is_known[label] = true;
  for (std::size_t i = 0; i < data.test.labels.size(); ++i)
    if (!is_known[data.test.labels[i]])
      return bad_file("label " + std::to_string(data.test.labels[i]) + " at offset "
                        + std::to_string(8 + i) + " does not occur in the training file",
                      test_labels);
  return data;
}

} // namespace async_sgd
