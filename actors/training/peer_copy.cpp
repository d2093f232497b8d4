#include "actors/training/peer_copy.hpp"

#include "actors/tables/packing.hpp"
#include "serialization/layout.hpp"

#include <algorithm>
#include <cassert>

namespace troupe {

namespace {

/// Elements that are packed together.
constexpr std::uint64_t packed_stretch = std::uint64_t{1} << 16;

/// Calls visit(first, count, floats before it) for each stretch of packed values.
template <class Visit>
void for_each_stretch(encoding how, std::uint64_t count, Visit visit) {
  std::uint64_t at = 0;
  for (std::uint64_t first = 0; first < count; first += packed_stretch) {
    const auto n = std::min(packed_stretch, count - first);
    visit(first, n, at);
    at += packed_bytes({how, 0}, n) / sizeof(float);
  }
}

/// Returns the floats whose memory packed values take.
std::uint64_t packed_floats(encoding how, std::uint64_t count) {
  std::uint64_t all = 0;
  for_each_stretch(how, count, [&](std::uint64_t, std::uint64_t n, std::uint64_t at) {
    all = at + packed_bytes({how, 0}, n) / sizeof(float);
  });
  return all;
}

void pack_all(encoding how, std::span<const float> x, float* to) {
  for_each_stretch(how, x.size(), [&](std::uint64_t first, std::uint64_t n, std::uint64_t at) {
    const std::span packed{reinterpret_cast<std::byte*>(to + at), packed_bytes({how, 0}, n)};
    pack({how, 0}, x.subspan(first, n), {}, nullptr, packed);
  });
}

bool unpack_all(encoding how, const float* from, std::span<float> y) {
  bool fine = true;
  for_each_stretch(how, y.size(), [&](std::uint64_t first, std::uint64_t n, std::uint64_t at) {
    const auto bytes = packed_bytes({how, 0}, n);
    const std::span packed{reinterpret_cast<const std::byte*>(from + at), bytes};
    fine = fine && unpack(how, packed, y.subspan(first, n));
  });
  return fine;
}

/// Adds weight * values[at ..] of each of the others.
void add_weighted(std::span<const weighted_values> others, std::uint64_t at, std::span<float> to) {
  for (const auto& each : others) {
    const float* const theirs = each.values.values.get() + at;
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i] += each.weight * theirs[i];
  }
}

} // namespace

result<peer_copy> peer_copy::made(const job_spec& job, const flat_copy& first,
                                  std::shared_ptr<buffer_pool> pool,
                                  const server_functions& functions, encoding how) {
  auto images = images_of(job, first, {}, 0);
  if (!images)
    return images.error();
  auto store = table_store::restored(job, *images, pool, functions);
  if (!store)
    return store.error();
  return peer_copy{job, *std::move(store), std::move(pool), how};
}

peer_copy::peer_copy(job_spec job, std::shared_ptr<table_store> store,
                     std::shared_ptr<buffer_pool> pool, encoding how)
    : job_(std::move(job)), how_(how), count_(flat_values(job_)), store_(std::move(store)),
      pool_(std::move(pool)) {
  std::uint64_t first = 0;
  for (std::uint32_t i = 0; i < job_.tables.size(); ++i) {
    tables_.push_back({i});
    first_.push_back(first);
    first += job_.tables[i].size();
  }
  for (std::uint32_t i = 0; i < job_.partitions; ++i)
    pinned_.push_back({{i}, 0, std::vector<batch_set>(job_.tables.size())});
}

result<void> peer_copy::step(push_request push) {
  std::vector<piece> cut; // A store takes each block by itself.
  for (const auto& whole : push.pieces) {
    if (whole.where.table.value >= job_.tables.size())
      return {errc::shape_mismatch,
              "the job has no table " + std::to_string(whole.where.table.value)};
    cut_at_blocks(whole.where, block_elements(job_.tables[whole.where.table.value]),
                  [&](const range& where, std::uint64_t offset) {
                    cut.push_back({where, at_offset(whole.values, offset)});
                  });
  }
  push.pieces = std::move(cut);
  if (auto fine = store_->check(push); !fine)
    return fine;
  if (auto fine = store_->check_finite(push); !fine)
    return fine;
  apply_effect effect;
  effect.tables = tables_;
  const push_request* const pushes[] = {&push};
  changed();
  return store_->apply(effect, pushes);
}

result<pull_reply> peer_copy::read(const pull_request& pull) const {
  if (auto fine = store_->check(pull); !fine)
    return fine.error();
  return store_->read(pull, {});
}

parcel_tensor peer_copy::values() {
  if (values_.values)
    return values_;
  const auto count = flat_values(job_);
  auto memory = pool_->floats(count);
  pull_request all;
  for (const auto table : tables_)
    all.ranges.push_back({table, 0, job_.tables[table.value].size()});
  for (const auto& x : store_->read(all, {}).pieces)
    std::copy_n(x.values.get(), x.where.count,
                memory.get() + first_[x.where.table.value] + x.where.first);
  values_ = {std::move(memory), count};
  return values_;
}

void peer_copy::changed() {
  values_ = {};
  sent_ = {};
}

parcel_tensor peer_copy::sent() {
  if (how_ == encoding::f32)
    return values();
  if (sent_.values)
    return sent_;
  const auto count = packed_floats(how_, count_);
  auto memory = pool_->floats(count);
  pack_all(how_, {values().values.get(), count_}, memory.get());
  sent_ = {std::move(memory), count};
  return sent_;
}

std::optional<parcel_tensor> peer_copy::received(const parcel_tensor& what) {
  if (how_ == encoding::f32)
    return fits(what) ? std::optional{what} : std::nullopt;
  if (what.count != packed_floats(how_, count_))
    return std::nullopt;
  auto memory = pool_->floats(count_);
  if (!unpack_all(how_, what.values.get(), {memory.get(), count_}))
    return std::nullopt;
  return parcel_tensor{std::move(memory), count_};
}

void peer_copy::mix(std::span<const weighted_values> others) {
  float own = 1;
  for (const auto& each : others)
    own -= each.weight;
  assert(own >= -1e-6f);
  if (how_ != encoding::f32)
    return mix_encoded(others, 1 - own);
  changed();
  store_->rewrite([&](const range& where, std::span<const float> old, std::span<float> next) {
    const auto at = first_[where.table.value] + where.first;
    for (std::size_t i = 0; i < old.size(); ++i)
      next[i] = own * old[i];
    add_weighted(others, at, next);
  });
}

/// Mixes as mix() says, where the own values as a neighbour has them differ from the own values.
void peer_copy::mix_encoded(std::span<const weighted_values> others, float weight) {
  const auto mine = received(sent());
  assert(mine);
  changed();
  store_->rewrite([&](const range& where, std::span<const float> old, std::span<float> next) {
    const auto at = first_[where.table.value] + where.first;
    for (std::size_t i = 0; i < old.size(); ++i)
      next[i] = old[i] - weight * mine->values.get()[at + i];
    add_weighted(others, at, next);
  });
}

parcel_tensor peer_copy::halve(const parcel_tensor& theirs) {
  auto change = pool_->floats(theirs.count);
  std::fill_n(change.get(), theirs.count, 0.0f); // That of frozen tables.
  changed();
  store_->rewrite([&](const range& where, std::span<const float> old, std::span<float> next) {
    const auto at = first_[where.table.value] + where.first;
    for (std::size_t i = 0; i < old.size(); ++i) {
      const float half = 0.5f * (theirs.values.get()[at + i] - old[i]);
      next[i] = old[i] + half;
      change.get()[at + i] = -half;
    }
  });
  return {std::move(change), theirs.count};
}

void peer_copy::add(const parcel_tensor& change) {
  changed();
  store_->rewrite([&](const range& where, std::span<const float> old, std::span<float> next) {
    const float* const by = change.values.get() + first_[where.table.value] + where.first;
    for (std::size_t i = 0; i < old.size(); ++i)
      next[i] = old[i] + by[i];
  });
}

flat_copy peer_copy::whole() { return flat_of(job_, store_->pin(pinned_), *pool_); }

} // namespace troupe
