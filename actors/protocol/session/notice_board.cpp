#include "actors/protocol/session/notice_board.hpp"

#include "actors/protocol/process_name.hpp"
#include "base/number_from.hpp"

#include <cassert>
#include <string_view>
#include <tuple>
#include <utility>

namespace troupe {

namespace {

/// Returns "worker" and 9 for "worker 9", and 0 for a name without a number.
std::pair<std::string_view, std::uint32_t> parts_of(std::string_view member) {
  const auto space = member.find(' ');
  if (space == std::string_view::npos)
    return {member, 0};
  const auto number = number_from<std::uint32_t>(member.substr(space + 1));
  return {member.substr(0, space), number.value_or(0)};
}

} // namespace

bool notice_board::key::operator<(const key& other) const {
  return std::tuple{parts_of(member), std::string_view{topic}}
         < std::tuple{parts_of(other.member), std::string_view{other.topic}};
}

void notice_board::take(const notice& what, time_point now) {
  auto& mine = entries_[{what.member, what.topic}];
  if (what.text.empty())
    mine.told.clear();
  if (mine.text == what.text)
    return;
  mine.text = what.text;
  mine.changed_at = now;
}

void notice_board::forget(const std::string& member) {
  for (auto& [name, each] : entries_)
    if (name.member == member && each.text == each.told) // Untold notices are kept.
      each.text = each.told = "";
}

bool notice_board::is_due(const entry& of, time_point now) const {
  return !of.text.empty() && of.text != of.told && now - of.changed_at >= together
         && (!of.told_at || now - *of.told_at >= pause);
}

std::vector<std::string> notice_board::lines(time_point now) {
  std::erase_if(told_at_, [&](time_point at) { return now - at >= std::chrono::seconds{1}; });
  std::vector<std::string> all;
  for (const auto& [unused, first] : entries_) {
    if (told_at_.size() >= rate_max)
      break;
    if (!is_due(first, now))
      continue;
    const auto text = first.text;
    std::vector<std::string> who;
    for (auto& [name, each] : entries_)
      if (each.text == text && is_due(each, now)) {
        who.push_back(name.member);
        assert(each.told != text);
        each.told = text;
        each.told_at = now;
      }
    all.push_back(list_of(who) + ": " + text);
    told_at_.push_back(now);
    assert(told_at_.size() <= rate_max);
  }
  return all;
}

} // namespace troupe
