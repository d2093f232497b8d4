#include "base/notes.hpp"

#include "base/quote.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

constexpr std::string_view others = "notes that are not listed";

} // namespace

void program_notes::count(std::string_view node, std::string_view name, std::uint64_t number) {
  add(fmt::format("{}.{}", node, name), number, false);
}

void program_notes::log(std::string_view node, std::string_view line) {
  auto text = fmt::format("{}: {}", node, line);
  if (log_)
    log_(log_level::info, text);
  add(std::move(text), 1, true);
}

void program_notes::warn(const std::string& line) const {
  if (log_)
    log_(log_level::warn, line);
}

void program_notes::add(std::string name, std::uint64_t number, bool is_line) {
  name = printable(name, program_note_bytes_max / 4 - 1); // A character has at most 4 bytes.
  const std::lock_guard lock{mutex_};
  auto found = std::ranges::find_if(
    notes_, [&](const program_note& x) { return x.is_line == is_line && x.name == name; });
  const auto of_its_kind = [&](const program_note& x) {
    return x.is_line == is_line && x.name != others;
  };
  if (found == notes_.end()
      && std::cmp_greater_equal(std::ranges::count_if(notes_, of_its_kind), program_counts_max)) {
    found = std::ranges::find(notes_, others, &program_note::name);
    name = others;
    number = 1;
    is_line = false;
  }
  if (found == notes_.end())
    notes_.push_back({std::move(name), number, is_line});
  else
    found->count += number;
}

std::vector<program_note> program_notes::all() const {
  const std::lock_guard lock{mutex_};
  return notes_;
}

} // namespace troupe
