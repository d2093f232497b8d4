#include "storage/detail/unsynced_files.hpp"

#include "rocksdb/file_system.h"

#include <string>
#include <utility>

namespace troupe::storage::detail {

namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

class unsynced_file : public rocksdb::FSWritableFileOwnerWrapper {
public:
  using FSWritableFileOwnerWrapper::FSWritableFileOwnerWrapper;

  IOStatus Sync(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Fsync(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus RangeSync(std::uint64_t, std::uint64_t, const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
};

class unsynced_directory : public rocksdb::FSDirectoryWrapper {
public:
  using FSDirectoryWrapper::FSDirectoryWrapper;

  IOStatus Fsync(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus FsyncWithDirOptions(const IOOptions&, IODebugContext*,
                               const rocksdb::DirFsyncOptions&) override {
    return IOStatus::OK();
  }
};

class unsynced_file_system : public rocksdb::FileSystemWrapper {
public:
  using FileSystemWrapper::FileSystemWrapper;

  const char* Name() const override { return "troupe_unsynced"; }

  IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* made,
                           IODebugContext* context) override {
    auto status = FileSystemWrapper::NewWritableFile(name, options, made, context);
    if (status.ok())
      *made = std::make_unique<unsynced_file>(std::move(*made));
    return status;
  }

  IOStatus NewDirectory(const std::string& name, const IOOptions& options,
                        std::unique_ptr<rocksdb::FSDirectory>* made,
                        IODebugContext* context) override {
    auto status = FileSystemWrapper::NewDirectory(name, options, made, context);
    if (status.ok())
      *made = std::make_unique<unsynced_directory>(std::move(*made));
    return status;
  }
};

} // namespace

std::unique_ptr<rocksdb::Env> make_unsynced_environment() {
  return rocksdb::NewCompositeEnv(
    std::make_shared<unsynced_file_system>(rocksdb::FileSystem::Default()));
}

} // namespace troupe::storage::detail
