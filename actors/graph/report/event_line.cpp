#include "actors/graph/report/event_line.hpp"

#include "base/quote.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <variant>

namespace troupe {

namespace {

using json = nlohmann::ordered_json;

double rounded(std::chrono::nanoseconds span) {
  return std::round(std::chrono::duration<double>(span).count() * 1e3) / 1e3;
}

json to_json(const event_value& value) {
  if (const auto* text = std::get_if<std::string>(&value))
    return printable(*text);
  if (const auto* count = std::get_if<std::uint64_t>(&value))
    return *count;
  return std::get<double>(value); // JSON has no NaN: it is written as null.
}

} // namespace

std::optional<job_event> parse_event(const std::string& line) {
  const auto all = json::parse(line, nullptr, false);
  if (!all.is_object() || !all.contains("event") || !all["event"].is_string())
    return std::nullopt;
  const auto kind = event_kind_of(all["event"].get<std::string>());
  if (!kind)
    return std::nullopt;
  job_event made{*kind, {}};
  for (const auto& [name, value] : all.items())
    if (value.is_number_unsigned())
      made.fields.push_back({name, value.get<std::uint64_t>()});
    else if (value.is_number())
      made.fields.push_back({name, value.get<double>()});
    else if (value.is_string() && name != "event")
      made.fields.push_back({name, value.get<std::string>()});
  return made;
}

std::string event_line(const job_event& what, std::chrono::nanoseconds elapsed,
                       std::chrono::system_clock::time_point now) {
  json line{{"time", rounded(elapsed)},
            {"unix", rounded(now.time_since_epoch())},
            {"event", name_of(what.kind)}};
  for (const auto& field : what.fields)
    line[field.name] = to_json(field.value);
  if (const auto text = text_of(what); !text.empty() && !line.contains("text"))
    line["text"] = printable(text);
  return line.dump() + "\n";
}

} // namespace troupe
