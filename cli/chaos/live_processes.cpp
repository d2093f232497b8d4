#include "cli/chaos/live_processes.hpp"

#include "actors/graph/processes/child_command.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace troupe::chaos {

namespace fs = std::filesystem;

namespace {

fs::path proc(pid_t process) { return fs::path{"/proc"} / std::to_string(process); }

/// Returns the part that could be read. The process may end meanwhile, at which a stream's iterator
/// would throw.
std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream{path, std::ios::binary}.rdbuf();
  return text.str();
}

/// Returns the parent of a live process, else 0. The name in front may hold any character.
pid_t parent_of(pid_t process) {
  const auto text = text_of(proc(process) / "stat");
  const auto name_end = text.rfind(") ");
  if (name_end == std::string::npos)
    return 0;
  std::istringstream rest{text.substr(name_end + 2)};
  char state = 'Z';
  pid_t parent = 0;
  rest >> state >> parent;
  return state == 'Z' ? 0 : parent;
}

std::optional<process_name> name_of(pid_t process) {
  std::istringstream words{text_of(proc(process) / "cmdline")};
  for (std::string word; std::getline(words, word, '\0');)
    if (word == "--child" && std::getline(words, word, '\0'))
      if (const auto who = parse_child(word))
        return process_name{who->self.role, who->self.index};
  return std::nullopt;
}

} // namespace

std::map<process_name, pid_t> children_of(pid_t launcher) {
  std::map<process_name, pid_t> found;
  std::error_code none;
  for (const auto& each : fs::directory_iterator{"/proc", none}) {
    const std::string name = each.path().filename();
    pid_t process = 0;
    const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), process);
    if (problem != std::errc{} || end != name.data() + name.size()
        || parent_of(process) != launcher)
      continue;
    if (const auto who = name_of(process))
      found[*who] = process;
  }
  return found;
}

double peak_megabytes(pid_t process) {
  std::ifstream status{proc(process) / "status"};
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:"))
      return std::stod(line.substr(6)) * 1024 / 1e6;
  return 0;
}

double descriptors(pid_t process) {
  std::error_code ended;
  double count = 0;
  for (fs::directory_iterator all{proc(process) / "fd", ended};
       !ended && all != fs::directory_iterator{}; all.increment(ended))
    ++count;
  return count;
}

} // namespace troupe::chaos
