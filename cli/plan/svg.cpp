#include "cli/plan/svg.hpp"

#include "cli/plan/units.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::planning {

namespace {

using kernels::node_kind;
using kernels::routing;
using kernels::step_kind;
using kernels::strategy_plan;

constexpr double width = 1200, margin = 40, level_height = 110, row_height = 20;
constexpr double names_width = 190; // Space for the names of the timeline's rows.
constexpr std::size_t rows_max = 24;
constexpr auto reduce_fill = "#4a86c5", copy_fill = "#e8923a";

struct point {
  double x = 0, y = 0;
};

std::string escaped(std::string_view text) {
  std::string made;
  for (const char c : text) {
    switch (c) {
    case '&': made += "&amp;"; break;
    case '<': made += "&lt;"; break;
    case '>': made += "&gt;"; break;
    case '"': made += "&quot;"; break;
    default: made += c;
    }
  }
  return made;
}

std::string label(point at, std::string_view anchor, double size, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\">{}"
                     "</text>\n",
                     at.x, at.y, anchor, size, escaped(text));
}

/// Places nodes in rows by their distance from the nearest device, sorted so that few links cross.
class layout {
public:
  explicit layout(const kernels::topology& net) : net_(net), at_(net.nodes.size()) {
    std::vector<std::uint32_t> levels(net.nodes.size(), 0);
    find_levels(levels);
    levels_ = 1 + *std::ranges::max_element(levels);
    for (std::uint32_t level = 0; level < levels_; ++level)
      place_row(levels, level);
  }

  point at(std::uint32_t node) const { return at_[node]; }
  double height() const { return levels_ * level_height; }
  /// Returns true for a link between nodes of one row, such as two devices.
  bool is_level(const kernels::topology_link& link) const { return at_[link.a].y == at_[link.b].y; }

private:
  void find_levels(std::vector<std::uint32_t>& levels) const {
    constexpr std::uint32_t unknown = ~0u;
    for (std::uint32_t node = 0; node < levels.size(); ++node)
      levels[node] = net_.nodes[node].kind == node_kind::device ? 0 : unknown;
    for (bool is_changed = true; is_changed;) {
      is_changed = false;
      for (const auto& link : net_.links)
        for (const auto& [near, far] : {std::pair{link.a, link.b}, std::pair{link.b, link.a}})
          if (levels[near] != unknown && levels[far] > levels[near] + 1) {
            levels[far] = levels[near] + 1;
            is_changed = true;
          }
    }
    std::ranges::replace(levels, unknown, 1u); // These have no path to a device.
  }

  /// Returns the mean position of the neighbours that are placed.
  double wanted(std::uint32_t node, const std::vector<std::uint32_t>& levels) const {
    double sum = 0, count = 0;
    for (const auto& link : net_.links)
      for (const auto& [near, far] : {std::pair{link.a, link.b}, std::pair{link.b, link.a}})
        if (near == node && levels[far] < levels[node]) {
          sum += at_[far].x;
          ++count;
        }
    return count > 0 ? sum / count : 0;
  }

  void place_row(const std::vector<std::uint32_t>& levels, std::uint32_t level) {
    std::vector<std::uint32_t> row;
    for (std::uint32_t node = 0; node < levels.size(); ++node)
      if (levels[node] == level)
        row.push_back(node);
    std::ranges::stable_sort(row, {}, [&](auto node) { return wanted(node, levels); });
    const double step = (width - 2 * margin) / static_cast<double>(row.size());
    for (std::size_t i = 0; i < row.size(); ++i)
      at_[row[i]] = {margin + (static_cast<double>(i) + 0.5) * step,
                     (levels_ - level - 0.5) * level_height};
  }

  const kernels::topology& net_;
  std::vector<point> at_;
  std::uint32_t levels_ = 0;
};

/// Returns grey for a link that is never in use, red for one that always is.
std::string colour(double in_use) {
  const auto mix = [&](double from, double to) {
    return static_cast<int>(std::lround(from + (to - from) * std::clamp(in_use, 0.0, 1.0)));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(200, 214), mix(204, 39), mix(210, 40));
}

double link_width(const kernels::topology& net, const kernels::topology_link& link) {
  double fastest = 0;
  for (const auto& each : net.links)
    fastest = std::max(fastest, each.bytes_per_second);
  return 1.5 + 4 * link.bytes_per_second / fastest;
}

std::string draw_links(const routing& ways, const strategy_plan& plan, const layout& places) {
  const auto& net = ways.net();
  std::string text;
  for (std::uint32_t i = 0; i < net.links.size(); ++i) {
    const auto& link = net.links[i];
    const auto& bytes = plan.cost.link_bytes;
    const double load =
      link.full_duplex ? std::max(bytes[2 * i], bytes[2 * i + 1]) : bytes[2 * i] + bytes[2 * i + 1];
    const double in_use = load / link.bytes_per_second / plan.cost.seconds;
    const auto a = places.at(link.a), b = places.at(link.b);
    // A link within a row hangs below it; the farther its ends are apart, the lower.
    const double bend =
      places.is_level(link) ? std::min(30 + 0.09 * std::abs(a.x - b.x), level_height - 20) : 0;
    text +=
      fmt::format("<path d=\"M{:.1f} {:.1f} Q{:.1f} {:.1f} {:.1f} {:.1f}\" fill=\"none\" "
                  "stroke=\"{}\" stroke-width=\"{:.1f}\"><title>{} - {}: {}, in use {:.0f} "
                  "%</title></path>\n",
                  a.x, a.y, (a.x + b.x) / 2, (a.y + b.y) / 2 + 2 * bend, b.x, b.y, colour(in_use),
                  link_width(net, link), escaped(net.nodes[link.a].name),
                  escaped(net.nodes[link.b].name), show_rate(link.bytes_per_second), 100 * in_use);
  }
  return text;
}

std::string draw_nodes(const routing& ways, const layout& places) {
  const auto& nodes = ways.net().nodes;
  std::vector<double> in_row(nodes.size());
  std::string text;
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    const auto at = places.at(i);
    double peers = 0;
    for (std::uint32_t j = 0; j < nodes.size(); ++j)
      peers += places.at(j).y == at.y ? 1 : 0;
    const double room = (width - 2 * margin) / peers - 4;
    const double size =
      std::clamp(room / (0.62 * static_cast<double>(nodes[i].name.size() + 1)), 5.0, 13.0);
    const double half =
      std::min(room, 0.62 * size * static_cast<double>(nodes[i].name.size()) + 12) / 2;
    const auto* const fill = nodes[i].kind == node_kind::device ? "#dcebfa"
                             : nodes[i].kind == node_kind::host ? "#e3f4dc"
                                                                : "#ffffff";
    text += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"26\" rx=\"{}\" "
                        "fill=\"{}\" stroke=\"#444\"/>\n",
                        at.x - half, at.y - 13, 2 * half,
                        nodes[i].kind == node_kind::switch_node ? 13 : 3, fill);
    text += label({at.x, at.y + 4.5}, "middle", size, nodes[i].name);
  }
  return text;
}

struct bar {
  double begin = 0, end = 0;
  step_kind kind = step_kind::copy;
  std::uint32_t chunk = 0;
  bool is_merged = false; ///< Covers several chunks.
};

/// Returns what a link carries. Neighbours of one kind closer than `gap` seconds are one bar.
std::vector<bar> bars_of(const routing& ways, const strategy_plan& plan, std::uint32_t link,
                         double gap, double short_seconds) {
  std::vector<bar> all;
  for (std::size_t i = 0; i < plan.plan.steps.size(); ++i) {
    const auto& step = plan.plan.steps[i];
    const auto links = ways.links(step.from, step.to);
    if (std::ranges::find(links, link) != links.end())
      all.push_back({plan.cost.steps[i].begin, plan.cost.steps[i].end, step.kind, step.chunk});
  }
  std::ranges::sort(all, {}, [](const bar& x) { return std::pair{x.begin, x.end}; });
  std::vector<bar> merged;
  for (const auto& each : all) {
    const bool overlaps = !merged.empty() && each.begin < merged.back().end - gap;
    const bool is_close = !merged.empty() && each.begin <= merged.back().end + gap
                          && merged.back().kind == each.kind
                          && (overlaps || each.end - each.begin < short_seconds);
    if (!is_close) {
      merged.push_back(each);
      continue;
    }
    merged.back().end = std::max(merged.back().end, each.end);
    merged.back().is_merged = true;
  }
  return merged;
}

std::string draw_row(const std::vector<bar>& bars, double seconds, double y) {
  const double left = margin + names_width;
  const double scale = (width - margin - left) / seconds;
  std::string text;
  for (const auto& each : bars) {
    const double wide = std::max(scale * (each.end - each.begin), 0.4);
    text +=
      fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" "
                  "fill=\"{}\" stroke=\"#ffffff\" stroke-width=\"{}\"/>\n",
                  left + scale * each.begin, y, wide, row_height - 4,
                  each.kind == step_kind::reduce ? reduce_fill : copy_fill, wide > 3 ? 0.8 : 0.0);
    if (!each.is_merged && wide > 22)
      text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" "
                          "font-size=\"10\" fill=\"#ffffff\">{}</text>\n",
                          left + scale * (each.begin + each.end) / 2, y + 12, each.chunk);
  }
  return text;
}

std::string draw_axis(double seconds, double top, double bottom) {
  const double left = margin + names_width;
  const double digit = std::pow(10, std::floor(std::log10(seconds)));
  const double step = seconds / digit >= 5 ? digit : seconds / digit >= 2 ? digit / 2 : digit / 5;
  std::string text;
  for (int i = 0; i * step <= seconds * (1 + 1e-9); ++i) {
    const double x = left + (width - margin - left) * i * step / seconds;
    text += fmt::format("<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" "
                        "stroke=\"#cccccc\"/>\n",
                        x, top, bottom);
    text += label({x, bottom + 16}, "middle", 11, i == 0 ? "0" : show_seconds(i * step));
  }
  return text;
}

/// Returns the links that are used: the longest in use first, then by number.
std::vector<std::uint32_t> rows_of(const routing& ways, const strategy_plan& plan) {
  std::vector<std::uint32_t> links;
  for (std::uint32_t link = 0; link < ways.directed_links(); ++link)
    if (plan.cost.link_bytes[link] > 0)
      links.push_back(link);
  std::ranges::stable_sort(links, std::greater<>{}, [&](auto link) {
    return std::round(1e6 * plan.cost.link_bytes[link] / ways.link_rate(link) / plan.cost.seconds);
  });
  links.resize(std::min(links.size(), rows_max));
  std::ranges::sort(links);
  return links;
}

/// Lists the widths of links, widest first, to the right of the title.
std::string legend_of_rates(const kernels::topology& net) {
  std::map<double, double, std::greater<>> widths;
  for (const auto& link : net.links)
    widths[link.bytes_per_second] = link_width(net, link);
  constexpr std::size_t most = 6;
  double y = 24;
  std::string text;
  for (const auto& [rate, wide] : widths) {
    if (y > 24 + 16 * most)
      break;
    text += fmt::format("<line x1=\"{0}\" y1=\"{2}\" x2=\"{1}\" y2=\"{2}\" stroke=\"#888888\" "
                        "stroke-width=\"{3:.1f}\"/>\n",
                        width - margin - 120, width - margin - 90, y, wide);
    text += label({width - margin - 82, y + 4}, "start", 12, show_rate(rate));
    y += 16;
  }
  return text;
}

std::string legend_of_bars(double y) {
  std::string text;
  double x = margin;
  for (const auto& [fill, words] : {std::pair{reduce_fill, "partial sums, to be added (reduce)"},
                                    {copy_fill, "whole sums (copy)"}}) {
    text += fmt::format("<rect x=\"{}\" y=\"{:.1f}\" width=\"14\" height=\"14\" fill=\"{}\"/>\n", x,
                        y - 11, fill);
    text += label({x + 20, y}, "start", 12, words);
    x += 270;
  }
  return text
         + label({x, y}, "start", 12, "Numbers: the chunk; without one: several, or a short time.");
}

} // namespace

std::string drawing(const routing& ways, const strategy_plan& plan, double bytes) {
  const layout places(ways.net());
  const auto rows = rows_of(ways, plan);
  const double top = 70;
  const double timeline = top + places.height() + 80;
  const double bottom = timeline + row_height * static_cast<double>(rows.size());
  const double seconds = plan.cost.seconds;
  std::string text = fmt::format(
    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
    "{1}\" font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\">\n<rect width=\"100%\" "
    "height=\"100%\" fill=\"#ffffff\"/>\n",
    width, bottom + 60);
  text += label({margin, 32}, "start", 18,
                fmt::format("{}: all-reduce of {} by {}, {}", ways.net().name, show_bytes(bytes),
                            plan.name, show_seconds(seconds)));
  text += label({margin, 54}, "start", 12, "Red links are in use all the time, grey ones never.")
          + legend_of_rates(ways.net());
  text += fmt::format("<g transform=\"translate(0 {})\">\n", top);
  text += draw_links(ways, plan, places) + draw_nodes(ways, places) + "</g>\n";
  text +=
    label({margin, timeline - 16}, "start", 14,
          fmt::format("What links carry, in chunks of {}{}", show_bytes(plan.chunk_bytes),
                      rows.size() == rows_max ? fmt::format(" (the {} busiest)", rows_max) : ""));
  text += draw_axis(seconds, timeline - 4, bottom);
  const double pixel = seconds / (width - 2 * margin - names_width);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double y = timeline + row_height * static_cast<double>(i);
    text += label({margin + names_width - 8, y + 13}, "end", 11, ways.link_name(rows[i]));
    text += draw_row(bars_of(ways, plan, rows[i], pixel, 3 * pixel), seconds, y);
  }
  return text + legend_of_bars(bottom + 44) + "</svg>\n";
}

} // namespace troupe::planning
