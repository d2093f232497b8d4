// A client of etcd v3 over its JSON gateway: the few calls that a coordinator needs.
#pragma once

#include "base/error.hpp"
#include "storage/etcd_address.hpp"

#include "nlohmann/json_fwd.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::storage {

struct etcd_value {
  std::string bytes;
  std::int64_t created = 0;  ///< Revision of etcd when the key was made; never repeats.
  std::int64_t modified = 0; ///< Revision of the last write.
  std::int64_t lease = 0;    ///< The lease whose end removes the key; 0: none.
};

/// A lease ends with its keys unless it is kept alive.
struct etcd_lease {
  std::int64_t id = 0;
  std::chrono::seconds time{0}; ///< At least the requested time.
};

/// A write that happens only if all conditions hold at that moment.
struct etcd_transaction {
  /// An absent key has revision 0 for both.
  struct condition {
    std::string key;
    enum { created, modified } what = created;
    std::int64_t revision = 0;
  };
  std::vector<condition> when;
  std::string key;
  std::optional<std::string> bytes; ///< Nullopt: the key is removed.
  std::int64_t lease = 0;
};

struct etcd_outcome {
  bool written = false;
  std::int64_t revision = 0; ///< Revision of the write.
  /// If not written: those keys of the conditions that exist.
  std::map<std::string, etcd_value> present;
};

/// Thread-safe; blocks. Every call has a deadline. Within it the endpoints are tried in turn,
/// beginning with the last one that answered. Keys and values may be any bytes.
///
/// Errors of all calls: peer_lost (no endpoint is reached), timed_out, not_ready (no quorum),
/// malformed (the endpoint is not etcd), io_failed (etcd refuses, for example for lack of space).
/// After one of the first three, the write may have happened, or may still happen.
class etcd_client {
public:
  using milliseconds = std::chrono::milliseconds;

  explicit etcd_client(std::vector<endpoint> endpoints);

  /// Returns the value that a majority holds. Idempotent.
  result<std::optional<etcd_value>> get(const std::string& key, milliseconds deadline) const;
  result<etcd_outcome> write(const etcd_transaction& what, milliseconds deadline) const;

  result<etcd_lease> grant_lease(std::chrono::seconds time, milliseconds deadline) const;
  /// Renews the lease and returns the time left from now on; 0: the lease is gone. Idempotent.
  result<std::chrono::seconds> keep_alive(std::int64_t lease, milliseconds deadline) const;

private:
  result<nlohmann::json> call(const char* path, const nlohmann::json& request,
                              milliseconds deadline) const;

  std::vector<endpoint> endpoints_;
  mutable std::atomic<std::size_t> preferred_ = 0; ///< The last endpoint that answered.
};

} // namespace troupe::storage
