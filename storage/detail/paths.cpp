#include "storage/detail/paths.hpp"

namespace troupe::storage::detail {

namespace fs = std::filesystem;

fs::path checkpoints_path(const fs::path& directory) { return directory / "checkpoints"; }

fs::path checkpoint_path(const fs::path& directory, std::uint64_t checkpoint) {
  auto digits = std::to_string(checkpoint);
  if (digits.size() < 8)
    digits.insert(0, 8 - digits.size(), '0');
  return checkpoints_path(directory) / digits;
}

fs::path live_path(const fs::path& directory, server_id server, chain_id chain) {
  return directory / "servers" / std::to_string(server.value) / part_name(chain);
}

std::string part_name(chain_id chain) { return "chain-" + std::to_string(chain.value); }

std::string title(const fs::path& directory, std::uint64_t checkpoint) {
  return "checkpoint " + std::to_string(checkpoint) + " in " + directory.string();
}

} // namespace troupe::storage::detail
