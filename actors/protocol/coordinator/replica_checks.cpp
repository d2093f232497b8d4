#include "actors/protocol/coordinator/replica_checks.hpp"

#include <cstddef>
#include <cstdio>
#include <string>

namespace troupe {

namespace {

/// Versions that are kept of a shard. Replicas report their last 64, at different times.
constexpr std::size_t versions_kept = 512;

std::string hex_text(std::uint32_t x) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", x);
  return text;
}

} // namespace

result<void> replica_checks::hear(const member_id& from, const replica_status& what) {
  if (what.checksums.empty())
    return {};
  auto& [generation, versions] = chains_[what.shard];
  if (what.status.generation < generation)
    return {};
  if (generation < what.status.generation)
    versions.clear();
  generation = what.status.generation;
  for (const auto& x : what.checksums) {
    const auto& [at, fresh] = versions.try_emplace(x.version, checked{x.crc32c, from.index});
    if (const auto& known = at->second; known.crc32c != x.crc32c)
      return {errc::contract_broken,
              "shard " + std::to_string(what.shard.value) + " has other values on server "
                + std::to_string(from.index) + " than on server " + std::to_string(known.server)
                + " after version " + std::to_string(x.version) + " (" + hex_text(x.crc32c) + ", "
                + hex_text(known.crc32c)
                + "): a server function reads more than its arguments, or memory is faulty"};
  }
  while (versions.size() > versions_kept)
    versions.erase(versions.begin());
  return {};
}

} // namespace troupe
