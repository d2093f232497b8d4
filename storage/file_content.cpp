#include "storage/file_content.hpp"

#include "base/bytes.hpp"

#include <algorithm>
#include <array>

namespace troupe::storage {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view again = ", not the file itself: download the file again";
constexpr std::string_view load_in_python =
  ": load it in Python and save its arrays in a format that is read here";

constexpr file_content packed(std::string_view name) { return {file_format::packed, name}; }
constexpr file_content other(std::string_view name, std::string_view advice = {}) {
  return {file_format::other, name, advice};
}

struct known_head {
  std::string_view bytes;
  file_content content;
};

constexpr std::array known_heads{
  known_head{"version https://git-lfs.github.com/spec/"sv,
             other("a git-lfs pointer", ", not the file itself: fetch that with git lfs pull")},
  known_head{"/annex/objects/"sv,
             other("a git-annex pointer", ", not the file itself: fetch that with git annex get")},
  known_head{"\x1f\x8b"sv, {file_format::gzip, "gzip"}},
  known_head{"\xfd"
             "7zXZ\0"sv,
             {file_format::xz, "xz"}},
  known_head{"\x28\xb5\x2f\xfd"sv, packed("zstd")},
  known_head{"PK\3\4"sv, {file_format::zip, "zip, or a spreadsheet to be saved as CSV"}},
  known_head{"PK\5\6"sv, {file_format::zip, "zip"}},
  known_head{"\x04\x22\x4d\x18"sv, packed("lz4")},
  known_head{"\x02\x21\x4c\x18"sv, packed("lz4")},
  known_head{"\x1f\x9d"sv, packed("compress (.Z)")},
  known_head{"\x1f\xa0"sv, packed("compress (.Z)")},
  known_head{"\x1f\x1e"sv, packed("pack (.z)")},
  known_head{"7z\xbc\xaf\x27\x1c"sv, packed("7z")},
  known_head{"Rar!\x1a\7"sv, packed("rar")},
  known_head{"\x5d\0\0"sv, packed("lzma")},
  known_head{"LZIP\1"sv, packed("lzip")},
  known_head{"\x89LZO\0\r\n\x1a\n"sv, packed("lzop")},
  known_head{"\xff\6\0\0sNaPpY"sv, packed("snappy")},
  known_head{"\x93NUMPY"sv, {file_format::npy, "a .npy of numpy"}},
  known_head{"PAR1\x15"sv, other("Parquet, to be saved as CSV")},
  known_head{"ARROW1"sv, other("Arrow, to be saved as CSV")},
  known_head{"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"sv, other("a spreadsheet, to be saved as CSV")},
  known_head{"SQLite format 3\0"sv, other("an SQLite database, to be saved as CSV")},
  known_head{"\x89HDF\r\n\x1a\n"sv, other("HDF5", load_in_python)},
  known_head{"MATLAB 5.0 MAT-file"sv, other("a file of MATLAB", load_in_python)},
  known_head{"GGUF\2\0"sv, other("GGUF", load_in_python)},
  known_head{"GGUF\3\0"sv, other("GGUF", load_in_python)},
  known_head{"%PDF-"sv, other("PDF")},
  known_head{"\x89PNG\r\n\x1a\n"sv, other("a PNG image")},
  known_head{"\xff\xd8\xff"sv, other("a JPEG image")},
};

/// Beginnings of texts, in small letters.
constexpr std::array known_texts{
  known_head{"<!doctype html"sv, other("an HTML page", again)},
  known_head{"<html"sv, other("an HTML page", again)},
  known_head{"<head"sv, other("an HTML page", again)},
  known_head{"<?xml"sv, other("an XML text", again)},
  known_head{"404: not found"sv, other("an answer of a web server", again)},
  known_head{"entry not found"sv, other("an answer of a web server", again)},
};

/// Recognises a frame of any content, which zstd and lz4 allow in front, by 16 magic numbers.
bool is_skippable_frame(std::string_view head) {
  return head.size() >= 4 && (static_cast<std::uint8_t>(head[0]) & 0xf0) == 0x50
         && head.substr(1, 3) == "\x2a\x4d\x18"sv;
}

/// Recognises bzip2: a stream begins with the level, then a block or the end of an empty stream.
bool is_bzip2(std::string_view head) {
  if (!head.starts_with("BZh") || head.size() < 4 || head[3] < '1' || head[3] > '9')
    return false;
  const std::string_view next = head.substr(4, 6);
  return "1AY&SY"sv.starts_with(next) || "\x17\x72\x45\x38\x50\x90"sv.starts_with(next);
}

/// Recognises protocols 2 to 5 of Python's pickle.
bool is_pickle(std::string_view head) {
  return head.size() >= 2 && head[0] == '\x80' && head[1] >= '\2' && head[1] <= '\5';
}

bool is_tar(std::string_view head) {
  constexpr std::size_t mark_at = 257;
  return head.size() > mark_at && head.substr(mark_at).starts_with("ustar");
}

/// Recognises .safetensors by a length that is followed by a JSON object.
bool is_safetensors(std::string_view head) {
  constexpr std::uint64_t header_bytes_max = 100'000'000;
  detail::byte_reader reader(head);
  const auto length = reader.little<std::uint64_t>();
  return head.size() > sizeof length && length <= header_bytes_max && head[sizeof length] == '{';
}

/// Returns the name of a zip's first member, as far as `head` has it.
std::string_view first_member(std::string_view head) {
  constexpr std::size_t length_at = 26, name_at = 30;
  if (!head.starts_with("PK\3\4") || head.size() < name_at)
    return {};
  detail::byte_reader reader(head.substr(length_at));
  return head.substr(name_at, reader.little<std::uint16_t>());
}

bool begins_with(std::string_view text, std::string_view small_letters) {
  return std::ranges::equal(text.substr(0, small_letters.size()), small_letters, {}, [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
}

/// Recognises a JSON object, and a list that begins with an object, a list, a text or a number.
bool is_json(std::string_view text) {
  if (!text.starts_with('{') && !text.starts_with('['))
    return false;
  const auto next = text.find_first_not_of(" \t\r\n", 1);
  const std::string_view wanted = text[0] == '{' ? "\"}"sv : "{[\"-0123456789"sv;
  return next != text.npos && wanted.find(text[next]) != wanted.npos;
}

std::optional<file_content> content_of_text(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf"))
    text.remove_prefix(3);
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  for (const auto& known : known_texts)
    if (begins_with(text, known.bytes))
      return known.content;
  return is_json(text) ? std::optional{other("a JSON text")} : std::nullopt;
}

} // namespace

std::string file_content::text() const {
  return std::string{name}.append(is_packed() ? ": unpack it first" : advice);
}

std::optional<file_content> content_of(std::string_view head) {
  const auto member = first_member(head);
  if (member.ends_with(".npy"))
    return file_content{file_format::npz, "a .npz of numpy"};
  if (member.ends_with(".pkl"))
    return other("a zip with a pickle of Python, as torch.save writes it", load_in_python);
  if (is_bzip2(head))
    return file_content{file_format::bzip2, "bzip2"};
  for (const auto& known : known_heads)
    if (head.starts_with(known.bytes))
      return known.content;
  if (is_skippable_frame(head))
    return packed("zstd or lz4");
  if (is_pickle(head))
    return other("a pickle of Python (.pkl, .pt)", load_in_python);
  if (is_tar(head))
    return other("a tar archive", ": extract its files first");
  if (is_safetensors(head))
    return file_content{file_format::safetensors, "a .safetensors file"};
  return content_of_text(head);
}

} // namespace troupe::storage
