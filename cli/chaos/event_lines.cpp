#include "cli/chaos/event_lines.hpp"

#include "actors/graph/report/event_line.hpp"

#include "nlohmann/json.hpp"

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <utility>
#include <variant>

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
  run.counted = found; // The sums of the last evaluation count.
  return true;
}

} // namespace

void read_event_line(const std::string& line, double at, run_facts& run) {
  auto what = parse_event(line);
  if (!what)
    return;
  if (what->kind == event_kind::note && read_sums(std::string{what->text("text")}, run))
    return;
  if (what->kind != event_kind::progress) {
    run.events.push_back({at, *std::move(what)});
    return;
  }
  const auto* const done = what->find("done");
  const auto* const share = done == nullptr ? nullptr : std::get_if<double>(done);
  run.progress.push_back({at, std::string{what->text("phase")}, what->number("active"),
                          share == nullptr ? 0 : static_cast<int>(100 * *share)});
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
