#include "storage/detail/npz.hpp"

#include "base/bytes.hpp"
#include "base/quote.hpp"
#include "storage/detail/npy.hpp"
#include "storage/detail/tensor_bytes.hpp"

#include <zip.h>

#include <algorithm>
#include <map>
#include <memory>

namespace troupe::storage::detail {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view npy_suffix = ".npy";
constexpr zip_uint16_t midnight = 0, first_of_january_1980 = 0x0021;

struct discard_archive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct close_member {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};
struct free_source {
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};
using archive_handle = std::unique_ptr<zip_t, discard_archive>;
using member_handle = std::unique_ptr<zip_file_t, close_member>;
using source_handle = std::unique_ptr<zip_source_t, free_source>;

/// Opens the archive in `bytes`; libzip keeps its own reference to it.
archive_handle open_archive(const source_handle& bytes, int flags, zip_error_t& why) {
  if (!bytes)
    return nullptr;
  zip_source_keep(bytes.get());
  archive_handle archive{zip_open_from_source(bytes.get(), flags, &why)};
  if (!archive)
    zip_source_free(bytes.get()); // A failed call leaves the reference to its caller.
  return archive;
}

// -- writing -------------------------------------------------------------------

failure not_written(const std::string& why) {
  return {errc::io_failed, "cannot make a zip: " + why};
}

/// Adds a member of `head` and the tensor's values, which are borrowed until the archive closes.
result<void> add_member(zip_t* archive, const tensor& one, const std::string& head) {
  const std::string name = one.name + std::string{npy_suffix};
  constexpr std::size_t name_bytes_max = 0xffff; // libzip does not check it.
  if (name.size() > name_bytes_max)
    return {errc::invalid_argument, "the name is too long for .npz: tensor " + troupe::quote(name)};
  const std::string_view values = bytes_of_values(one);
  const auto fragment = [](std::string_view part) {
    return zip_buffer_fragment_t{reinterpret_cast<zip_uint8_t*>(const_cast<char*>(part.data())),
                                 part.size()};
  };
  const zip_buffer_fragment_t content[] = {fragment(head), fragment(values)};
  const zip_uint64_t parts = values.empty() ? 1 : 2;
  zip_source_t* const source = zip_source_buffer_fragment(archive, content, parts, 0);
  if (source == nullptr)
    return not_written(zip_strerror(archive));
  const auto index = zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    return not_written(zip_strerror(archive));
  }
  const auto at = static_cast<zip_uint64_t>(index);
  if (zip_set_file_compression(archive, at, ZIP_CM_STORE, 0) != 0
      || zip_file_set_dostime(archive, at, midnight, first_of_january_1980, 0) != 0)
    return not_written(zip_strerror(archive));
  return {};
}

result<std::string> archive_bytes(zip_source_t* source) {
  zip_stat_t stat;
  zip_stat_init(&stat);
  if (zip_source_stat(source, &stat) != 0 || zip_source_open(source) != 0)
    return not_written(zip_error_strerror(zip_source_error(source)));
  std::string bytes(stat.size, '\0');
  const auto read = zip_source_read(source, bytes.data(), bytes.size());
  zip_source_close(source);
  if (read < 0 || static_cast<std::size_t>(read) != bytes.size())
    return not_written(zip_error_strerror(zip_source_error(source)));
  return bytes;
}

// -- reading -------------------------------------------------------------------

/// Returns whether a zip64 directory says that it has more members than fit in the file. libzip
/// allocates memory for as many as it says.
bool claims_too_many_members(std::string_view bytes) {
  constexpr std::size_t tail_bytes = 20 + 22 + 0xffff; // A locator, an end record, a comment.
  constexpr std::size_t count_at = 32, entry_bytes = 46;
  constexpr std::string_view locator = "PK\x06\x07"sv;
  const std::size_t begin = bytes.size() - std::min(bytes.size(), tail_bytes);
  for (auto at = bytes.find(locator, begin); at != bytes.npos; at = bytes.find(locator, at + 1)) {
    byte_reader fields(bytes.substr(at + locator.size()));
    fields.little<std::uint32_t>(); // Disk.
    const auto end_record = fields.little<std::uint64_t>();
    if (end_record > bytes.size() || bytes.size() - end_record < count_at + 8)
      continue;
    byte_reader count(bytes.substr(end_record + count_at));
    if (count.little<std::uint64_t>() > bytes.size() / entry_bytes)
      return true;
  }
  return false;
}

struct member {
  std::string name;
  std::uint64_t index = 0;
  std::uint64_t size = 0;        ///< Bytes of the content, as the directory says.
  std::uint64_t packed_size = 0; ///< Bytes in the archive, as the directory says.
  bool can_unpack = false;       ///< It is not encrypted, and stored or deflated.

  bool is_npy() const { return std::string_view{name}.ends_with(npy_suffix); }
};

result<member> member_at(zip_t* archive, std::uint64_t index) {
  zip_stat_t stat;
  zip_stat_init(&stat);
  const char* const name = zip_get_name(archive, index, ZIP_FL_ENC_RAW);
  if (name == nullptr || zip_stat_index(archive, index, 0, &stat) != 0)
    return {errc::malformed, "a zip member has no name or size"};
  const bool known = stat.comp_method == ZIP_CM_STORE || stat.comp_method == ZIP_CM_DEFLATE;
  return member{name, index, stat.size, stat.comp_size,
                known && stat.encryption_method == ZIP_EM_NONE};
}

/// Appends `bytes` more bytes of the member; false if there are fewer or the stream is damaged.
bool append(zip_file_t* from, std::uint64_t bytes, std::string& to) {
  const std::size_t before = to.size();
  to.resize(before + bytes);
  const auto read = zip_fread(from, to.data() + before, bytes);
  to.resize(before + static_cast<std::size_t>(std::max<zip_int64_t>(read, 0)));
  return to.size() == before + bytes;
}

/// Reads the member up to the end of its .npy header.
result<npy_parts> read_head(zip_file_t* from, std::string& content) {
  // A header describes one array; numpy itself writes less than 64 KiB.
  constexpr std::uint64_t head_bytes_max = 16 << 20;
  const failure cut_off{errc::malformed, "the .npy header ends early"};
  if (!append(from, npy_prefix_bytes, content))
    return cut_off;
  const std::uint64_t head_bytes = npy_head_bytes(content);
  if (head_bytes > head_bytes_max)
    return {errc::malformed, "the .npy header is longer than 16 MiB"};
  if (head_bytes > content.size() && !append(from, head_bytes - content.size(), content))
    return cut_off;
  return parse_npy(content);
}

/// Reads the rest of a member, where libzip compares its checksum. `read` bytes were read before,
/// and `size` is what the directory says.
result<void> check_rest(zip_file_t* from, std::uint64_t read, std::uint64_t size) {
  char rest[4096];
  zip_int64_t got = 0;
  while ((got = zip_fread(from, rest, sizeof rest)) > 0)
    read += static_cast<std::uint64_t>(got);
  if (got < 0 && zip_error_code_zip(zip_file_get_error(from)) == ZIP_ER_CRC)
    return {errc::damaged, "the checksum of a zip member does not match"};
  if (got < 0 || read != size)
    return {errc::damaged, "a zip member cannot be unpacked"};
  return {};
}

std::string tensor_name(const member& which) {
  return which.name.substr(0, which.name.size() - npy_suffix.size());
}

result<tensor> read_member(zip_t* archive, const member& which, const tensor_filter& wants) {
  constexpr std::uint64_t ratio_max = 1040; // Deflate packs at most 1032 bytes into one.
  if (!which.can_unpack)
    return {errc::invalid_argument,
            "a zip member is encrypted or packed by another method than deflate, write it with "
            "numpy.savez"};
  if (!which.is_npy())
    return {errc::malformed, "a member of a .npz is not a .npy"};
  const member_handle from{zip_fopen_index(archive, which.index, 0)};
  if (!from)
    return {errc::malformed, "a zip member is not where the directory says"};
  std::string content;
  auto head = read_head(from.get(), content);
  const std::size_t head_bytes = content.size();
  const bool possible = which.size >= head_bytes && which.size / ratio_max <= which.packed_size;
  const std::uint64_t value_bytes = possible ? which.size - head_bytes : 0;
  const bool fits = head && possible && value_bytes % head->format.bytes() == 0
                    && element_count(head->shape) == value_bytes / head->format.bytes();
  std::string name = tensor_name(which);
  const bool wanted = fits && (!wants || wants(name, head->shape));
  if (wanted && !append(from.get(), value_bytes, content))
    return {errc::damaged, "a zip member cannot be unpacked"};
  if (const auto sound = check_rest(from.get(), content.size(), which.size); !sound)
    return sound.error();
  if (!head)
    return head.error();
  if (!fits)
    return {errc::malformed, "the .npy header and the size of the zip member differ"};
  if (!wanted)
    return tensor{std::move(name), std::move(head->shape), {}};
  return tensor_of(std::move(name), std::move(head->shape),
                   std::string_view{content}.substr(head_bytes), head->format);
}

} // namespace

result<std::string> encode_npz(std::span<const tensor> tensors) {
  if (tensors.empty()) // libzip makes no archive without members.
    return std::string{"PK\x05\x06"} + std::string(18, '\0');
  zip_error_t why;
  zip_error_init(&why);
  const source_handle bytes{zip_source_buffer_create(nullptr, 0, 0, &why)};
  archive_handle archive = open_archive(bytes, ZIP_TRUNCATE, why);
  const std::string opened = archive ? "" : zip_error_strerror(&why);
  zip_error_fini(&why);
  if (!archive)
    return not_written(opened);
  std::vector<std::string> heads; // The archive borrows them.
  heads.reserve(tensors.size());
  for (const tensor& one : tensors) {
    heads.push_back(npy_head(one.shape));
    if (const auto added = add_member(archive.get(), one, heads.back()); !added)
      return added.error();
  }
  if (zip_close(archive.get()) != 0)
    return not_written(zip_strerror(archive.get()));
  archive.release(); // zip_close() has freed it.
  return archive_bytes(bytes.get());
}

result<std::vector<tensor>> decode_npz(std::string_view bytes, const tensor_filter& wants) {
  if (bytes.empty()) // libzip takes it for an empty archive.
    return {errc::malformed, "has no zip directory"};
  if (claims_too_many_members(bytes))
    return {errc::malformed, "the zip directory has fewer members than it says"};
  zip_error_t why;
  zip_error_init(&why);
  const source_handle source{zip_source_buffer_create(bytes.data(), bytes.size(), 0, &why)};
  const archive_handle archive = open_archive(source, ZIP_RDONLY, why);
  const std::string opened = archive ? "" : zip_error_strerror(&why);
  zip_error_fini(&why);
  if (!archive)
    return {errc::malformed, "has no sound zip directory: " + opened};
  std::map<std::string, std::size_t> places; ///< Of the members' tensors in `tensors`.
  std::vector<tensor> tensors;
  std::uint64_t packed_bytes = 0;
  const auto count = static_cast<std::uint64_t>(zip_get_num_entries(archive.get(), 0));
  for (std::uint64_t index = 0; index < count; ++index) {
    const auto which = member_at(archive.get(), index);
    if (!which)
      return which.error();
    if (wants && !which->is_npy())
      continue;
    const std::string& name = which->name;
    // Overlapping members could make a small file unpack to a large one.
    if (which->packed_size > bytes.size() - packed_bytes)
      return {errc::malformed, "zip members overlap: " + troupe::quote(name)};
    packed_bytes += which->packed_size;
    const auto [place, is_new] = places.emplace(name, tensors.size());
    auto made = is_new ? read_member(archive.get(), *which, wants)
                       : failure{errc::malformed, "two members of a .npz have one name"};
    if (!made) {
      failure reason{made.error().code, made.error().text + ", in " + troupe::quote(name)};
      if (!wants)
        return reason;
      if (!is_new) // Which of the two is meant?
        tensors[place->second].unread = reason;
      made = tensor{tensor_name(*which), {}, {}, {}, std::move(reason)};
    }
    tensors.push_back(*std::move(made));
  }
  return tensors;
}

} // namespace troupe::storage::detail
