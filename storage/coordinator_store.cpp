// One record under the key "state": u32 format (2), u32 crc32c of what follows, u64 term,
// u64 generation, u64 job, u64 committed, u64 n, u32[n] server of each partition; little-endian.
// Format 1 is the same without `committed`.
#include "storage/coordinator_store.hpp"

#include "storage/detail/bytes.hpp"
#include "storage/detail/crc32c.hpp"
#include "storage/detail/database.hpp"
#include "storage/directory_lock.hpp"

#include "rocksdb/db.h"

#include <optional>
#include <string>
#include <utility>

namespace troupe::storage {

namespace fs = std::filesystem;

namespace {

constexpr std::uint32_t format = 2;
constexpr std::size_t envelope_bytes = 8;
constexpr const char* state_key = "state";

} // namespace

std::string encode(const coordinator_state& what) {
  detail::byte_writer body;
  body.little(what.term).little(what.generation.value).little(what.job).little(what.committed);
  body.little(std::uint64_t{what.server_of.size()});
  for (const auto server : what.server_of)
    body.little(server.value);
  const auto bytes = body.take();
  const auto sum = detail::crc32c(detail::bytes_of(bytes));
  return detail::byte_writer{}.little(format).little(sum).take() + bytes;
}

std::optional<coordinator_state> decode(std::string_view bytes) {
  if (bytes.size() < envelope_bytes)
    return std::nullopt;
  detail::byte_reader reader{bytes};
  const auto read_format = reader.little<std::uint32_t>();
  const auto sum = reader.little<std::uint32_t>();
  const auto body = detail::bytes_of(bytes.substr(envelope_bytes));
  if (read_format < 1 || read_format > format || sum != detail::crc32c(body))
    return std::nullopt;
  coordinator_state what;
  what.term = reader.little<std::uint64_t>();
  what.generation.value = reader.little<std::uint64_t>();
  what.job = reader.little<std::uint64_t>();
  if (read_format >= 2)
    what.committed = reader.little<std::uint64_t>();
  const auto count = reader.little<std::uint64_t>();
  if (count != reader.left() / sizeof(std::uint32_t))
    return std::nullopt;
  for (std::uint64_t i = 0; i < count; ++i)
    what.server_of.push_back({reader.little<std::uint32_t>()});
  return reader.complete() ? std::optional{std::move(what)} : std::nullopt;
}

namespace {

rocksdb::Options store_options() {
  auto options = detail::small_database();
  options.create_if_missing = true;
  // The end of the log may be half a record, which nobody was told of; damage elsewhere is damage.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.write_buffer_size = std::size_t{1} << 20; // The state has some hundred bytes.
  return options;
}

class coordinator_database : public coordinator_store {
public:
  coordinator_database(fs::path home, directory_lock lock)
      : home_(std::move(home)), lock_(std::move(lock)) {}

  result<void> open() {
    rocksdb::DB* opened = nullptr;
    const auto status = rocksdb::DB::Open(store_options(), (home_ / "db").string(), &opened);
    database_.reset(opened);
    if (!status.ok())
      return detail::database_failure("open", home_, status);
    return {};
  }

  result<coordinator_state> load() override {
    std::string bytes;
    const auto status = database_->Get({}, state_key, &bytes);
    if (status.IsNotFound())
      return coordinator_state{};
    if (!status.ok())
      return detail::database_failure("read", home_, status);
    auto what = decode(bytes);
    if (!what)
      return {errc::damaged, "the coordinator's state is damaged: " + home_.string()};
    return *std::move(what);
  }

  result<void> save(const coordinator_state& what) override {
    rocksdb::WriteOptions options;
    options.sync = true;
    options.protection_bytes_per_key = 8;
    if (const auto status = database_->Put(options, state_key, encode(what)); !status.ok())
      return detail::database_failure("write", home_, status);
    return {};
  }

private:
  fs::path home_;
  directory_lock lock_; // Outlives the database.
  std::unique_ptr<rocksdb::DB> database_;
};

} // namespace

result<std::unique_ptr<coordinator_store>> coordinator_store::open(const fs::path& directory) {
  const auto home = directory / "coordinator";
  auto lock = directory_lock::acquire(home);
  if (!lock)
    return lock.error();
  auto made = std::make_unique<coordinator_database>(home, *std::move(lock));
  if (auto opened = made->open(); !opened)
    return opened.error();
  return std::unique_ptr<coordinator_store>{std::move(made)};
}

result<void> coordinator_store::forget(const fs::path& directory) {
  const auto home = directory / "coordinator";
  std::error_code error;
  if (!fs::exists(home / "db", error))
    return {};
  const auto lock = directory_lock::acquire(home);
  if (!lock)
    return lock.error();
  if (auto status = rocksdb::DestroyDB((home / "db").string(), store_options()); !status.ok())
    return detail::database_failure("remove", home, status);
  return {};
}

} // namespace troupe::storage
