// Names an etcd and the place of a job in it.
#pragma once

#include "base/endpoint.hpp"
#include "base/error.hpp"

#include <string>
#include <vector>

namespace troupe::storage {

/// The address of etcd, and the job's name there.
struct etcd_address {
  std::vector<endpoint> endpoints; ///< Members of one etcd cluster; at least one.
  std::string job;                 ///< Empty if the URL has none.
};

/// Reads "etcd://HOST:PORT[,HOST:PORT...][/JOB]"; an IPv6 address in brackets. Errors:
/// invalid_argument.
result<etcd_address> parse_etcd_url(const std::string& text);

} // namespace troupe::storage
