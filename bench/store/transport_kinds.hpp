// Lists the kinds of links that are measured, and whose ends link_kills kills.
#pragma once

#include "actors/transport/transport.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::bench {

struct link_kind {
  std::string name, about;
  bool unix_sockets, arena, tls;
};

const std::vector<link_kind>& link_kinds();
/// Throws std::out_of_range if there is none.
const link_kind& kind_named(const std::string& name);

/// Writes an authority's certificate, and one for servers, workers and observers together. Throws
/// std::runtime_error.
void write_certificates(const std::filesystem::path& directory);

/// `certificates`: the folder of write_certificates(). Throws std::runtime_error.
transport_options options_of(const link_kind& kind, const std::filesystem::path& certificates);

} // namespace troupe::bench
