// Checkpoints: what a server keeps of a cut, how it is written, committed, verified and read.
//
//   DIR/servers/K/                  live RocksDB of server K: the last written state of each block
//   DIR/checkpoints/00000012/server-K/...   verified copy of it at the cut
//   DIR/checkpoints/00000012/manifest.json  every file with size and checksum, and the job
//   DIR/checkpoints/00000012/COMMIT         checksum of the manifest; without it there is no checkpoint
//
// All classes block; they belong on a thread of their own.
#pragma once

#include "serialization/batch_set.hpp"
#include "serialization/buffer.hpp"
#include "serialization/error.hpp"
#include "serialization/job.hpp"
#include "serialization/messages.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::storage {

/// One block at a cut. The memory is pinned by the handles, not copied.
struct block_image {
  table_id table;
  std::uint64_t block = 0;
  std::uint64_t version = 0;     ///< Changes whenever the content does.
  std::uint64_t steps = 0;       ///< Optimiser steps taken on this block.
  std::uint64_t count = 0;       ///< Elements of `values`.
  float_ptr values;
  std::uint64_t state_count = 0; ///< Elements of `state`; 0 for sgd.
  float_ptr state;               ///< Optimiser state.
};

/// One partition at a cut.
struct partition_image {
  partition_id partition;
  std::uint64_t version = 0;    ///< Updates applied.
  std::vector<batch_set> marks; ///< Batches applied, one set for each table of the job.
  std::vector<block_image> blocks;
};

/// Everything that a server owns, at one moment.
struct cut {
  std::uint64_t checkpoint = 0;
  server_id server;
  std::vector<partition_image> partitions;
  std::vector<clock_entry> clocks;
};

/// What a committed checkpoint consists of.
struct manifest {
  std::uint64_t checkpoint = 0;
  job_spec job;
  generation_id generation;
  std::uint64_t clock = 0;  ///< bsp: clocks applied at the cut; 0 otherwise.
  batch_id cursor;          ///< No batch at or above it had been given out.
  std::vector<checkpoint_part> parts;
};

/// Holds an exclusive lock on a directory (made if absent) for its lifetime, by flock on DIR/LOCK.
class directory_lock {
public:
  /// Errors: in_use (names the directory and the pid that holds it), io_failed.
  static result<directory_lock> acquire(const std::filesystem::path& directory);
  directory_lock(directory_lock&&) noexcept;
  directory_lock& operator=(directory_lock&&) noexcept;
  ~directory_lock();

private:
  explicit directory_lock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

/// Writes a server's cuts. Only blocks whose version differs from the last cut's are written anew.
class checkpoint_writer {
public:
  /// Empties DIR/servers/K and opens it. Errors: in_use, io_failed.
  static result<std::unique_ptr<checkpoint_writer>> open(const std::filesystem::path& directory,
                                                         server_id server);
  ~checkpoint_writer();

  /// Stores the cut in the live database (dirty blocks, then in one batch marks + versions + clocks
  /// + 'cut complete'), copies it to checkpoints/N/server-K, syncs, reads every file back and checks
  /// it. On error nothing of this cut remains, and the writer may be used again.
  /// Errors: io_failed (a full disk, say), damaged.
  result<checkpoint_part> write(const cut& what);

private:
  class state;
  explicit checkpoint_writer(std::unique_ptr<state> opened);
  std::unique_ptr<state> state_;
};

/// Makes checkpoint N exist: manifest, sync, then COMMIT by rename. Errors: io_failed.
result<void> commit(const std::filesystem::path& directory, const manifest& what);

/// Removes all but the newest `keep` (>= 1) committed checkpoints, and uncommitted ones older than
/// the newest committed. Returns the numbers removed.
result<std::vector<std::uint64_t>> retain(const std::filesystem::path& directory, std::size_t keep);

/// What newest_good found.
struct found {
  std::optional<manifest> newest;    ///< None: no usable checkpoint.
  std::vector<failure> refused;      ///< One for each newer one that was passed over, with its name.
};

/// Newest checkpoint that is committed, of this job (fingerprint), and whose every file has the size
/// and checksum of the manifest. An absent directory is an empty one.
/// Errors: wrong_job where the newest committed one belongs to another job; io_failed.
result<found> newest_good(const std::filesystem::path& directory, const job_spec& job);
/// The same for the checkpoint with this number only. Errors: io_failed, damaged, wrong_job.
result<manifest> verify(const std::filesystem::path& directory, std::uint64_t checkpoint,
                        const job_spec& job);
/// Largest number used by any checkpoint, committed or not; 0: none.
std::uint64_t last_number(const std::filesystem::path& directory);

/// Reads the given partitions out of a committed checkpoint, whichever servers wrote them.
/// Checksums are verified while reading. Partitions come back in the order asked for.
/// Errors: io_failed, damaged, wrong_job.
result<std::vector<partition_image>> read(const std::filesystem::path& directory,
                                          std::uint64_t checkpoint, const job_spec& job,
                                          const std::vector<partition_id>& partitions);

/// The few numbers that a coordinator must not forget. Every call is synced to disk.
struct coordinator_state {
  std::uint64_t term = 0;       ///< Starts of a coordinator so far.
  generation_id generation;
  std::uint64_t job = 0;        ///< fingerprint; 0: none stored.
  std::vector<server_id> server_of;
};

/// DIR/coordinator, a RocksDB. One process at a time.
class coordinator_store {
public:
  static result<std::unique_ptr<coordinator_store>> open(const std::filesystem::path& directory);
  ~coordinator_store();
  result<coordinator_state> load() const;
  result<void> save(const coordinator_state& what);

private:
  class state;
  explicit coordinator_store(std::unique_ptr<state> opened);
  std::unique_ptr<state> state_;
};

} // namespace troupe::storage
