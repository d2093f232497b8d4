// The file system of live databases, which never syncs: they need not survive a crash.
#pragma once

#include "rocksdb/env.h"

#include <memory>

namespace troupe::storage::detail {

/// Returns the default environment, except that syncing does nothing. Opening a live database
/// empties it, and the writer syncs its verified copies. With syncs each byte would have to reach
/// the disk twice before a checkpoint is done.
std::unique_ptr<rocksdb::Env> make_unsynced_environment();

} // namespace troupe::storage::detail
