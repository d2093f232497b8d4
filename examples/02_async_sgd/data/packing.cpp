#include "examples/02_async_sgd/data/packing.hpp"

#include <array>

namespace async_sgd {

namespace {

using namespace std::string_view_literals;

struct known_head {
  std::string_view bytes;
  std::string_view name;
};

/// Formats that people take for data files, by their first bytes.
constexpr std::array foreign_heads{
  known_head{"\x28\xb5\x2f\xfd"sv, "zstd"},
  known_head{"PK\3\4"sv, "zip, or a spreadsheet to be saved as CSV"},
  known_head{"PK\5\6"sv, "zip"},
  known_head{"\x04\x22\x4d\x18"sv, "lz4"},
  known_head{"\x02\x21\x4c\x18"sv, "lz4"},
  known_head{"\x1f\x9d"sv, "compress (.Z)"},
  known_head{"\x1f\xa0"sv, "compress (.Z)"},
  known_head{"\x1f\x1e"sv, "pack (.z)"},
  known_head{"PAR1"sv, "Parquet, to be saved as CSV"},
  known_head{"7z\xbc\xaf\x27\x1c"sv, "7z"},
  known_head{"Rar!\x1a\7"sv, "rar"},
  known_head{"\x5d\0\0"sv, "lzma"},
  known_head{"LZIP\1"sv, "lzip"},
  known_head{"\x89LZO\0\r\n\x1a\n"sv, "lzop"},
  known_head{"\xff\6\0\0sNaPpY"sv, "snappy"},
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

} // namespace

packing packing_of(std::string_view head) {
  if (head.starts_with("\x1f\x8b"sv))
    return packing::gzip;
  if (head.starts_with("\xfd"
                       "7zXZ\0"sv))
    return packing::xz;
  return is_bzip2(head) ? packing::bzip2 : packing::none;
}

std::string_view foreign_format(std::string_view head) {
  for (const known_head& known : foreign_heads)
    if (head.starts_with(known.bytes))
      return known.name;
  return is_skippable_frame(head) ? "zstd or lz4" : "";
}

} // namespace async_sgd
