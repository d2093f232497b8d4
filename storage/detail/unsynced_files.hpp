// The file system of live databases, which no crash needs to survive: nothing is ever synced.
#pragma once

#include "rocksdb/env.h"

#include <memory>

namespace troupe::storage::detail {

/// The default environment, except that syncing does nothing. A live database is emptied whenever
/// it is opened and its verified copies are synced by their writer; without this each byte would
/// have to reach the disk twice before a checkpoint is done.
std::unique_ptr<rocksdb::Env> make_unsynced_environment();

} // namespace troupe::storage::detail
