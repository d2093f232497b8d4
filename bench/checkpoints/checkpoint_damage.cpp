#include "bench/checkpoints/checkpoint_damage.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace troupe::bench {

namespace fs = std::filesystem;

namespace {

using named_file = file_tree::value_type;

constexpr const char *manifest_name = "manifest.json", *commit_name = "COMMIT";

std::uint64_t below(damage_source& from, std::uint64_t end) { return from.dice() % end; }

/// Returns a file of at least `bytes_min` bytes, each as likely, be it small or large.
const named_file& any_file(damage_source& from, const file_tree& files, std::size_t bytes_min = 0) {
  std::vector<const named_file*> fitting;
  for (const auto& each : files)
    if (each.second.size() >= bytes_min)
      fitting.push_back(&each);
  return *fitting.at(below(from, fitting.size()));
}

const file_tree& any_other(damage_source& from) {
  return *from.others[below(from, from.others.size())];
}

std::string random_bytes(damage_source& from, std::size_t count) {
  std::string bytes(count, '\0');
  std::ranges::generate(bytes, [&] { return static_cast<char>(from.dice()); });
  return bytes;
}

std::string with_a_bit_flipped(damage_source& from, std::string content) {
  auto& byte = content.at(below(from, content.size()));
  byte = static_cast<char>(byte ^ (1 << below(from, 8)));
  return content;
}

std::string without_its_end(damage_source& from, const std::string& content) {
  return content.substr(0, 1 + below(from, content.size() - 1));
}

std::string with_more(damage_source& from, const std::string& content) {
  return content + random_bytes(from, 1 + below(from, 64));
}

// -- kinds -------------------------------------------------------------------------------------

file_changes flip_a_bit(damage_source& from) {
  const auto& [name, content] = any_file(from, from.files, 1);
  return {{name, with_a_bit_flipped(from, content)}};
}

file_changes truncate(damage_source& from) {
  const auto& [name, content] = any_file(from, from.files, 2);
  return {{name, without_its_end(from, content)}};
}

file_changes append(damage_source& from) {
  const auto& [name, content] = any_file(from, from.files);
  return {{name, with_more(from, content)}};
}

file_changes swap_two_files(damage_source& from) {
  const auto& one = any_file(from, from.files);
  const auto* other = &one;
  while (other == &one)
    other = &any_file(from, from.files);
  return {{one.first, other->second}, {other->first, one.second}};
}

/// Returns a size in which disks and file systems write, or a smaller one.
std::size_t any_block_bytes(damage_source& from, std::size_t file_bytes) {
  constexpr std::array<std::size_t, 4> sizes{16, 512, 4096, 65536};
  const auto fitting = std::ranges::count_if(sizes, [=](auto x) { return 2 * x <= file_bytes; });
  return sizes[below(from, static_cast<std::uint64_t>(fitting))];
}

file_changes swap_two_blocks(damage_source& from) {
  const auto& [name, content] = any_file(from, from.files, 32);
  const auto bytes = any_block_bytes(from, content.size());
  const auto blocks = content.size() / bytes;
  const auto first = below(from, blocks), second = (first + 1 + below(from, blocks - 1)) % blocks;
  auto changed = content;
  changed.replace(first * bytes, bytes, content, second * bytes, bytes);
  changed.replace(second * bytes, bytes, content, first * bytes, bytes);
  return {{name, changed}};
}

/// Blanks a block, as if the disk lost a write.
file_changes blank_a_block(damage_source& from) {
  const auto& [name, content] = any_file(from, from.files, 32);
  const auto bytes = any_block_bytes(from, content.size());
  auto changed = content;
  changed.replace(below(from, content.size() / bytes) * bytes, bytes, bytes, '\0');
  return {{name, changed}};
}

file_changes remove(damage_source& from) {
  return {{any_file(from, from.files).first, std::nullopt}};
}

file_changes empty(damage_source& from) { return {{any_file(from, from.files).first, ""}}; }

file_changes break_the_seal(damage_source& from) {
  const char* name = below(from, 2) == 0 ? manifest_name : commit_name;
  const auto& content = from.files.at(name);
  const auto& other = any_other(from);
  switch (below(from, 7)) {
  case 0: return {{name, with_a_bit_flipped(from, content)}};
  case 1: return {{name, without_its_end(from, content)}};
  case 2: return {{name, with_more(from, content)}};
  case 3: return {{name, std::nullopt}};
  case 4: return {{name, random_bytes(from, content.size())}};
  case 5: return {{name, other.at(name)}};
  default: // These two fit together.
    return {{manifest_name, other.at(manifest_name)}, {commit_name, other.at(commit_name)}};
  }
}

/// Puts a file of a backup over the checkpoint.
file_changes put_an_older_file_over_it(damage_source& from) {
  const auto& other = any_other(from);
  const auto& [name, content] = any_file(from, other);
  return {{from.files.contains(name) ? name : any_file(from, from.files).first, content}};
}

file_changes add_a_file(damage_source& from) {
  const auto& [name, content] = any_file(from, any_other(from));
  const auto folder = any_file(from, from.files).first;
  const auto end = folder.find('/');
  // No reader looks for files beside the manifest, so a file there does no harm.
  const auto home = end == std::string::npos ? "chain-0" : folder.substr(0, end);
  const auto added =
    home + "/0000" + std::to_string(10 + below(from, 90)) + (below(from, 2) == 0 ? ".log" : ".sst");
  return from.files.contains(added) ? add_a_file(from) : file_changes{{added, content}};
}

} // namespace

const std::vector<damage_kind>& damage_kinds() {
  static const std::vector<damage_kind> kinds{
    {"a bit flipped", flip_a_bit},
    {"truncated", truncate},
    {"bytes appended", append},
    {"two files swapped", swap_two_files},
    {"two blocks of a file swapped", swap_two_blocks},
    {"a block of zeros", blank_a_block},
    {"a file deleted", remove},
    {"a file emptied", empty},
    {"manifest or COMMIT damaged", break_the_seal},
    {"an older checkpoint's file", put_an_older_file_over_it},
    {"a file too many", add_a_file}};
  return kinds;
}

file_tree read_tree(const fs::path& folder) {
  file_tree files;
  for (const auto& entry : fs::recursive_directory_iterator{folder}) {
    if (!entry.is_regular_file())
      continue;
    std::ifstream file{entry.path(), std::ios::binary};
    files[fs::relative(entry.path(), folder).string()] =
      std::string{std::istreambuf_iterator<char>{file}, {}};
  }
  return files;
}

bool changes_nothing(const file_tree& files, const file_changes& changes) {
  return std::ranges::all_of(changes, [&](const auto& change) {
    const auto at = files.find(change.first);
    return change.second && at != files.end() && at->second == *change.second;
  });
}

void write_changes(const fs::path& folder, const file_changes& changes) {
  for (const auto& [name, content] : changes) {
    // A new file: other hard links keep the old content.
    fs::remove(folder / name);
    if (!content)
      continue;
    std::ofstream file{folder / name, std::ios::binary};
    if (!file.write(content->data(), static_cast<std::streamsize>(content->size())).flush())
      throw std::runtime_error{"cannot write " + (folder / name).string()};
  }
}

void repair(const fs::path& folder, const file_tree& files, const file_changes& changes) {
  file_changes back;
  for (const auto& [name, unused] : changes) {
    const auto at = files.find(name);
    back[name] = at == files.end() ? std::nullopt : std::optional{at->second};
  }
  write_changes(folder, back);
}

} // namespace troupe::bench
