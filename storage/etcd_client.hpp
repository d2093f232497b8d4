// A client of etcd v3 over its JSON gateway: the few calls that a coordinator needs.
#pragma once

#include "base/error.hpp"

#include "nlohmann/json_fwd.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::storage {

struct etcd_endpoint {
  std::string host;
  std::uint16_t port = 0;

  bool operator==(const etcd_endpoint&) const = default;
};
std::string to_string(const etcd_endpoint& where);

/// Where etcd is, and under which name it knows the job.
struct etcd_address {
  std::vector<etcd_endpoint> endpoints; ///< Members of one etcd cluster; at least one.
  std::string job;                      ///< Empty: none was given.
};

/// "etcd://HOST:PORT[,HOST:PORT...][/JOB]"; an IPv6 address in brackets. Errors: invalid_argument.
result<etcd_address> parse_etcd_url(const std::string& text);

struct etcd_value {
  std::string bytes;
  std::int64_t created = 0;  ///< Revision of etcd when the key was made; never comes again.
  std::int64_t modified = 0; ///< Revision when it was written last.
  std::int64_t lease = 0;    ///< The key goes with it; 0: none.
};

/// A lease goes with its keys unless it is kept alive.
struct etcd_lease {
  std::int64_t id = 0;
  std::chrono::seconds time{0}; ///< At least what was asked for.
};

/// What is to be written, where all conditions hold at that moment.
struct etcd_transaction {
  /// Of a key that is not there both revisions are 0.
  struct condition {
    std::string key;
    enum { created, modified } what = created;
    std::int64_t revision = 0;
  };
  std::vector<condition> when;
  std::string key;
  std::optional<std::string> bytes; ///< Nothing: the key is removed.
  std::int64_t lease = 0;
};

struct etcd_outcome {
  bool written = false;
  std::int64_t revision = 0; ///< Of what was written.
  /// Not written: the keys of the conditions, as far as they are there.
  std::map<std::string, etcd_value> present;
};

/// Thread-safe; blocks. Every call has a deadline, within which the endpoints are tried in turn,
/// beginning with the one that answered last. Keys and values may be any bytes.
/// Errors of all calls: peer_lost (nobody is reached), timed_out, not_ready (no quorum), malformed
/// (who answers is not etcd), io_failed (etcd refuses, such as for lack of space). After one of the
/// first three, what was to be written may have been written, or may still be.
class etcd_client {
public:
  using milliseconds = std::chrono::milliseconds;

  explicit etcd_client(std::vector<etcd_endpoint> endpoints);

  /// What a majority holds. Idempotent.
  result<std::optional<etcd_value>> get(const std::string& key, milliseconds deadline) const;
  result<etcd_outcome> write(const etcd_transaction& what, milliseconds deadline) const;

  result<etcd_lease> grant_lease(std::chrono::seconds time, milliseconds deadline) const;
  /// The time that is left from now on; 0: the lease is gone. Idempotent.
  result<std::chrono::seconds> keep_alive(std::int64_t lease, milliseconds deadline) const;

private:
  result<nlohmann::json> call(const char* path, const nlohmann::json& request,
                              milliseconds deadline) const;

  std::vector<etcd_endpoint> endpoints_;
  mutable std::atomic<std::size_t> preferred_ = 0; ///< The one that answered last.
};

} // namespace troupe::storage
