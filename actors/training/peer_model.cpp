#include "actors/training/peer_model.hpp"

#include "actors/store/step_options.hpp"
#include "serialization/layout.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace troupe {

namespace {

constexpr std::size_t floats_per_line = 16;
constexpr std::size_t remark_floats = sizeof(peer_model::remarks) / sizeof(float);

/// Numbers of a block that travel before its values and state, in the place of floats.
struct block_numbers {
  std::uint64_t version = 0, steps = 0;
};
constexpr std::size_t number_floats = sizeof(block_numbers) / sizeof(float);

std::uint64_t mixed(std::uint64_t hash, const float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) { // FNV-1a, on whole floats.
    std::uint32_t bits = 0;
    std::memcpy(&bits, values + i, sizeof(bits));
    hash = (hash ^ bits) * 1099511628211u;
  }
  return hash;
}

} // namespace

peer_model::peer_model(const job_spec& job, const trainer_factory& make, std::uint32_t rank)
    : job_(job), rank_(rank), clocks_(bsp_clock_count(job)), nothing_held_(hold_nothing(job)),
      computer_(job, make) {
  assert(any_bsp(job) && !any_sparse(job) && rank < job.workers);
  for (std::uint32_t i = 0; i < job_.partitions; ++i)
    partitions_.push_back({i});
  for (std::uint32_t i = 0; i < job_.tables.size(); ++i) {
    tables_.push_back({i});
    begins_.push_back(sum_floats_); // On a cache line.
    const auto size = static_cast<std::size_t>(job_.tables[i].size());
    sum_floats_ += (size + floats_per_line - 1) / floats_per_line * floats_per_line;
  }
  sum_floats_ += remark_floats;
  sum_ = pool_->floats(sum_floats_);
  std::fill_n(sum_.get(), sum_floats_, 0.0f);
  store_ = std::make_shared<table_store>(job_, partitions_, pool_);
}

batch_id peer_model::done() const {
  return finished() ? batch_id{job_.batches()} : bsp_first(job_, clock_);
}

result<held_ptr> peer_model::values() const {
  return hold(job_, *nothing_held_, store_->read(query{{}, true, nothing_held_->ranges}, {}),
              *pool_);
}

result<void> peer_model::compute(bool stop) {
  assert(!finished());
  std::fill_n(sum_.get(), sum_floats_, 0.0f);
  remarks mine;
  mine.stop = stop ? 1.0f : 0.0f;
  samples_ = 0;
  loss_ = 0;
  const batch_id own{bsp_first(job_, clock_).value + rank_};
  if (own.value < bsp_end(job_, clock_).value) {
    const auto whole = values();
    if (!whole)
      return whole.error();
    auto outcome = computer_.compute({0, own, (*whole)->tables, {}, clock_});
    if (!outcome.failed.empty())
      return {errc::invalid_argument, outcome.failed};
    mine.unusable = outcome.finite ? 0.0f : 1.0f;
    samples_ = outcome.samples;
    loss_ = outcome.loss;
    for (const auto& piece : outcome.pieces) {
      const auto table = piece.where.table.value;
      const float clip = clip_scale(job_.tables[table].optimizer, outcome.norm);
      float* const to = sum_.get() + begins_[table] + piece.where.first;
      for (std::size_t i = 0; i < piece.where.count; ++i)
        to[i] = clip * piece.values.get()[i];
    }
  }
  std::memcpy(sum_.get() + sum_floats_ - remark_floats, &mine, sizeof(mine));
  return {};
}

peer_model::remarks peer_model::step() {
  assert(!finished());
  remarks all;
  std::memcpy(static_cast<void*>(&all), sum_.get() + sum_floats_ - remark_floats, sizeof(all));
  update push;
  push.tables = tables_;
  for (const auto table : tables_)
    for (std::uint64_t block = 0; block < block_count(job_.tables[table.value]); ++block) {
      const auto where = block_range(job_, table, block);
      push.pieces.push_back({where, {sum_, sum_.get() + begins_[table.value] + where.first}});
    }
  const auto slots = bsp_end(job_, clock_).value - bsp_first(job_, clock_).value;
  const update* const pushes[] = {&push};
  if (!store_->apply({tables_, {}, 0, static_cast<std::size_t>(slots)}, pushes))
    all.unusable = static_cast<float>(slots);
  ++clock_;
  return all;
}

std::vector<partition_image> peer_model::images() const {
  std::vector<shard_partition> held;
  for (const auto id : partitions_)
    held.push_back({id, clock_, std::vector<batch_set>(job_.tables.size(), batch_set{done()})});
  return store_->pin(held);
}

result<void> peer_model::restore(const std::vector<partition_image>& images, std::uint64_t clock) {
  auto restored = table_store::restored(job_, images, pool_);
  if (!restored)
    return restored.error();
  store_ = *std::move(restored);
  clock_ = clock;
  return {};
}

std::size_t peer_model::state_floats() const {
  std::size_t floats = 0;
  for (const auto& partition : images())
    for (const auto& block : partition.blocks)
      floats += number_floats + block.count + block.state_count;
  return floats;
}

std::vector<float> peer_model::state() const {
  std::vector<float> all;
  for (const auto& partition : images())
    for (const auto& block : partition.blocks) {
      const block_numbers numbers{block.version, block.steps};
      const auto at = all.size();
      all.resize(at + number_floats);
      std::memcpy(all.data() + at, &numbers, sizeof(numbers));
      all.insert(all.end(), block.values.get(), block.values.get() + block.count);
      if (block.state_count > 0)
        all.insert(all.end(), block.state.get(), block.state.get() + block.state_count);
    }
  return all;
}

result<void> peer_model::take_state(std::span<const float> state, std::uint64_t clock) {
  auto fresh = images();
  const auto take = [&](std::uint64_t count) {
    auto made = pool_->floats(count);
    std::memcpy(made.get(), state.data(), count * sizeof(float));
    state = state.subspan(count);
    return made;
  };
  for (auto& partition : fresh) {
    partition.version = clock;
    for (auto& block : partition.blocks) {
      block_numbers numbers;
      std::memcpy(static_cast<void*>(&numbers), state.data(), sizeof(numbers));
      state = state.subspan(number_floats);
      block.version = numbers.version;
      block.steps = numbers.steps;
      block.values = take(block.count);
      if (block.state_count > 0)
        block.state = take(block.state_count);
    }
  }
  return restore(fresh, clock);
}

std::size_t peer_model::parameters_count() const {
  std::size_t count = 0;
  for (const auto& table : job_.tables)
    count += table.size();
  return count;
}

void peer_model::read_parameters(std::span<float> into) const {
  const auto whole = values();
  assert(whole);
  for (const auto table : tables_) {
    const auto size = static_cast<std::size_t>(job_.tables[table.value].size());
    std::memcpy(into.data(), (*whole)->tables[table.value].get(), size * sizeof(float));
    into = into.subspan(size);
  }
}

std::uint64_t peer_model::checksum() const {
  std::uint64_t hash = 14695981039346656037u;
  for (const auto& partition : images())
    for (const auto& block : partition.blocks) {
      hash = mixed(hash, block.values.get(), block.count);
      hash = mixed(hash, block.state.get(), block.state_count);
    }
  return hash;
}

} // namespace troupe
