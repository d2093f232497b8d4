#include "kernels/schedules/presets.hpp"

#include <array>
#include <string>

namespace troupe::kernels {

namespace {

// Rates of one direction, from "Dive into Deep Learning" (chapter "Parameter Servers"): PCIe 3.0
// with 16 lanes, one NVLink of a V100. Latencies have the usual order of such links.
constexpr double pcie = 16e9, pcie_latency = 2.5e-6;
constexpr double nvlink = 18e9, nvlink_latency = 2e-6;
constexpr double ethernet_100g = 12.5e9, ethernet_latency = 5e-6;

struct builder {
  topology made;

  std::uint32_t node(std::string name, node_kind kind) {
    made.nodes.push_back({std::move(name), kind, 0});
    return static_cast<std::uint32_t>(made.nodes.size()) - 1;
  }
  std::uint32_t next(std::string_view name, node_kind kind, std::uint32_t number) {
    return node(std::string(name) + std::to_string(number), kind);
  }
  void link(std::uint32_t a, std::uint32_t b, double rate, double latency) {
    made.links.push_back({a, b, rate, latency, true});
  }
};

topology pcie_4gpu() {
  builder x{{"pcie-4gpu", "4 GPUs and the CPU on one PCIe 3.0 switch, 16 GB/s each", {}, {}}};
  for (std::uint32_t i = 0; i < 4; ++i)
    x.next("gpu", node_kind::device, i);
  const auto plx = x.node("pcie", node_kind::switch_node);
  for (std::uint32_t i = 0; i < 4; ++i)
    x.link(i, plx, pcie, pcie_latency);
  x.link(plx, x.node("cpu", node_kind::host), pcie, pcie_latency);
  return x.made;
}

/// Adds pairs of GPUs on a PCIe switch, which is attached to the host.
void add_pcie_pairs(builder& x, std::uint32_t first_gpu, std::uint32_t gpus, std::uint32_t host,
                    const std::string& prefix) {
  for (std::uint32_t i = 0; i < gpus; i += 2) {
    const auto plx = x.next(prefix + "pcie", node_kind::switch_node, i / 2);
    x.link(first_gpu + i, plx, pcie, pcie_latency);
    x.link(first_gpu + i + 1, plx, pcie, pcie_latency);
    x.link(plx, host, pcie, pcie_latency);
  }
}

/// Adds 8 V100 in a hybrid cube mesh. Returns the host.
std::uint32_t add_cube_mesh(builder& x, const std::string& prefix) {
  struct edge {
    std::uint32_t a, b, links;
  };
  static constexpr std::array<edge, 16> edges{{{0, 3, 2},
                                               {0, 4, 2},
                                               {1, 2, 2},
                                               {1, 5, 2},
                                               {2, 3, 2},
                                               {4, 7, 2},
                                               {5, 6, 2},
                                               {6, 7, 2},
                                               {0, 1, 1},
                                               {0, 2, 1},
                                               {1, 3, 1},
                                               {2, 6, 1},
                                               {3, 7, 1},
                                               {4, 5, 1},
                                               {4, 6, 1},
                                               {5, 7, 1}}};
  const auto first = static_cast<std::uint32_t>(x.made.nodes.size());
  for (std::uint32_t i = 0; i < 8; ++i)
    x.next(prefix + "gpu", node_kind::device, i);
  const auto host = x.node(prefix + "cpu", node_kind::host);
  for (const auto& [a, b, links] : edges)
    x.link(first + a, first + b, links * nvlink, nvlink_latency);
  add_pcie_pairs(x, first, 8, host, prefix);
  return host;
}

topology p3_16xlarge() {
  builder x{{"p3.16xlarge",
             "8 V100 in a hybrid cube mesh of NVLinks, 18 GB/s each; PCIe to the host",
             {},
             {}}};
  add_cube_mesh(x, "");
  return x.made;
}

topology dgx_2() {
  builder x{{"dgx-2", "16 V100 on NVSwitch, 6 NVLinks of 18 GB/s each; PCIe to the host", {}, {}}};
  for (std::uint32_t i = 0; i < 16; ++i)
    x.next("gpu", node_kind::device, i);
  const auto nvswitch = x.node("nvswitch", node_kind::switch_node);
  for (std::uint32_t i = 0; i < 16; ++i)
    x.link(i, nvswitch, 6 * nvlink, nvlink_latency);
  add_pcie_pairs(x, 0, 16, x.node("cpu", node_kind::host), "");
  return x.made;
}

topology two_hosts() {
  builder x{{"2x8-100gbe", "two hosts as p3.16xlarge, each with one 100 Gbit/s Ethernet", {}, {}}};
  const auto a = add_cube_mesh(x, "a.");
  const auto b = add_cube_mesh(x, "b.");
  const auto rack = x.node("rack", node_kind::switch_node);
  x.link(a, rack, ethernet_100g, ethernet_latency);
  x.link(b, rack, ethernet_100g, ethernet_latency);
  return x.made;
}

/// Source: Al-Fares, Loukissas, Vahdat 2008, "A scalable, commodity data center network
/// architecture".
topology fat_tree() {
  constexpr std::uint32_t ports = 4, half = ports / 2;
  builder x{{"fat-tree",
             "16 hosts with one device each, 100 Gbit/s Ethernet, switches of 4 ports",
             {},
             {}}};
  std::vector<std::uint32_t> cores;
  for (std::uint32_t i = 0; i < half * half; ++i)
    cores.push_back(x.next("core", node_kind::switch_node, i));
  for (std::uint32_t pod = 0; pod < ports; ++pod) {
    std::vector<std::uint32_t> above;
    for (std::uint32_t i = 0; i < half; ++i) {
      above.push_back(x.next("aggregation", node_kind::switch_node, pod * half + i));
      for (std::uint32_t j = 0; j < half; ++j)
        x.link(above[i], cores[i * half + j], ethernet_100g, ethernet_latency);
    }
    for (std::uint32_t i = 0; i < half; ++i) {
      const auto edge = x.next("edge", node_kind::switch_node, pod * half + i);
      for (const auto each : above)
        x.link(edge, each, ethernet_100g, ethernet_latency);
      for (std::uint32_t j = 0; j < half; ++j) {
        const auto number = (pod * half + i) * half + j;
        const auto host = x.next("host", node_kind::host, number);
        x.link(host, edge, ethernet_100g, ethernet_latency);
        x.link(x.next("gpu", node_kind::device, number), host, pcie, pcie_latency);
      }
    }
  }
  return x.made;
}

struct known {
  std::string_view name;
  topology (*make)();
};
constexpr std::array<known, 5> all_known{{{"pcie-4gpu", pcie_4gpu},
                                          {"p3.16xlarge", p3_16xlarge},
                                          {"dgx-2", dgx_2},
                                          {"2x8-100gbe", two_hosts},
                                          {"fat-tree", fat_tree}}};

} // namespace

std::vector<std::string_view> preset_names() {
  std::vector<std::string_view> names;
  for (const auto& each : all_known)
    names.push_back(each.name);
  return names;
}

std::optional<topology> preset(std::string_view name) {
  for (const auto& each : all_known)
    if (each.name == name)
      return each.make();
  return {};
}

topology star(std::uint32_t devices, double bytes_per_second, double latency_seconds) {
  builder x{{"star", "devices on one switch", {}, {}}};
  for (std::uint32_t i = 0; i < devices; ++i)
    x.next("gpu", node_kind::device, i);
  const auto middle = x.node("switch", node_kind::switch_node);
  for (std::uint32_t i = 0; i < devices; ++i)
    x.link(i, middle, bytes_per_second, latency_seconds);
  return x.made;
}

} // namespace troupe::kernels
