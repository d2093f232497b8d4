#include "actors/training/cached_values.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace troupe {

namespace {

std::pair<table_id, std::uint64_t> place_of(const range& x) { return {x.table, x.first}; }

/// Returns the stamped range of `known` that contains all of `x`; null if there is none.
const range* holder_of(const range& x, const std::vector<range>& known) {
  auto at = std::ranges::upper_bound(known, place_of(x), {}, place_of);
  if (at == known.begin())
    return nullptr;
  --at;
  const bool inside = at->table == x.table && x.first + x.count <= at->first + at->count;
  return inside && at->stamp != 0 ? &*at : nullptr;
}

bool is_held(const job_spec& job, const cached_values& known, std::size_t table) {
  return job.tables[table].frozen && known.tables[table];
}

bool is_among(const std::vector<table_id>& only, std::uint32_t table) {
  return only.empty() || std::ranges::find(only, table_id{table}) != only.end();
}

/// Returns whether the ranges are all tables that were pulled. `ranges` and those of `known` are in
/// the order of place_of().
bool covers(const std::vector<range>& ranges, const job_spec& job, const cached_values& known) {
  auto at = ranges.begin();
  for (auto pulled = known.ranges.begin(); pulled != known.ranges.end();) {
    const auto table = pulled->table;
    const auto is_other = [&](const range& x) { return x.table != table; };
    pulled = std::find_if(pulled, known.ranges.end(), is_other);
    std::uint64_t end = 0;
    for (; at != ranges.end() && at->table == table && at->first == end && at->count > 0; ++at)
      end += at->count;
    if (end != job.tables[table.value].size())
      return false;
  }
  return at == ranges.end();
}

} // namespace

cached_ptr empty_cache(const job_spec& job, const std::vector<table_id>& only) {
  auto made = std::make_shared<cached_values>();
  made->tables.resize(job.tables.size());
  for (std::uint32_t i = 0; i < job.tables.size(); ++i)
    if (!job.tables[i].is_sparse() && is_among(only, i))
      made->ranges.push_back({{i}, 0, job.tables[i].size()});
  return made;
}

cached_ptr frozen_cache(const job_spec& job, const cached_values& whole) {
  auto made = std::make_shared<cached_values>(*empty_cache(job));
  for (std::size_t i = 0; i < job.tables.size(); ++i)
    if (job.tables[i].frozen)
      made->tables[i] = whole.tables[i];
  std::erase_if(made->ranges, [&](const range& x) { return is_held(job, *made, x.table.value); });
  return made;
}

bool lacks_frozen(const job_spec& job, const cached_values& known) {
  for (std::size_t i = 0; i < job.tables.size(); ++i)
    if (job.tables[i].frozen && !known.tables[i])
      return true;
  return false;
}

result<cached_ptr> hold(const job_spec& job, const cached_values& known, const pull_reply& answer,
                        buffer_pool& pool) {
  auto made = std::make_shared<cached_values>();
  for (const piece& x : answer.pieces)
    made->ranges.push_back(x.where);
  for (range x : answer.unchanged) {
    const range* const holder = holder_of(x, known.ranges);
    if (holder == nullptr)
      return {errc::malformed, "a server calls values unchanged that this worker lacks"};
    x.stamp = holder->stamp;
    made->ranges.push_back(x);
  }
  std::ranges::sort(made->ranges, {}, place_of);
  if (!covers(made->ranges, job, known))
    return {errc::malformed, "the values of a pull do not cover the tables"};
  std::erase_if(made->ranges, [&](const range& x) { return job.tables[x.table.value].frozen; });

  std::vector<std::shared_ptr<float>> fresh(job.tables.size());
  for (const piece& x : answer.pieces)
    if (auto& table = fresh[x.where.table.value]; !table)
      table = pool.floats(job.tables[x.where.table.value].size());
  for (const piece& x : answer.pieces)
    std::memcpy(fresh[x.where.table.value].get() + x.where.first, x.values.get(),
                x.where.count * sizeof(float));
  for (const range& x : answer.unchanged)
    if (const auto& table = fresh[x.table.value])
      std::memcpy(table.get() + x.first, known.tables[x.table.value].get() + x.first,
                  x.count * sizeof(float));
  for (std::size_t i = 0; i < fresh.size(); ++i)
    made->tables.push_back(fresh[i] || job.tables[i].is_sparse() ? fresh[i] : known.tables[i]);
  return cached_ptr{std::move(made)};
}

} // namespace troupe
