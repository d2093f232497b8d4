#include "actors/graph/processes/child_command.hpp"

#include <algorithm>
#include <charconv>

namespace troupe {

std::vector<std::string> child_arguments(const child_identity& who) {
  const auto& self = who.self;
  return {"--child", std::to_string(static_cast<int>(self.role)) + ":" + std::to_string(self.index)
                       + ":" + std::to_string(self.incarnation.value) + ":"
                       + std::to_string(who.inherited) + ":" + std::to_string(who.notices)};
}

result<child_identity> parse_child(const std::string& text) {
  const failure wrong{errc::invalid_argument, "--child is for processes that the launcher starts"};
  std::uint32_t kind = 0;
  child_identity who;
  const auto* at = text.data();
  const auto* const end = at + text.size();
  const auto take = [&](auto& number, bool is_last = false) {
    const auto [next, problem] = std::from_chars(at, end, number);
    if (problem != std::errc{} || (is_last ? next != end : next == end || *next != ':'))
      return false;
    at = is_last ? next : next + 1;
    return true;
  };
  if (!take(kind) || !take(who.self.index) || !take(who.self.incarnation.value)
      || !take(who.inherited) || !take(who.notices, true) || !started_role(kind)
      || who.inherited < -1 || who.notices < -1)
    return wrong;
  who.self.role = *started_role(kind);
  return who;
}

std::filesystem::path log_path(const std::filesystem::path& run_directory, process_name who) {
  auto name = to_string(who);
  std::ranges::replace(name, ' ', '-');
  return run_directory / "logs" / (name + ".log");
}

} // namespace troupe
