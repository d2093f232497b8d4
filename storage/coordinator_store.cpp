// Stores one record under the key "state": u32 format (4), u32 crc32c of the rest, u64 term, u64
// generation, u64 job, u64 committed, u64 n, u32[n] chain of each partition, u64 m, m records of
// chains, u64 k, u32[k] servers, u64 l, u32[l] draining servers, u8 whether it is rolling back;
// little-endian.
// A record of a chain: active configuration, u64 base checkpoint, u8 whether there is a proposal,
// the proposed configuration. A configuration: u64 number, u64 generation, u64 number of members,
// the members, u8 whether there is a joiner, the joiner. A member: u32 index, u64 incarnation.
#include "storage/coordinator_store.hpp"

#include "base/bytes.hpp"
#include "base/crc32c.hpp"
#include "base/system/directory_lock.hpp"
#include "base/system/resource_limits.hpp"
#include "storage/detail/database.hpp"

#include "rocksdb/db.h"

#include <optional>
#include <string>
#include <utility>

namespace troupe::storage {

namespace fs = std::filesystem;

namespace {

constexpr std::uint32_t state_format = 4;
constexpr std::size_t state_envelope_bytes = 8;
constexpr const char* state_key = "state";

void write(detail::byte_writer& to, const member_id& who) {
  to.little(who.index).little(who.incarnation.value);
}

void write(detail::byte_writer& to, const chain_config& what) {
  to.little(what.config.value).little(what.generation.value);
  to.little(std::uint64_t{what.members.size()});
  for (const auto& who : what.members)
    write(to, who);
  to.little(std::uint8_t{what.joiner.has_value()});
  if (what.joiner)
    write(to, *what.joiner);
}

void write(detail::byte_writer& to, const chain_metadata& what) {
  write(to, what.active);
  to.little(what.base_checkpoint).little(std::uint8_t{what.proposed.has_value()});
  if (what.proposed)
    write(to, *what.proposed);
}

member_id read_member(detail::byte_reader& from) {
  const server_id index{from.little<std::uint32_t>()};
  return member_of(index, {from.little<std::uint64_t>()});
}

chain_config read_config(detail::byte_reader& from) {
  chain_config what;
  what.config.value = from.little<std::uint64_t>();
  what.generation.value = from.little<std::uint64_t>();
  for (auto n = from.little<std::uint64_t>(); n > 0 && from.left() > 0; --n)
    what.members.push_back(read_member(from));
  if (from.little<std::uint8_t>() != 0)
    what.joiner = read_member(from);
  return what;
}

chain_metadata read_record(detail::byte_reader& from) {
  chain_metadata what{read_config(from), 0, {}};
  what.base_checkpoint = from.little<std::uint64_t>();
  if (from.little<std::uint8_t>() != 0)
    what.proposed = read_config(from);
  return what;
}

} // namespace

std::string encode(const coordinator_state& what) {
  detail::byte_writer body;
  body.little(what.term).little(what.generation.value).little(what.job).little(what.committed);
  body.little(std::uint64_t{what.shard_of.size()});
  for (const auto chain : what.shard_of)
    body.little(chain.value);
  body.little(std::uint64_t{what.chains.size()});
  for (const auto& record : what.chains)
    write(body, record);
  for (const auto* all : {&what.servers, &what.draining}) {
    body.little(std::uint64_t{all->size()});
    for (const auto server : *all)
      body.little(server.value);
  }
  body.little(std::uint8_t{what.rolling_back});
  const auto bytes = body.take();
  const auto sum = detail::crc32c(detail::bytes_of(bytes));
  return detail::byte_writer{}.little(state_format).little(sum).take() + bytes;
}

std::optional<coordinator_state> decode(std::string_view bytes) {
  if (bytes.size() < state_envelope_bytes)
    return std::nullopt;
  detail::byte_reader reader{bytes};
  const auto read_format = reader.little<std::uint32_t>();
  const auto sum = reader.little<std::uint32_t>();
  const auto body = detail::bytes_of(bytes.substr(state_envelope_bytes));
  if (read_format != state_format || sum != detail::crc32c(body))
    return std::nullopt;
  coordinator_state what;
  what.term = reader.little<std::uint64_t>();
  what.generation.value = reader.little<std::uint64_t>();
  what.job = reader.little<std::uint64_t>();
  what.committed = reader.little<std::uint64_t>();
  for (auto n = reader.little<std::uint64_t>(); n > 0 && reader.left() > 0; --n)
    what.shard_of.push_back({reader.little<std::uint32_t>()});
  for (auto n = reader.little<std::uint64_t>(); n > 0 && reader.left() > 0; --n)
    what.chains.push_back(read_record(reader));
  for (auto* all : {&what.servers, &what.draining})
    for (auto n = reader.little<std::uint64_t>(); n > 0 && reader.left() > 0; --n)
      all->insert({reader.little<std::uint32_t>()});
  what.rolling_back = reader.little<std::uint8_t>() != 0;
  return reader.complete() ? std::optional{std::move(what)} : std::nullopt;
}

namespace {

rocksdb::Options store_options() {
  auto options = detail::small_database();
  options.create_if_missing = true;
  // The log may end with half a record, which no process was told of. Other damage is an error.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.write_buffer_size = std::size_t{1} << 20; // The state has a few hundred bytes.
  return options;
}

class coordinator_database : public coordinator_store {
public:
  coordinator_database(fs::path home, directory_lock lock)
      : home_(std::move(home)), lock_(std::move(lock)) {}

  result<void> open() {
    rocksdb::DB* opened = nullptr;
    const auto status = without_unwinding(
      [&] { return rocksdb::DB::Open(store_options(), (home_ / "db").string(), &opened); });
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
      return {errc::damaged,
              "the coordinator's state is damaged, or of another version: " + home_.string()};
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

bool forget_servers(coordinator_state& what) {
  if (what.servers.empty() && what.draining.empty())
    return false;
  what.servers.clear();
  what.draining.clear();
  return true;
}

result<void> coordinator_store::prepare_resume(const fs::path& directory) {
  std::error_code error;
  if (!fs::exists(directory / "coordinator" / "db", error))
    return {};
  const auto store = open(directory);
  if (!store)
    return store.error();
  auto state = (*store)->load();
  if (!state)
    return state.error();
  return forget_servers(*state) ? (*store)->save(*state) : result<void>{};
}

} // namespace troupe::storage
