#include "storage/detail/paths.hpp"

#include <charconv>
#include <string_view>

namespace troupe::storage::detail {

namespace fs = std::filesystem;

namespace {

constexpr const char* base_prefix = "base-";
constexpr const char* log_prefix = "log-";

} // namespace

fs::path checkpoints_path(const fs::path& directory) { return directory / "checkpoints"; }

fs::path checkpoint_path(const fs::path& directory, std::uint64_t checkpoint) {
  auto digits = std::to_string(checkpoint);
  if (digits.size() < 8)
    digits.insert(0, 8 - digits.size(), '0');
  return checkpoints_path(directory) / digits;
}

fs::path live_path(const fs::path& directory, server_id server, shard_id shard) {
  return directory / "servers" / std::to_string(server.value) / part_name(shard);
}

fs::path base_path(const fs::path& live, std::uint64_t sequence) {
  return live / (base_prefix + std::to_string(sequence));
}

fs::path log_path(const fs::path& live, std::uint64_t sequence) {
  return live / (log_prefix + std::to_string(sequence));
}

std::optional<std::uint64_t> kept_sequence(const std::string& name) {
  for (const std::string_view prefix : {base_prefix, log_prefix}) {
    std::uint64_t number = 0;
    const auto* const end = name.data() + name.size();
    if (name.starts_with(prefix)
        && std::from_chars(name.data() + prefix.size(), end, number).ptr == end)
      return number;
  }
  return std::nullopt;
}

std::string part_name(shard_id shard) { return "chain-" + std::to_string(shard.value); }

std::string title(const fs::path& directory, std::uint64_t checkpoint) {
  return "checkpoint " + std::to_string(checkpoint) + " in " + directory.string();
}

failure damaged_checkpoint(const fs::path& directory, std::uint64_t checkpoint,
                           const std::string& why) {
  return {errc::damaged, title(directory, checkpoint) + " is damaged: " + why};
}

} // namespace troupe::storage::detail
