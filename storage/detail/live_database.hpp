// A server's own RocksDB: the last written state of each of its blocks and slabs. All values are in
// memory, so the database may be discarded and rewritten at any time. This replaces both compaction
// and repair.
#pragma once

#include "base/error.hpp"
#include "storage/cut.hpp"

#include "rocksdb/db.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe::storage::detail {

/// Invariants:
/// (1) while database_ is open, it holds exactly the blocks and slabs of known_, with the content
///     of the remembered memory: store() changes both, and any error discards both.
/// (2) space: obsolete blocks are at most about as large as the valid ones; store() starts anew
///     if that costs fewer bytes than adding to the stored ones.
class live_database {
public:
  explicit live_database(std::filesystem::path directory);
  ~live_database();

  /// Writes changed blocks, then applied batches, versions and 'cut complete' in one batch, and
  /// flushes. Errors: io_failed, damaged; the database is then discarded.
  result<void> store(const cut& what);

  /// Makes `target` (absent, same file system) a consistent copy by hard links. Returns the
  /// checksums that RocksDB computed of its table files while writing them, by file name. Errors:
  /// io_failed, damaged; the database is then discarded.
  result<std::map<std::string, std::uint32_t>> link_to(const std::filesystem::path& target);

  /// Closes the database and removes its files.
  void discard();

private:
  /// Identifies the content of a block or slab by its version and its memory, which is never
  /// written to while a cut has it. Versions alone could repeat after a rollback. The pointers are
  /// weak and keep no memory alive.
  struct identity {
    std::uint64_t version = 0;
    std::weak_ptr<const float> values;
    std::weak_ptr<const float> state;
    const float* first_value = nullptr;
    std::uint64_t cut = 0; ///< Serial number of the last cut that had it.
  };

  result<void> open();
  bool is_clean(const std::string& key, std::uint64_t version, const float_ptr& values,
                const float_ptr& state) const;
  bool starting_anew_is_cheaper(const cut& what) const;
  result<void> put_images(const cut& what);
  result<void> put_summary(const cut& what);

  std::filesystem::path directory_;
  std::shared_ptr<rocksdb::Env> environment_;
  std::unique_ptr<rocksdb::DB> database_;
  std::unordered_map<std::string, identity> known_;
  std::vector<partition_id> partitions_; ///< Partitions of the last cut.
  std::uint64_t cuts_ = 0;
};

} // namespace troupe::storage::detail
