// Writing a chain's share of a checkpoint, and what its server keeps of it.
#pragma once

#include "base/error.hpp"
#include "serialization/messages.hpp"
#include "storage/cut.hpp"

#include <filesystem>
#include <memory>

namespace troupe::storage {

/// Writes a chain's cuts. Only blocks that changed since the last cut are written anew: a block is
/// unchanged where its version is the same and its handles are those of the last cut (or copies).
class checkpoint_writer {
public:
  /// Empties DIR/servers/S/chain-K, but for what was kept there, and opens it.
  /// Errors: in_use, io_failed.
  static result<std::unique_ptr<checkpoint_writer>> open(const std::filesystem::path& directory,
                                                         server_id server, chain_id chain);
  ~checkpoint_writer();

  /// Stores the cut in the live database (dirty blocks, then in one batch marks + versions +
  /// 'cut complete'), copies it to checkpoints/N/chain-K, syncs, reads every file back and
  /// checks it. On error nothing of this cut remains, and the writer may be used again.
  /// A part of the same number that was not committed is replaced. A cut of no checkpoint is only
  /// kept; what it makes superfluous goes once its base is whole.
  /// Errors: io_failed (a full disk, say), damaged.
  result<checkpoint_part> write(const cut& what);

private:
  class state;
  explicit checkpoint_writer(std::unique_ptr<state> opened);
  std::unique_ptr<state> state_;
};

} // namespace troupe::storage
