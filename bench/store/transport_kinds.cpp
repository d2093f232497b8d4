#include "bench/store/transport_kinds.hpp"

#include "actors/transport/streams/certificate_authority.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <stdexcept>

namespace troupe::bench {

const std::vector<link_kind>& link_kinds() {
  static const std::vector<link_kind> all{
    {"arena", "Unix socket, large tensors in shared memory", true, true, false},
    {"unix", "Unix socket alone", true, false, false},
    {"tcp", "TCP over loopback", false, false, false},
    {"tls", "TLS over that", false, false, true},
  };
  return all;
}

const link_kind& kind_named(const std::string& name) {
  const auto found = std::ranges::find(link_kinds(), name, &link_kind::name);
  if (found == link_kinds().end())
    throw std::out_of_range{"no kind of link is named " + name};
  return *found;
}

void write_certificates(const std::filesystem::path& directory) {
  const auto end = std::chrono::system_clock::now() + std::chrono::hours{24};
  const certificate_authority authority{end};
  const auto made = authority.issue({{role::server, role::worker, role::observer}, {}, end});
  if (!made)
    throw std::runtime_error{made.error().text};
  std::ofstream{directory / "ca.pem"} << authority.certificate();
  std::ofstream{directory / "all.pem"} << made->certificate;
  std::ofstream{directory / "all.key"} << made->key;
}

transport_options options_of(const link_kind& kind, const std::filesystem::path& certificates) {
  transport_options made;
  made.unix_sockets = kind.unix_sockets;
  made.arena = kind.arena;
  if (kind.tls) {
    auto context = tls_context::load(
      {certificates / "ca.pem", certificates / "all.pem", certificates / "all.key"}, role::server);
    if (!context)
      throw std::runtime_error{context.error().text};
    made.tls = *std::move(context);
  }
  return made;
}

} // namespace troupe::bench
