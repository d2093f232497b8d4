#include "storage/checkpoint_writer.hpp"

#include "base/system/directory_lock.hpp"
#include "base/system/file.hpp"
#include "storage/detail/live_database.hpp"
#include "storage/detail/paths.hpp"
#include "storage/local_state.hpp"

#include <algorithm>
#include <cassert>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace troupe::storage {

namespace fs = std::filesystem;

namespace {

result<std::vector<std::string>> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at{directory, error}, end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename().string());
  if (error)
    return io_failure("list", directory, error);
  std::sort(names.begin(), names.end());
  return names;
}

/// Returns false for RocksDB's record of options: they are given when a checkpoint is opened.
bool is_needed(const std::string& name) { return !name.starts_with("OPTIONS-"); }

} // namespace

class checkpoint_writer::state {
public:
  state(fs::path directory, server_id server, shard_id shard, directory_lock lock)
      : directory_(std::move(directory)), home_(detail::live_path(directory_, server, shard)),
        staging_(home_ / "staging"), shard_(shard), lock_(std::move(lock)),
        database_(home_ / "db") {}

  result<void> empty() {
    const auto names = names_in(home_);
    if (!names)
      return names.error();
    for (const auto& name : *names)
      if (name != "LOCK" && !detail::kept_sequence(name))
        if (auto removed = remove_tree(home_ / name); !removed)
          return removed;
    return {};
  }

  result<checkpoint_part> write(const cut& what) {
    assert(what.shard == shard_);
    auto part = what.checkpoint == 0 ? store(what) : write_part(what);
    if (!part || !what.base)
      return part;
    if (auto kept = keep(*what.base, what.bases_from); !kept)
      return kept.error();
    return part;
  }

private:
  result<checkpoint_part> store(const cut& what) {
    if (auto stored = database_.store(what); !stored)
      return stored.error();
    return checkpoint_part{0, shard_, {}, 0};
  }

  result<checkpoint_part> write_part(const cut& what) {
    const auto home = detail::checkpoint_path(directory_, what.checkpoint);
    std::error_code error;
    if (fs::exists(home / detail::commit_name, error))
      return {errc::io_failed,
              detail::title(directory_, what.checkpoint) + " is committed, it cannot be replaced"};
    const auto target = home / detail::part_name(shard_);
    auto part = write_to(what, target);
    // Best effort: remains are not committed, and the next attempt removes them first.
    (void)remove_tree(staging_);
    if (!part) {
      database_.discard();
      (void)remove_tree(target);
      fs::remove(home, error); // Succeeds only if no other shard has a part in it.
    }
    return part;
  }

  /// Makes the live database's content the newest base, by hard links: whole or not at all.
  result<void> keep(const base_id& base, std::uint64_t oldest) {
    const auto fresh = home_ / "base-new";
    if (auto removed = remove_tree(fresh); !removed)
      return removed;
    if (const auto sums = database_.link_to(fresh); !sums)
      return sums.error();
    if (auto named = replace_file(fresh / detail::base_name, encode(base)); !named)
      return named;
    std::error_code error;
    fs::rename(fresh, detail::base_path(home_, base.sequence), error);
    if (error)
      return io_failure("rename", fresh, error);
    if (auto synced = sync_directory(home_); !synced)
      return synced; // Older bases must not be removed first.
    const auto names = names_in(home_);
    if (!names)
      return names.error();
    for (const auto& name : *names)
      if (const auto sequence = detail::kept_sequence(name); sequence && *sequence < oldest)
        (void)remove_tree(home_ / name); // On failure the next call tries again.
    return {};
  }

  result<checkpoint_part> write_to(const cut& what, const fs::path& target) {
    for (const auto& old : {staging_, target})
      if (auto removed = remove_tree(old); !removed)
        return removed.error();
    if (auto stored = database_.store(what); !stored)
      return stored.error();
    const auto sums = database_.link_to(staging_);
    if (!sums)
      return sums.error();
    if (auto made = make_directory(target); !made)
      return made.error();
    auto part = copy(what, target, *sums);
    if (!part)
      return part;
    for (const auto& parent : {target, target.parent_path(), detail::checkpoints_path(directory_)})
      if (auto synced = sync_directory(parent); !synced)
        return synced.error();
    if (auto checked = read_back(*part); !checked)
      return checked.error();
    return part;
  }

  result<checkpoint_part> copy(const cut& what, const fs::path& target,
                               const std::map<std::string, std::uint32_t>& sums) const {
    const auto names = names_in(staging_);
    if (!names)
      return names.error();
    checkpoint_part part{what.checkpoint, shard_, {}, 0};
    for (const auto& name : *names) {
      if (!is_needed(name))
        continue;
      const auto sum = troupe::copy_file(staging_ / name, target / name);
      if (!sum)
        return sum.error();
      // The live files may have been damaged since RocksDB wrote them, maybe many cuts ago.
      if (const auto known = sums.find(name); known != sums.end() && known->second != sum->crc32c)
        return {errc::damaged, "a file of the live database changed after it had been written: "
                                 + (home_ / "db" / name).string()};
      part.files.push_back({detail::part_name(shard_) + "/" + name, sum->size_bytes, sum->crc32c});
    }
    for (const auto& partition : what.partitions)
      part.version = std::max(part.version, partition.version);
    return part;
  }

  result<void> read_back(const checkpoint_part& part) const {
    const auto home = detail::checkpoint_path(directory_, part.checkpoint);
    for (const auto& file : part.files) {
      const auto sum = sum_file(home / file.name, /* from_disk = */ true);
      if (!sum)
        return sum.error();
      if (*sum != file_sum{file.size_bytes, file.crc32c})
        return {errc::damaged,
                "a file differs from what was written to it: " + (home / file.name).string()};
    }
    return {};
  }

  fs::path directory_;
  fs::path home_;    ///< DIR/servers/S/chain-K.
  fs::path staging_; ///< Hard links to the live files while they are copied.
  shard_id shard_;
  directory_lock lock_;
  detail::live_database database_;
};

checkpoint_writer::checkpoint_writer(std::unique_ptr<state> opened) : state_(std::move(opened)) {}
checkpoint_writer::~checkpoint_writer() = default;

result<std::unique_ptr<checkpoint_writer>>
checkpoint_writer::open(const fs::path& directory, server_id server, shard_id shard) {
  auto lock = directory_lock::acquire(detail::live_path(directory, server, shard));
  if (!lock)
    return lock.error();
  auto opened = std::make_unique<state>(directory, server, shard, *std::move(lock));
  if (auto emptied = opened->empty(); !emptied)
    return emptied.error();
  return std::unique_ptr<checkpoint_writer>{new checkpoint_writer{std::move(opened)}};
}

result<checkpoint_part> checkpoint_writer::write(const cut& what) { return state_->write(what); }

} // namespace troupe::storage
