// Defines named topologies.
#pragma once

#include "kernels/schedules/topology.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace troupe::kernels {

/// Returns pcie-4gpu, p3.16xlarge, dgx-2, 2x8-100gbe, fat-tree.
std::vector<std::string_view> preset_names();

std::optional<topology> preset(std::string_view name);

/// Returns `devices` devices on one switch, each by its own full-duplex link.
topology star(std::uint32_t devices, double bytes_per_second, double latency_seconds);

} // namespace troupe::kernels
