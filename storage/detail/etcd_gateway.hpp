// Sends one HTTP request to one member of etcd and interprets its answer.
#pragma once

#include "base/error.hpp"
#include "storage/etcd_client.hpp"

#include "nlohmann/json.hpp"

#include <chrono>
#include <string>

namespace troupe::storage::detail {

/// Returns the answer. Errors: as those of etcd_client.
result<nlohmann::json> ask_etcd(const endpoint& where, const std::string& path,
                                const nlohmann::json& request, std::chrono::milliseconds deadline);

} // namespace troupe::storage::detail
