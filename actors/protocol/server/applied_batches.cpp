#include "actors/protocol/server/applied_batches.hpp"

#include <algorithm>

namespace troupe {

std::vector<shard_partition> applied_of(const std::vector<partition_image>& images) {
  std::vector<shard_partition> all;
  for (const auto& x : images)
    all.push_back({x.partition, x.version, x.applied});
  return all;
}

applied_batches::applied_batches(const std::vector<shard_partition>& partitions,
                                 std::size_t tables) {
  for (const shard_partition& p : partitions) {
    version_max_ = std::max(version_max_, p.version);
    auto applied = p.applied;
    applied.resize(tables);
    auto found = std::find_if(groups_.begin(), groups_.end(),
                              [&](const group& x) { return x.applied == applied; });
    if (found == groups_.end())
      found = groups_.insert(groups_.end(), group{std::move(applied), {}});
    found->partitions.push_back(p.partition);
    order_.emplace_back(p.partition, static_cast<std::size_t>(found - groups_.begin()));
  }
}

bool applied_batches::contains(table_id table, batch_id batch) const {
  return std::all_of(groups_.begin(), groups_.end(),
                     [&](const group& x) { return x.applied[table.value].contains(batch); });
}

void applied_batches::insert(const std::vector<table_id>& tables, batch_id batch) {
  for (group& x : groups_)
    for (const table_id table : tables)
      x.applied[table.value].insert(batch);
}

std::vector<std::pair<table_id, partition_id>>
applied_batches::pairs(const std::vector<table_id>& tables, batch_id batch) const {
  std::vector<std::pair<table_id, partition_id>> found;
  for (const table_id table : tables)
    for (const group& x : groups_)
      if (x.applied[table.value].contains(batch))
        for (const partition_id partition : x.partitions)
          found.emplace_back(table, partition);
  return found;
}

batch_id applied_batches::floor(const std::vector<table_id>& tables, batch_id end) const {
  for (const group& x : groups_)
    for (const table_id table : tables)
      end = std::min(end, x.applied[table.value].floor());
  return end;
}

batch_set applied_batches::everywhere(batch_id end) const {
  batch_set all{end};
  for (const group& x : groups_)
    for (const batch_set& applied : x.applied)
      all.intersect(applied);
  return all;
}

std::vector<shard_partition> applied_batches::partitions(std::uint64_t version) const {
  std::vector<shard_partition> made;
  for (const auto& [partition, of] : order_)
    made.push_back({partition, version, groups_[of].applied});
  return made;
}

} // namespace troupe
