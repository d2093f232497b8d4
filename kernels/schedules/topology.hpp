// Describes the connections of a job's devices: nodes and links with their rates, and ways.
#pragma once

#include "kernels/schedules/verify.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::kernels {

enum class node_kind : std::uint8_t {
  device,     ///< Has a buffer; does not forward. A GPU, or a worker without one.
  host,       ///< Memory of a host: a staging place; forwards.
  switch_node ///< Forwards.
};

struct topology_node {
  std::string name;
  node_kind kind = node_kind::device;
  double bytes_per_second = 0; ///< Limit of all traffic through or into it, together; 0: no limit.
};

struct topology_link {
  std::uint32_t a = 0, b = 0;  ///< Indices of nodes.
  double bytes_per_second = 0; ///< In each direction; half duplex: of both together.
  double latency_seconds = 0;
  bool full_duplex = true;
};

struct topology {
  std::string name;
  std::string note; ///< One line: the modelled hardware, and the source of its rates.
  std::vector<topology_node> nodes;
  std::vector<topology_link> links;
};

/// Returns one line on why it cannot be planned on, with a remedy; nullopt for a usable one.
std::optional<std::string> problem_of(const topology& net);

/// The ways between all places of a topology. Places are those of a schedule: devices in the order
/// of their nodes, then hosts as its staging places.
///
/// A way has the fewest links; among those, the largest width; among those, the destination
/// decides. So ways to several destinations spread over parallel links (as with D-mod-k routing of
/// fat trees).
class routing {
public:
  /// Requires: problem_of(net) finds no problem.
  explicit routing(topology net);

  const topology& net() const { return net_; }
  std::uint32_t devices() const { return devices_; }
  std::uint32_t hosts() const { return static_cast<std::uint32_t>(places_.size()) - devices_; }
  const std::string& name(std::uint32_t place) const { return net_.nodes[places_[place]].name; }

  /// Returns directed links: 2 l from a to b of link l, 2 l + 1 back.
  std::span<const std::uint32_t> links(std::uint32_t from, std::uint32_t to) const;
  std::uint32_t directed_links() const { return 2 * static_cast<std::uint32_t>(net_.links.size()); }
  std::string link_name(std::uint32_t link) const;
  double link_rate(std::uint32_t link) const { return net_.links[link / 2].bytes_per_second; }

  /// Returns the resources that transfers share: directed links, half-duplex links, limited nodes.
  std::span<const std::uint32_t> resources(std::uint32_t from, std::uint32_t to) const;
  std::span<const double> resource_rates() const { return rates_; } ///< Bytes per second.
  std::string resource_name(std::uint32_t resource) const;

  /// Returns the sum of latencies of all links on the way.
  double latency_seconds(std::uint32_t from, std::uint32_t to) const;
  /// Returns the rate of a transfer that has the way to itself.
  double rate(std::uint32_t from, std::uint32_t to) const;
  /// Returns the rate of a direct link between two devices; 0 if there is none.
  double direct_rate(std::uint32_t from, std::uint32_t to) const;

  /// Groups devices by their nearest host, in order; one group if there are no hosts.
  std::vector<std::vector<std::uint32_t>> devices_by_host() const;

  /// Returns a view for fault_of(). It borrows: it must not outlive this.
  link_view view() const;

private:
  struct way {
    std::vector<std::uint32_t> links;
    std::vector<std::uint32_t> resources;
  };
  struct hop {
    std::uint32_t link; ///< Directed.
    std::uint32_t to;   ///< Node.
  };

  const way& at(std::uint32_t from, std::uint32_t to) const {
    return ways_[std::size_t{from} * places_.size() + to];
  }
  std::vector<std::uint32_t> hops_to(std::uint32_t node) const;
  std::vector<double> widths_to(std::uint32_t node, const std::vector<std::uint32_t>& hops) const;
  void add_ways_to(std::uint32_t place);

  topology net_;
  std::vector<std::uint32_t> places_; ///< Indices of nodes.
  std::uint32_t devices_ = 0;
  std::vector<std::vector<hop>> hops_; ///< For each node.
  std::vector<double> rates_;
  std::vector<way> ways_;
};

} // namespace troupe::kernels
