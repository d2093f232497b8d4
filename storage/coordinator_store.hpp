// What a coordinator must not forget, on disk.
#pragma once

#include "serialization/chain.hpp"
#include "serialization/error.hpp"
#include "serialization/ids.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <vector>

namespace troupe::storage {

/// The few numbers that a coordinator must not forget. Every call is synced to disk.
struct coordinator_state {
  std::uint64_t term = 0; ///< Starts of a coordinator so far.
  generation_id generation;
  std::uint64_t job = 0; ///< fingerprint; 0: none stored.
  std::vector<chain_id> chain_of;
  std::vector<chain_record> chains;
  std::set<server_id> draining; ///< Servers that are to hold nothing any more.
  std::uint64_t committed = 0;  ///< Newest checkpoint of the job that was committed; 0: none.
  bool rolling_back = false;    ///< `generation` was not begun by all chains yet.
};

/// DIR/coordinator, a RocksDB. One process at a time.
class coordinator_store {
public:
  /// Errors: in_use (names the directory and the pid), io_failed, damaged.
  static result<std::unique_ptr<coordinator_store>> open(const std::filesystem::path& directory);
  /// Removes what another run stored, so that a new one does not take it for its own past. Nothing
  /// else that lies there is touched. Errors: in_use, io_failed.
  static result<void> forget(const std::filesystem::path& directory);
  ~coordinator_store();
  /// A default state where none was saved. Errors: io_failed, damaged.
  result<coordinator_state> load() const;
  /// Replaces the whole state at once. After an error the store refuses to save until it is opened
  /// again. Errors: io_failed.
  result<void> save(const coordinator_state& what);

private:
  class state;
  explicit coordinator_store(std::unique_ptr<state> opened);
  std::unique_ptr<state> state_;
};

} // namespace troupe::storage
