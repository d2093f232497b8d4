// Names the files and folders of a state directory.
#pragma once

#include "base/error.hpp"
#include "serialization/ids.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace troupe::storage::detail {

std::filesystem::path checkpoints_path(const std::filesystem::path& directory);
/// Returns DIR/checkpoints/00000012; larger numbers have more digits.
std::filesystem::path checkpoint_path(const std::filesystem::path& directory,
                                      std::uint64_t checkpoint);
/// Returns DIR/servers/1/chain-3.
std::filesystem::path live_path(const std::filesystem::path& directory, server_id server,
                                shard_id shard);
/// Return DIR/servers/1/chain-3/base-17 and log-17, a replica's local snapshot and log.
std::filesystem::path base_path(const std::filesystem::path& live, std::uint64_t sequence);
std::filesystem::path log_path(const std::filesystem::path& live, std::uint64_t sequence);
/// Returns the number in such a name; nullopt for other names.
std::optional<std::uint64_t> kept_sequence(const std::string& name);
/// Returns "chain-3", a chain's folder within a checkpoint.
std::string part_name(shard_id shard);
/// Returns "checkpoint 12 in DIR", for people.
std::string title(const std::filesystem::path& directory, std::uint64_t checkpoint);
/// Returns errc::damaged with "checkpoint 12 in DIR is damaged: " and the reason.
failure damaged_checkpoint(const std::filesystem::path& directory, std::uint64_t checkpoint,
                           const std::string& why);

inline constexpr const char* manifest_name = "manifest.json";
inline constexpr const char* commit_name = "COMMIT";
inline constexpr const char* damage_name = "DAMAGED"; ///< The reason why a committed checkpoint is
                                                      ///< not used any more.
inline constexpr const char* base_name = "BASE";      ///< In a base: its base_id.

} // namespace troupe::storage::detail
