// Stores the coordinator's state: on disk, or in etcd (etcd_store.hpp).
#pragma once

#include "base/error.hpp"
#include "serialization/ids.hpp"
#include "serialization/replication.hpp"
#include "serialization/stored_state.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::storage {

/// Returns the bytes that every store keeps.
std::string encode(const coordinator_state& what);
/// Returns nullopt if the bytes are of another format or their checksum is wrong.
std::optional<coordinator_state> decode(std::string_view bytes);
/// Restores the initial servers, without later additions and drains. Returns whether it changed.
bool forget_servers(coordinator_state& what);

class coordinator_store {
public:
  /// Opens DIR/coordinator, a RocksDB, for one process at a time. Errors: in_use (names the
  /// directory and the pid), io_failed, damaged.
  static result<std::unique_ptr<coordinator_store>> open(const std::filesystem::path& directory);
  /// Removes the state of an earlier run, so that a new run does not take it for its own. Does not
  /// touch other files there. Errors: in_use, io_failed.
  static result<void> forget(const std::filesystem::path& directory);
  /// Makes a resumed run use the servers of its command line, not the last ones of the earlier run.
  /// Errors: in_use, io_failed, damaged.
  static result<void> prepare_resume(const std::filesystem::path& directory);

  virtual ~coordinator_store() = default;
  /// Returns a default state if none was saved. Call it before the first save(). Errors: io_failed,
  /// damaged, fenced.
  virtual result<coordinator_state> load() = 0;
  /// Replaces the whole state at once. After an error it may be stored or not: open it again.
  /// Errors: io_failed; fenced: another coordinator leads, or may, so this one must not act any
  /// more.
  virtual result<void> save(const coordinator_state& what) = 0;
  /// Checks whether the store's opener may still act. Costs no I/O. Errors: fenced.
  virtual result<void> check_lead() const { return {}; }
};

} // namespace troupe::storage
