#include "cli/plan/topology_file.hpp"

#include "base/system/file.hpp"
#include "cli/plan/machine.hpp"
#include "kernels/schedules/presets.hpp"

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "nlohmann/json.hpp"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <string_view>
#include <utility>

namespace troupe::planning {

namespace {

using kernels::node_kind;
using kernels::topology;
using kernels::topology_link;
using nlohmann::json;

failure wrong(std::string text) { return {errc::malformed, std::move(text)}; }

result<void> check_keys(const json& object, std::initializer_list<std::string_view> known,
                        const std::string& what) {
  if (!object.is_object())
    return wrong(fmt::format("{} is not an object {{...}}", what));
  for (const auto& [key, value] : object.items())
    if (std::ranges::find(known, key) == known.end())
      return wrong(
        fmt::format("{}: unknown key '{}'; known are {}", what, key, fmt::join(known, ", ")));
  return {};
}

result<std::string> text_of(const json& object, const char* key, const std::string& what) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_string())
    return wrong(fmt::format("{}: '{}' is missing or not a text", what, key));
  auto text = at->get<std::string>();
  if (std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
    return wrong(fmt::format("{}: '{}' is not one line of text", what, key));
  return text;
}

result<double> number_of(const json& object, const char* key, const std::string& what,
                         double where_missing) {
  const auto at = object.find(key);
  if (at == object.end())
    return where_missing;
  if (!at->is_number())
    return wrong(fmt::format("{}: '{}' is not a number", what, key));
  return at->get<double>();
}

result<kernels::topology_node> parse_node(const json& each, std::size_t number) {
  auto what = fmt::format("node {}", number);
  if (const auto ok = check_keys(each, {"name", "kind", "gb_per_s"}, what); !ok)
    return ok.error();
  auto name = text_of(each, "name", what);
  if (!name)
    return name.error();
  what = fmt::format("node '{}'", *name);
  const auto kind = text_of(each, "kind", what);
  if (!kind)
    return kind.error();
  const auto rate = number_of(each, "gb_per_s", what, 0);
  if (!rate)
    return rate.error();
  if (*rate <= 0 && each.contains("gb_per_s"))
    return wrong(what + ": its bandwidth must be above 0; leave it out for no limit");
  for (const auto& [word, meant] : {std::pair{"device", node_kind::device},
                                    {"host", node_kind::host},
                                    {"switch", node_kind::switch_node}})
    if (*kind == word)
      return kernels::topology_node{*name, meant, *rate * 1e9};
  return wrong(fmt::format("{}: its kind is '{}'; known are device, host, switch", what, *kind));
}

using node_numbers = std::map<std::string, std::uint32_t>;

result<std::uint32_t> find_node(const node_numbers& known, const json& name,
                                const std::string& what) {
  const auto at = name.is_string() ? known.find(name.get<std::string>()) : known.end();
  if (at == known.end())
    return wrong(fmt::format("{}: there is no node {}; add it to 'nodes'", what, name.dump()));
  return at->second;
}

result<topology_link> parse_link(const node_numbers& nodes, const json& each, std::size_t number) {
  const auto what = fmt::format("link {}", number);
  if (const auto ok = check_keys(each, {"between", "gb_per_s", "latency_us", "duplex"}, what); !ok)
    return ok.error();
  const auto between = each.value("between", json{});
  if (!between.is_array() || between.size() != 2)
    return wrong(what + ": 'between' is not a list of two names of nodes");
  const auto a = find_node(nodes, between[0], what);
  if (!a)
    return a.error();
  const auto b = find_node(nodes, between[1], what);
  if (!b)
    return b.error();
  if (!each.contains("gb_per_s"))
    return wrong(what + ": 'gb_per_s' is missing");
  const auto rate = number_of(each, "gb_per_s", what, 0);
  if (!rate)
    return rate.error();
  const auto latency = number_of(each, "latency_us", what, 0);
  if (!latency)
    return latency.error();
  const auto duplex = each.value("duplex", json("full"));
  if (duplex != "full" && duplex != "half")
    return wrong(fmt::format("{}: its duplex is {}; known are full, half", what, duplex.dump()));
  return topology_link{*a, *b, *rate * 1e9, *latency * 1e-6, duplex == "full"};
}

result<topology> read_json(const json& file, const std::string& where) {
  if (const auto ok = check_keys(file, {"name", "note", "nodes", "links"}, "the topology"); !ok)
    return ok.error();
  topology net;
  for (const auto& [key, text, default_text] :
       {std::tuple{"name", &net.name, where}, {"note", &net.note, std::string{}}}) {
    const auto value = file.contains(key) ? text_of(file, key, "the topology") : default_text;
    if (!value)
      return value.error();
    *text = *value;
  }
  for (const auto* const list : {"nodes", "links"})
    if (!file.value(list, json{}).is_array())
      return wrong(fmt::format("'{}' is missing or not a list", list));
  node_numbers numbers;
  for (const auto& each : file["nodes"]) {
    auto node = parse_node(each, net.nodes.size() + 1);
    if (!node)
      return node.error();
    numbers.emplace(node->name, static_cast<std::uint32_t>(net.nodes.size()));
    net.nodes.push_back(std::move(*node));
  }
  for (const auto& each : file["links"]) {
    const auto link = parse_link(numbers, each, net.links.size() + 1);
    if (!link)
      return link.error();
    net.links.push_back(*link);
  }
  if (const auto problem = problem_of(net))
    return wrong(*problem);
  return net;
}

} // namespace

result<topology> parse_topology(const std::string& text, const std::string& where) {
  const auto in_place = [&](const failure& why) {
    return failure{why.code, where + ": " + why.text};
  };
  try {
    auto net = read_json(json::parse(text), where);
    if (!net)
      return in_place(net.error());
    return net;
  } catch (const json::parse_error& problem) {
    const auto end =
      text.begin() + static_cast<std::ptrdiff_t>(std::min(problem.byte, text.size()));
    return in_place(wrong(
      fmt::format("not JSON: line {} cannot be read", 1 + std::count(text.begin(), end, '\n'))));
  } catch (const json::out_of_range&) {
    return in_place(wrong("a number is too large"));
  }
}

result<topology> find_topology(const std::string& name_or_file) {
  if (auto known = kernels::preset(name_or_file))
    return *std::move(known);
  if (name_or_file == "machine")
    return measure_machine();
  std::error_code ignored;
  if (!std::filesystem::exists(name_or_file, ignored))
    return {errc::invalid_argument,
            fmt::format("no topology '{}': it is no file, and known are {}, machine", name_or_file,
                        fmt::join(kernels::preset_names(), ", "))};
  const auto text = read_file(name_or_file);
  if (!text)
    return text.error();
  return parse_topology(*text, name_or_file);
}

} // namespace troupe::planning
