// Cuts tables into blocks, and assigns partitions to shards.
#include "serialization/layout.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <numeric>
#include <optional>
#include <string>

namespace troupe {

namespace {

constexpr std::uint64_t block_elements_max = (std::uint64_t{1} << 20) / sizeof(float);
constexpr std::uint64_t block_elements_min = (std::uint64_t{16} << 10) / sizeof(float);
constexpr std::uint64_t slab_values = (std::uint64_t{64} << 10) / sizeof(float);
constexpr std::uint64_t sparse_partition_bytes = std::uint64_t{1} << 20;

std::uint64_t fnv1a64(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (auto c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return hash;
}

/// Balances the weights of the partitions of `members` (indices into `owner`) over the servers.
/// Requires: every weight > 0. Partitions whose owner is `servers` are unassigned.
class balancer {
public:
  balancer(std::vector<std::uint32_t>& owner, std::vector<std::size_t> members,
           const std::vector<std::uint64_t>& weight, std::uint32_t servers)
      : owner_(owner), home_(owner), members_(std::move(members)), weight_(weight),
        load_(servers, 0) {}

  void run() {
    keep();
    place_orphans();
    // Every improvement lowers the sum of squared loads; the bound only limits long tails.
    for (auto moves = 4 * members_.size(); moves > 0 && improve(); --moves) {
    }
  }

private:
  void keep() {
    for (auto p : members_)
      if (owner_[p] < load_.size())
        load_[owner_[p]] += weight_[p];
  }

  void place_orphans() {
    auto order = members_;
    std::stable_sort(order.begin(), order.end(),
                     [this](auto a, auto b) { return weight_[a] > weight_[b]; });
    for (auto p : order)
      if (owner_[p] >= load_.size())
        move(p, lightest());
  }

  /// Moves one partition from the heaviest server to the lightest if that lowers the larger of the
  /// two loads. The best partition halves the difference.
  bool improve() {
    const auto from = heaviest();
    const auto to = lightest();
    const auto difference = load_[from] - load_[to];
    std::optional<std::size_t> best;
    auto cost = [&](std::size_t p) {
      const auto twice = 2 * weight_[p];
      return twice > difference ? twice - difference : difference - twice;
    };
    auto unknown_member = [&](std::size_t p) { return home_[p] != from; };
    for (auto p : members_) {
      if (owner_[p] != from || weight_[p] >= difference)
        continue;
      // Prefer, among equal candidates, a partition that is away from its home: moving it is free.
      if (!best || cost(p) < cost(*best)
          || (cost(p) == cost(*best) && unknown_member(p) && !unknown_member(*best)))
        best = p;
    }
    if (best) {
      load_[from] -= weight_[*best];
      move(*best, to);
    }
    return best.has_value();
  }

  void move(std::size_t p, std::uint32_t to) {
    owner_[p] = to;
    load_[to] += weight_[p];
  }

  std::uint32_t lightest() const {
    return static_cast<std::uint32_t>(std::min_element(load_.begin(), load_.end()) - load_.begin());
  }

  std::uint32_t heaviest() const {
    return static_cast<std::uint32_t>(std::max_element(load_.begin(), load_.end()) - load_.begin());
  }

  std::vector<std::uint32_t>& owner_;
  const std::vector<std::uint32_t> home_;
  const std::vector<std::size_t> members_;
  const std::vector<std::uint64_t>& weight_;
  std::vector<std::uint64_t> load_;
};

/// Moves one partition to each shard that has none: the lightest partition of the shard with most
/// partitions. A shard without a partition never becomes ready.
void leave_none_empty(std::vector<std::uint32_t>& owner, const std::vector<std::uint64_t>& weight,
                      std::uint32_t shards) {
  std::vector<std::size_t> count(shards, 0);
  for (const auto shard : owner)
    ++count[shard];
  for (std::uint32_t shard = 0; shard < shards; ++shard) {
    if (count[shard] > 0)
      continue;
    const auto giver = static_cast<std::uint32_t>(std::ranges::max_element(count) - count.begin());
    std::optional<std::size_t> lightest;
    for (std::size_t p = 0; p < owner.size(); ++p)
      if (owner[p] == giver && (!lightest || weight[p] < weight[*lightest]))
        lightest = p;
    if (count[giver] < 2 || !lightest)
      return;
    owner[*lightest] = shard;
    --count[giver];
    ++count[shard];
  }
}

} // namespace

std::uint64_t block_elements(const table_spec& table) {
  const auto sixteenth = std::clamp(table.size() / 16, block_elements_min, block_elements_max);
  return (sixteenth + 15) / 16 * 16;
}

std::uint64_t block_count(const table_spec& table) {
  const auto block = block_elements(table);
  const auto size = table.size();
  return size / block + (size % block != 0 ? 1 : 0);
}

range block_range(const job_spec& job, table_id table, std::uint64_t block) {
  assert(table.value < job.tables.size());
  const auto& spec = job.tables[table.value];
  assert(block < block_count(spec));
  const auto first = block * block_elements(spec);
  return {table, first, std::min(block_elements(spec), spec.size() - first)};
}

partition_id partition_of(const job_spec& job, table_id table, std::uint64_t block) {
  assert(table.value < job.tables.size());
  // The number of partitions is a power of two, so the sum may wrap around.
  const auto sum = fnv1a64(job.tables[table.value].name) + block;
  return {static_cast<std::uint32_t>(sum % job.partitions)};
}

std::uint64_t slab_rows(const table_spec& table) {
  assert(table.is_sparse());
  return std::clamp<std::uint64_t>(std::bit_floor(slab_values / table.width), 16, 4096);
}

std::vector<std::uint64_t> partition_bytes(const job_spec& job) {
  std::vector<std::uint64_t> bytes(job.partitions, 0);
  for (std::uint32_t t = 0; t < job.tables.size(); ++t) {
    const table_id table{t};
    const auto& spec = job.tables[t];
    if (spec.is_sparse())
      for (auto& x : bytes)
        x += sparse_partition_bytes;
    const auto blocks = block_count(spec);
    if (blocks == 0)
      continue;
    // Blocks go round robin. Counting whole rounds keeps this cheap for millions of blocks.
    const auto full = block_elements(spec) * sizeof(float);
    const auto rounds = (blocks - 1) / job.partitions;
    for (auto& x : bytes)
      x += rounds * full;
    for (auto block = rounds * job.partitions; block < blocks; ++block)
      bytes[partition_of(job, table, block).value] +=
        block_range(job, table, block).count * sizeof(float);
  }
  return bytes;
}

std::vector<shard_id> make_partition_map(const job_spec& job, std::uint32_t shards,
                                         const std::vector<shard_id>& previous) {
  assert(shards > 0);
  std::vector<std::uint32_t> owner(job.partitions, shards);
  if (previous.size() == owner.size())
    for (std::size_t p = 0; p < owner.size(); ++p)
      owner[p] = std::min(previous[p].value, shards);
  // Empty partitions have no weight, so they are spread separately, by number.
  auto weight = partition_bytes(job);
  std::vector<std::size_t> full, empty;
  for (std::size_t p = 0; p < weight.size(); ++p)
    (weight[p] > 0 ? full : empty).push_back(p);
  for (auto p : empty)
    weight[p] = 1;
  balancer(owner, std::move(full), weight, shards).run();
  balancer(owner, std::move(empty), weight, shards).run();
  leave_none_empty(owner, weight, shards);
  std::vector<shard_id> map;
  map.reserve(owner.size());
  for (auto server : owner)
    map.push_back({server});
  return map;
}

} // namespace troupe
