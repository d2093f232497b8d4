#include "cli/chaos/launcher_lines.hpp"

#include "nlohmann/json.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace troupe::chaos {

namespace {

bool read_sums(const std::string& text, run_facts& run) {
  sums found;
  if (std::sscanf(text.c_str(),
                  "elements: %lf to %lf, expected in the end: %lf to %lf, right: %" SCNu64
                  " of %" SCNu64,
                  &found.least, &found.most, &found.least_expected, &found.most_expected,
                  &found.right, &found.elements)
      != 6)
    return false;
  run.counted = found; // Those of the last evaluation count.
  return true;
}

/// "12.3 s training 45 %, epoch 0.45/1, ..., active members 7/7"
void read_progress(const std::string& line, double at, run_facts& run) {
  const auto active = line.rfind("active members ");
  const auto percent = line.find(" %");
  if (active == std::string::npos || percent == std::string::npos || percent > active)
    return;
  progress_line found{at, {}, 0};
  char phase[16] = {};
  if (std::sscanf(line.c_str(), "%*s s %15s", phase) != 1
      && std::sscanf(line.c_str(), "%*s %15s", phase) != 1)
    return;
  found.phase = phase;
  found.percent = std::atoi(line.c_str() + line.rfind(' ', percent - 1) + 1);
  if (std::sscanf(line.c_str() + active, "active members %" SCNu64, &found.active) == 1)
    run.progress.push_back(std::move(found));
}

} // namespace

void read_launcher_line(const std::string& line, double at, run_facts& run) {
  if (!line.starts_with('['))
    return read_progress(line, at, run);
  const auto end = line.find("] ");
  if (end == std::string::npos)
    return;
  auto text = line.substr(end + 2);
  if (!read_sums(text, run))
    run.events.push_back({at, std::move(text)});
}

void read_report(const std::filesystem::path& file, run_facts& run) {
  std::ifstream bytes{file};
  const auto all = nlohmann::json::parse(bytes, nullptr, false);
  if (!all.is_object())
    return;
  run.has_report = true;
  const auto& pushes = all.at("pushes");
  run.applied = pushes.at("applied");
  run.duplicates = pushes.at("duplicates_dropped");
  run.refused = pushes.at("refused");
  run.longest_pause_ms = all.at("longest_pause_ms");
  for (const auto& each : all.at("recoveries")) {
    ++run.recoveries;
    run.not_recovered += each.at("recovered_ms").is_null() ? 1 : 0;
    run.rolled_back += each.at("updates_rolled_back").get<std::uint64_t>();
  }
  for (const auto& [name, bytes_max] : all.at("peak_rss_bytes").items())
    run.rss_mb.take(bytes_max.get<double>() / 1e6, name);
}

} // namespace troupe::chaos
