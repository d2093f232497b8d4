#include "cli/plan/pipeline.hpp"

#include "base/quote.hpp"
#include "cli/plan/units.hpp"

#include "fmt/format.h"
#include "fmt/ranges.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe::planning {

namespace {

std::vector<std::string> list_items(const std::string& text) {
  std::vector<std::string> items{""};
  for (const char each : text)
    if (each == ',')
      items.emplace_back();
    else
      items.back() += each;
  return items;
}

/// Returns the bytes of a batch's activations behind a part; 0: unknown.
double bytes_behind(const pipeline_needs& x, std::size_t part) {
  if (x.activation_bytes.empty())
    return 0;
  return x.activation_bytes.size() == 1 ? x.activation_bytes.front() : x.activation_bytes[part];
}

line_costs costs_of(const pipeline_needs& x) {
  line_costs costs{x.parts, {}};
  for (std::size_t i = 0; i + 1 < x.parts.size(); ++i)
    costs.link_seconds.push_back(
      x.network_per_second > 0 ? bytes_behind(x, i) / x.network_per_second : 0);
  return costs;
}

result<line_times> times_of(const pipeline_needs& x, const line_costs& costs) {
  return virtual_line(costs, x.schedule).run({x.samples, x.micros});
}

double idle_share(const line_times& line, const line_times::part& part) {
  return 1 - part.busy_seconds / line.seconds;
}

std::string summary(const pipeline_needs& x, const pipeline_prediction& made) {
  auto text = fmt::format("pipeline: {} parts, {}, batches of {} samples in {} micro-batches, {}\n",
                          x.parts.size(), to_string(x.schedule.order), x.samples, x.micros,
                          x.network_per_second > 0 ? "links of " + show_bits(x.network_per_second)
                                                   : "links that take no time");
  text += fmt::format("  {:<16}{:>10}   {:.0f} samples/s\n", "time of a batch",
                      show_seconds(made.line.seconds), x.samples / made.line.seconds);
  return text
         + fmt::format("  {:<16}{:>8.1f} %   mean of the parts; {:.1f} % for equal parts, "
                       "(P-1)/(M+P-1)\n",
                       "idle", 100 * made.idle,
                       100 * idle_of_equal_parts(x.parts.size(), x.micros));
}

std::string pace_lines(const pipeline_pace& pace) {
  constexpr std::ptrdiff_t shown = 6;
  auto text =
    fmt::format("  pace is set by {}: a batch takes {:.2f} % longer if it takes 1 % longer\n",
                pace.names.front(), pace.effect);
  const auto more = std::ssize(pace.names) - 1;
  if (more == 0)
    return text;
  const auto first = pace.names.begin() + 1;
  text +=
    fmt::format("  about the same: {}", fmt::join(first, first + std::min(more, shown), ", "));
  return text + (more > shown ? fmt::format(" and {} more\n", more - shown) : "\n");
}

std::string parts_table(const pipeline_needs& x, const pipeline_prediction& made) {
  auto text = fmt::format("\n  {:>4}  {:>9}  {:>7}  {:>11}  {:>15}  {}\n", "part", "computes",
                          "idle", "inputs kept", "kept or waiting", "their bytes");
  for (std::size_t i = 0; i < x.parts.size(); ++i) {
    const auto& part = made.line.parts[i];
    std::string bytes = "those of the samples";
    if (i > 0)
      bytes =
        x.activation_bytes.empty()
          ? "not known without --activations"
          : show_bytes(bytes_behind(x, i - 1) / x.samples * static_cast<double>(part.samples_most));
    text += fmt::format("  {:>4}  {:>9}  {:>5.1f} %  {:>11}  {:>15}  {}\n", i,
                        show_seconds(part.busy_seconds), 100 * idle_share(made.line, part),
                        part.kept_most, part.held_most, bytes);
  }
  return text;
}

/// Returns numbers in their order, with the chosen one among them.
std::vector<std::uint32_t> with(std::vector<std::uint32_t> all, std::uint32_t chosen) {
  all.push_back(chosen);
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  return all;
}

/// Returns the powers of two up to the samples of a batch, and the chosen number.
std::vector<std::uint32_t> compared_micros(const pipeline_needs& x) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t micros = 1; micros <= x.samples; micros *= 2)
    all.push_back(micros);
  return with(std::move(all), x.micros);
}

std::string micros_row(const pipeline_needs& x, const pipeline_prediction& made, bool is_chosen) {
  return fmt::format("{} {:>13}  {:>9}  {:>9.0f}  {:>5.1f} %  {:>9.1f} %\n", is_chosen ? '*' : ' ',
                     x.micros, show_seconds(made.line.seconds), x.samples / made.line.seconds,
                     100 * made.idle, 100 * idle_of_equal_parts(x.parts.size(), x.micros));
}

result<std::string> micros_table(const pipeline_needs& x) {
  auto text = fmt::format("\n  {:>13}  {:>9}  {:>9}  {:>7}  {:>11}\n", "micro-batches", "time",
                          "samples/s", "idle", "equal parts");
  auto other = x;
  for (const auto micros : compared_micros(x)) {
    other.micros = micros;
    const auto made = predict(other);
    if (!made)
      return made.error();
    text += micros_row(other, *made, micros == x.micros);
  }
  return text;
}

/// Returns a table of other values of --pipeline-ahead. Empty with fill-drain, which has none.
result<std::string> ahead_table(const pipeline_needs& x) {
  if (x.schedule.order == micro_order::fill_drain)
    return std::string{};
  auto text = fmt::format("\n  {:>13}  {:>9}  {:>9}  {:>7}  {:>11}\n", "ahead", "time", "samples/s",
                          "idle", "part 0 keeps");
  auto other = x;
  for (const auto ahead : with({0, 1, 2, 4}, x.schedule.ahead)) {
    other.schedule.ahead = ahead;
    const auto made = predict(other);
    if (!made)
      return made.error();
    text += fmt::format("{} {:>13}  {:>9}  {:>9.0f}  {:>5.1f} %  {:>12}\n",
                        ahead == x.schedule.ahead ? '*' : ' ', ahead,
                        show_seconds(made->line.seconds), x.samples / made->line.seconds,
                        100 * made->idle, made->line.parts.front().kept_most);
  }
  return text;
}

} // namespace

result<std::vector<line_costs::part>> parse_parts(const std::string& text) {
  std::vector<line_costs::part> made;
  for (const auto& each : list_items(text)) {
    const auto slash = each.find('/');
    if (slash == std::string::npos)
      return {errc::invalid_argument,
              quote(each) + " is not the times of forward and backward of a part, as 20ms/40ms"};
    const auto forward = parse_seconds(each.substr(0, slash));
    const auto backward = parse_seconds(each.substr(slash + 1));
    if (!forward || !backward)
      return (forward ? backward : forward).error();
    made.push_back({*forward, *backward});
  }
  if (made.size() < 2 || made.size() > pipeline_parts_max)
    return {errc::invalid_argument,
            fmt::format("a pipeline has 2 to {} parts, not {}", pipeline_parts_max, made.size())};
  return made;
}

result<std::vector<double>> parse_activations(const std::string& text) {
  std::vector<double> made;
  for (const auto& each : list_items(text)) {
    const auto bytes = parse_bytes(each);
    if (!bytes)
      return bytes.error();
    made.push_back(*bytes);
  }
  return made;
}

result<void> check(const pipeline_needs& x) {
  if (x.micros > x.samples)
    return {errc::invalid_argument,
            fmt::format("--micro-batches: {} are more than a batch has samples, --batch {}",
                        x.micros, x.samples)};
  const auto sizes = x.activation_bytes.size(), cuts = x.parts.size() - 1;
  if (sizes > 1 && sizes != cuts)
    return {errc::invalid_argument,
            fmt::format("--activations: {} parts have {} cut{}, not {}: give one size for all, or "
                        "one for each",
                        x.parts.size(), cuts, cuts == 1 ? "" : "s", sizes)};
  if (x.network_per_second > 0 && sizes == 0)
    return {errc::invalid_argument, "--network: give --activations, which the links carry"};
  constexpr double seconds_max = 1e18; // As of the times that are parsed.
  for (const auto seconds : costs_of(x).link_seconds)
    if (!(seconds <= seconds_max))
      return {errc::invalid_argument, "--network: a link is too slow for --activations"};
  return {};
}

double idle_of_equal_parts(std::size_t parts, std::uint32_t micros) {
  const auto more = static_cast<double>(parts - 1);
  return more / (micros + more);
}

result<pipeline_prediction> predict(const pipeline_needs& x) {
  auto line = times_of(x, costs_of(x));
  if (!line)
    return line.error();
  pipeline_prediction made{.line = *std::move(line)};
  for (const auto& each : made.line.parts)
    made.idle += idle_share(made.line, each) / static_cast<double>(made.line.parts.size());
  return made;
}

result<pipeline_pace> pace_of(const pipeline_needs& x) {
  const auto plain = times_of(x, costs_of(x));
  if (!plain)
    return plain.error();
  constexpr double growth = 1e-4; // Small, so that few computations change their order.
  std::vector<std::pair<std::string, double>> effects;
  for (std::size_t i = 0; i < 2 * x.parts.size() - 1; ++i) {
    const auto at = i / 2;
    const bool is_part = i % 2 == 0;
    auto slower = costs_of(x);
    if (is_part) {
      slower.parts[at].forward_seconds *= 1 + growth;
      slower.parts[at].backward_seconds *= 1 + growth;
    } else
      slower.link_seconds[at] *= 1 + growth;
    const auto times = times_of(x, slower);
    if (!times)
      return times.error();
    effects.emplace_back(is_part ? fmt::format("part {}", at)
                                 : fmt::format("link {}-{}", at, at + 1),
                         (times->seconds / plain->seconds - 1) / growth);
  }
  const auto* most = &effects.front();
  for (const auto& each : effects)
    if (each.second > most->second + 1e-6) // Rounding may tell equal ones apart.
      most = &each;
  pipeline_pace made{{most->first}, most->second};
  for (const auto& each : effects)
    if (&each != most && each.second >= 0.8 * most->second)
      made.names.push_back(each.first);
  return made;
}

result<std::string> pipeline_text(const pipeline_needs& x) {
  const auto made = predict(x);
  if (!made)
    return made.error();
  const auto pace = pace_of(x);
  if (!pace)
    return pace.error();
  const auto table = micros_table(x);
  if (!table)
    return table.error();
  const auto aheads = ahead_table(x);
  if (!aheads)
    return aheads.error();
  return summary(x, *made) + pace_lines(*pace) + parts_table(x, *made) + *table + *aheads
         + "Pulls and pushes take no time, and nothing is lost.\n";
}

} // namespace troupe::planning
