// Where things lie in a state directory.
#pragma once

#include "serialization/ids.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe::storage::detail {

std::filesystem::path checkpoints_path(const std::filesystem::path& directory);
/// DIR/checkpoints/00000012; numbers of more than eight digits are written out.
std::filesystem::path checkpoint_path(const std::filesystem::path& directory,
                                      std::uint64_t checkpoint);
/// DIR/servers/1/chain-3
std::filesystem::path live_path(const std::filesystem::path& directory, server_id server,
                                chain_id chain);
/// "chain-3", a chain's folder within a checkpoint.
std::string part_name(chain_id chain);
/// "checkpoint 12 in DIR", for people.
std::string title(const std::filesystem::path& directory, std::uint64_t checkpoint);

inline constexpr const char* manifest_name = "manifest.json";
inline constexpr const char* commit_name = "COMMIT";

} // namespace troupe::storage::detail
