// Writes a chain's part of a checkpoint, and the server's local snapshots (bases) of the chain.
#pragma once

#include "base/error.hpp"
#include "serialization/messages.hpp"
#include "storage/cut.hpp"

#include <filesystem>
#include <memory>

namespace troupe::storage {

/// Writes a chain's cuts. Only blocks that changed since the last cut are written anew. A block is
/// unchanged if its version is the same and its handles are those of the last cut, or copies.
class checkpoint_writer {
public:
  /// Empties DIR/servers/S/chain-K, except for bases and logs, and opens it. Errors: in_use,
  /// io_failed.
  static result<std::unique_ptr<checkpoint_writer>> open(const std::filesystem::path& directory,
                                                         server_id server, shard_id shard);
  ~checkpoint_writer();

  /// Stores the cut in the live database: dirty blocks, then in one batch applied batches, versions
  /// and 'cut complete'. Copies it to checkpoints/N/chain-K, syncs, reads every file back and
  /// checks it. Replaces an uncommitted part of the same number. On error no part of this cut
  /// remains, and the writer may be used again.
  ///
  /// A cut without a checkpoint is only kept as a base. Bases and logs that it makes superfluous
  /// are removed once it is whole. Errors: io_failed (for example a full disk), damaged.
  result<checkpoint_part> write(const cut& what);

private:
  class state;
  explicit checkpoint_writer(std::unique_ptr<state> opened);
  std::unique_ptr<state> state_;
};

} // namespace troupe::storage
