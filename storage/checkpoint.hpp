// Writes, commits, verifies and reads checkpoints. A checkpoint is the state of servers at a cut.
//
//   DIR/servers/S/chain-K/          live RocksDB of server S: the last written state of each block
//   DIR/checkpoints/00000012/chain-K/...   verified copy of it at the cut
//   DIR/checkpoints/00000012/manifest.json  every file with size and checksum, and the job
//   DIR/checkpoints/00000012/COMMIT         checksum of the manifest; makes it a checkpoint
//   DIR/coordinator/                RocksDB of the coordinator, unless its state is in etcd
//
// All classes block; they belong on a thread of their own. This header includes all of them.
#pragma once

#include "base/system/directory_lock.hpp"
#include "storage/checkpoint_directory.hpp"
#include "storage/checkpoint_reader.hpp"
#include "storage/checkpoint_writer.hpp"
#include "storage/coordinator_store.hpp"
#include "storage/cut.hpp"
#include "storage/manifest.hpp"
