// What a coordinator must not forget, and where it is kept: on disk, or in etcd (etcd_store.hpp).
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

/// The bytes that every store keeps.
std::string encode(const coordinator_state& what);
/// Nothing where they are not such bytes, or their checksum does not fit.
std::optional<coordinator_state> decode(std::string_view bytes);
/// As the job began: without those that were added and drained. Returns whether there were any.
bool forget_servers(coordinator_state& what);

class coordinator_store {
public:
  /// DIR/coordinator, a RocksDB. One process at a time.
  /// Errors: in_use (names the directory and the pid), io_failed, damaged.
  static result<std::unique_ptr<coordinator_store>> open(const std::filesystem::path& directory);
  /// Removes what another run stored there, so that a new one does not take it for its own past.
  /// Nothing else that lies there is touched. Errors: in_use, io_failed.
  static result<void> forget(const std::filesystem::path& directory);
  /// A run that resumes has the servers of its command line, whatever there were in the end.
  /// Errors: in_use, io_failed, damaged.
  static result<void> prepare_resume(const std::filesystem::path& directory);

  virtual ~coordinator_store() = default;
  /// A default state where none was saved. Call it before the first save().
  /// Errors: io_failed, damaged, fenced.
  virtual result<coordinator_state> load() = 0;
  /// Replaces the whole state at once. After an error it may be stored or not: open it again.
  /// Errors: io_failed; fenced: another coordinator leads, or may; this one must not act any more.
  virtual result<void> save(const coordinator_state& what) = 0;
  /// Whether whoever opened the store may still act. Costs nothing. Errors: fenced.
  virtual result<void> check_lead() const { return {}; }
};

} // namespace troupe::storage
