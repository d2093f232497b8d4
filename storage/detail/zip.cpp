#include "storage/detail/zip.hpp"

#include "base/bytes.hpp"
#include "base/quote.hpp"

#include "zlib.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace troupe::storage::detail {

namespace {

constexpr std::uint32_t local_signature = 0x04034b50, central_signature = 0x02014b50,
                        end_signature = 0x06054b50;
constexpr std::size_t local_bytes = 30, central_bytes = 46, end_bytes = 22;
constexpr std::uint16_t version_needed = 20; ///< 2.0.
constexpr std::uint16_t midnight = 0, first_of_january_1980 = 0x0021;
constexpr std::uint16_t stored_method = 0, deflate_method = 8;
constexpr std::uint16_t encrypted_flag = 0x0001, utf8_flag = 0x0800;
constexpr std::uint32_t in_zip64 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint16_t in_zip64_short = std::numeric_limits<std::uint16_t>::max();

std::uint32_t crc32_of(std::string_view bytes, std::uint32_t previous = 0) {
  if (bytes.empty())
    return previous; // To zlib, a null address means: start anew.
  return static_cast<std::uint32_t>(
    ::crc32_z(previous, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

failure cut_off() { return {errc::malformed, "the zip archive ends early"}; }

/// Returns the bytes of the member that one directory entry describes.
result<std::string_view> stored_at(std::string_view bytes, std::uint32_t offset, std::uint32_t size,
                                   std::string_view name) {
  if (offset > bytes.size() || bytes.size() - offset < local_bytes)
    return cut_off();
  byte_reader header(bytes.substr(offset, local_bytes));
  const auto signature = header.little<std::uint32_t>();
  for (int skipped = 0; skipped < 11; ++skipped) // The directory repeats these fields more
                                                 // reliably.
    header.little<std::uint16_t>();
  const std::size_t name_size = header.little<std::uint16_t>();
  const std::size_t extra_size = header.little<std::uint16_t>();
  const std::string_view rest = bytes.substr(offset + local_bytes);
  if (signature != local_signature || rest.substr(0, name_size) != name)
    return {errc::malformed,
            "a zip member is not where the directory says: " + troupe::quote(name)};
  if (rest.size() < name_size + extra_size || rest.size() - name_size - extra_size < size)
    return cut_off();
  return rest.substr(name_size + extra_size, size);
}

/// Reads one directory entry off the front of `directory`.
result<zip_member> take_member(std::string_view& directory, std::string_view bytes) {
  if (directory.size() < central_bytes)
    return cut_off();
  byte_reader entry(directory.substr(0, central_bytes));
  const auto signature = entry.little<std::uint32_t>();
  entry.little<std::uint32_t>(); // Versions.
  const auto flags = entry.little<std::uint16_t>();
  const auto method = entry.little<std::uint16_t>();
  entry.little<std::uint32_t>(); // Date.
  const auto crc = entry.little<std::uint32_t>();
  const auto stored_size = entry.little<std::uint32_t>();
  const auto size = entry.little<std::uint32_t>();
  const std::size_t name_size = entry.little<std::uint16_t>();
  const std::size_t extra_size = entry.little<std::uint16_t>();
  const std::size_t comment_size = entry.little<std::uint16_t>();
  entry.little<std::uint64_t>(); // Disk, attributes.
  const auto offset = entry.little<std::uint32_t>();
  directory.remove_prefix(central_bytes);
  if (signature != central_signature)
    return {errc::malformed, "the zip directory is not one"};
  if (directory.size() < name_size + extra_size + comment_size)
    return cut_off();
  const std::string name{directory.substr(0, name_size)};
  directory.remove_prefix(name_size + extra_size + comment_size);
  if (size == in_zip64 || stored_size == in_zip64 || offset == in_zip64)
    return {errc::invalid_argument,
            "a zip member uses zip64, save the tensors as .safetensors: " + troupe::quote(name)};
  if ((method != stored_method && method != deflate_method) || (flags & encrypted_flag) != 0)
    return {errc::invalid_argument,
            "a zip member is encrypted or packed by another method than deflate, write it with "
            "numpy.savez: "
              + troupe::quote(name)};
  const bool deflated = method == deflate_method;
  if (!deflated && stored_size != size)
    return {errc::malformed, "a stored zip member has two sizes: " + troupe::quote(name)};
  const auto stored = stored_at(bytes, offset, stored_size, name);
  if (!stored)
    return stored.error();
  return zip_member{name, *stored, deflated, size, crc};
}

/// Unpacks a raw deflate stream of exactly `size` bytes; false if it has another size or is
/// invalid.
bool inflate_exactly(std::string_view stored, std::uint32_t size, std::string& content) {
  constexpr std::uint64_t ratio_max = 1040; // Deflate packs at most 1032 bytes into one.
  constexpr int raw_window = -15;           // The largest window, without a header.
  if (size > (std::uint64_t{stored.size()} + 1) * ratio_max)
    return false;
  z_stream stream = {};
  if (inflateInit2(&stream, raw_window) != Z_OK)
    return false;
  // One extra byte exposes a stream that is too long, and gives size 0 an address.
  content.resize(std::size_t{size} + 1);
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(stored.data()));
  stream.avail_in = static_cast<uInt>(stored.size());
  stream.next_out = reinterpret_cast<Bytef*>(content.data());
  stream.avail_out = size + 1; // Below 2^32, which marks zip64.
  const int code = inflate(&stream, Z_FINISH);
  const bool fits = code == Z_STREAM_END && stream.avail_in == 0 && stream.avail_out == 1;
  inflateEnd(&stream);
  content.resize(size);
  return fits;
}

/// Returns the position of the end record. Only a comment of up to 64 KiB may follow it.
std::optional<std::size_t> find_end(std::string_view bytes) {
  constexpr std::size_t comment_max = 0xffff;
  const std::size_t last = bytes.size() < end_bytes ? 0 : bytes.size() - end_bytes;
  const std::size_t first = last - std::min(last, comment_max);
  for (std::size_t at = last + 1; at-- > first;) {
    byte_reader end(bytes.substr(at));
    if (end.little<std::uint32_t>() != end_signature)
      continue;
    end.little<std::uint64_t>();
    end.little<std::uint64_t>();
    if (const std::size_t comment_size = end.little<std::uint16_t>(); end.left() == comment_size)
      return at;
  }
  return std::nullopt;
}

} // namespace

result<void> zip_writer::add(std::string_view name, std::string_view head, std::string_view tail) {
  const std::uint64_t size = std::uint64_t{head.size()} + tail.size();
  const std::uint64_t total = bytes_.size() + directory_.size() + size + 2 * name.size()
                              + local_bytes + central_bytes + end_bytes;
  if (total >= in_zip64 || members_ + 1 >= in_zip64_short || name.size() > 0xffff)
    return {errc::invalid_argument,
            "too large for .npz, use .safetensors: tensor member " + troupe::quote(name)};
  const bool ascii = std::ranges::all_of(name, [](char c) { return (c & 0x80) == 0; });
  // The common part of local header and directory, from version to length of extras.
  const std::string common = byte_writer{}
                               .little(version_needed)
                               .little(ascii ? std::uint16_t{0} : utf8_flag)
                               .little(std::uint16_t{0}) // Stored.
                               .little(midnight)
                               .little(first_of_january_1980)
                               .little(crc32_of(tail, crc32_of(head)))
                               .little(static_cast<std::uint32_t>(size))
                               .little(static_cast<std::uint32_t>(size))
                               .little(static_cast<std::uint16_t>(name.size()))
                               .little(std::uint16_t{0})
                               .take();
  directory_ += byte_writer{}.little(central_signature).little(version_needed).take();
  directory_ += common;
  directory_ += byte_writer{}
                  .little(std::uint16_t{0}) // Length of the comment.
                  .little(std::uint16_t{0}) // Disk.
                  .little(std::uint16_t{0}) // Attributes.
                  .little(std::uint32_t{0})
                  .little(static_cast<std::uint32_t>(bytes_.size()))
                  .take();
  directory_ += name;
  bytes_ += byte_writer{}.little(local_signature).take();
  (((bytes_ += common) += name) += head) += tail;
  ++members_;
  return {};
}

std::string zip_writer::finish() {
  const std::string end = byte_writer{}
                            .little(end_signature)
                            .little(std::uint32_t{0}) // Disks.
                            .little(members_)
                            .little(members_)
                            .little(static_cast<std::uint32_t>(directory_.size()))
                            .little(static_cast<std::uint32_t>(bytes_.size()))
                            .little(std::uint16_t{0}) // Length of the comment.
                            .take();
  (bytes_ += directory_) += end;
  return std::move(bytes_);
}

result<std::vector<zip_member>> read_zip(std::string_view bytes) {
  const auto end_at = find_end(bytes);
  if (!end_at)
    return {errc::malformed, "has no zip directory"};
  byte_reader end(bytes.substr(*end_at));
  end.little<std::uint64_t>(); // Signature, disks.
  const auto here = end.little<std::uint16_t>();
  const auto count = end.little<std::uint16_t>();
  const auto size = end.little<std::uint32_t>();
  const auto offset = end.little<std::uint32_t>();
  if (count == in_zip64_short || size == in_zip64 || offset == in_zip64)
    return {errc::invalid_argument, "the zip archive uses zip64, save the tensors as .safetensors"};
  if (here != count || offset > *end_at || size > *end_at - offset)
    return {errc::malformed, "the zip directory is not where the end says"};
  std::string_view directory = bytes.substr(offset, size);
  std::vector<zip_member> members;
  std::uint64_t stored_bytes = 0;
  for (std::uint16_t i = 0; i < count; ++i) {
    auto member = take_member(directory, bytes);
    if (!member)
      return member.error();
    // Overlapping members could make a small file unpack to a large one.
    stored_bytes += member->stored.size();
    if (stored_bytes > bytes.size())
      return {errc::malformed, "zip members overlap: " + troupe::quote(member->name)};
    members.push_back(std::move(*member));
  }
  if (!directory.empty())
    return {errc::malformed, "the zip directory has more members than it says"};
  return members;
}

result<std::string_view> content_of(const zip_member& member, std::string& unpacked) {
  std::string_view content = member.stored;
  if (member.deflated) {
    if (!inflate_exactly(member.stored, member.size, unpacked))
      return {errc::damaged, "a zip member cannot be unpacked: " + troupe::quote(member.name)};
    content = unpacked;
  }
  if (crc32_of(content) != member.crc32)
    return {errc::damaged,
            "the checksum of a zip member does not match: " + troupe::quote(member.name)};
  return content;
}

} // namespace troupe::storage::detail
