#include "actors/graph/ranks/rank_model.hpp"

#include "serialization/layout.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace troupe {

namespace {

constexpr std::size_t floats_per_line = 16;
static_assert(sizeof(rank_model::step_flags) <= floats_per_line * sizeof(float));
/// Least floats of a table that begins a part, 64 KiB. Adding up a smaller part would only cost the
/// time of its messages, so small tables share parts.
constexpr std::size_t part_floats_min = 16 * 1024;

/// Numbers of a block, which travel before its values and state in place of floats.
struct block_numbers {
  std::uint64_t version = 0, steps = 0;
};
constexpr std::size_t number_floats = sizeof(block_numbers) / sizeof(float);

/// Rounds up to whole cache lines.
constexpr std::size_t in_lines(std::size_t floats) {
  return (floats + floats_per_line - 1) / floats_per_line * floats_per_line;
}

std::uint64_t mixed(std::uint64_t hash, const float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) { // FNV-1a, on whole floats.
    std::uint32_t bits = 0;
    std::memcpy(&bits, values + i, sizeof(bits));
    hash = (hash ^ bits) * 1099511628211u;
  }
  return hash;
}

/// Returns the size of a table's gradient.
std::size_t gradient_floats(const table_spec& table) {
  return table.frozen ? 0 : static_cast<std::size_t>(table.size());
}

} // namespace

std::size_t rank_model::sum_floats(const job_spec& job) {
  std::size_t floats = floats_per_line;
  for (const auto& table : job.tables)
    floats += in_lines(gradient_floats(table));
  return floats;
}

rank_model::rank_model(const job_spec& job, const trainer_factory& make, std::uint32_t rank,
                       std::shared_ptr<float> sum, server_functions functions)
    : job_(job), functions_(std::move(functions)), rank_(rank), clocks_(bsp_clock_count(job)),
      known_(empty_cache(job)), computer_(job, make) {
  assert(goes_by_clocks(job) && !any_sparse(job) && rank < job.workers);
  for (std::uint32_t i = 0; i < job_.partitions; ++i)
    partitions_.push_back({i});
  sum_floats_ = floats_per_line; // For the remarks.
  std::vector<std::size_t> bounds{0};
  for (std::uint32_t i = 0; i < job_.tables.size(); ++i) {
    const auto size = gradient_floats(job_.tables[i]);
    if (i > 0 && size >= part_floats_min)
      bounds.push_back(sum_floats_);
    tables_.push_back({i});
    begins_.push_back(sum_floats_); // On a cache line.
    part_of_.push_back(static_cast<std::uint32_t>(bounds.size() - 1));
    sum_floats_ += in_lines(size);
  }
  bounds.push_back(sum_floats_);
  sum_ = std::move(sum);
  if (!sum_) {
    sum_ = pool_->floats(sum_floats_);
    std::fill_n(sum_.get(), sum_floats_, 0.0f); // What lies between tables stays so.
  }
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i)
    parts_.emplace_back(sum_.get() + bounds[i], bounds[i + 1] - bounds[i]);
  store_ = std::make_shared<table_store>(job_, partitions_, pool_, functions_);
  hold_frozen();
}

/// Copies frozen tables, so that they are not copied for each gradient.
void rank_model::hold_frozen() {
  known_ = empty_cache(job_);
  if (!any_frozen(job_))
    return;
  const auto whole = values();
  assert(whole);
  known_ = frozen_cache(job_, **whole);
}

batch_id rank_model::done() const {
  return finished() ? batch_id{job_.batches()} : bsp_first(job_, clock_);
}

result<cached_ptr> rank_model::values() const {
  return hold(job_, *known_, store_->read(pull_request{{}, true, known_->ranges}, {}), *pool_);
}

result<void> rank_model::compute(bool stop, const std::function<void(std::uint32_t part)>& ready) {
  assert(!finished());
  stop_ = stop;
  own_ = {};
  left_.assign(parts_.size(), false);
  const batch_id own{bsp_first(job_, clock_).value + rank_};
  if (own.value < bsp_end(job_, clock_).value) {
    const auto whole = values();
    if (!whole)
      return whole.error();
    own_ = computer_.compute({0, own, (*whole)->tables, {}, clock_, {}},
                             ready ? early_listener(ready) : gradient_listener{});
    if (own_.failed)
      return *own_.failed;
  }
  put_own();
  return {};
}

/// Returns a listener that reports parts which are complete early. A part with a table that clips
/// is not: it waits for the norm of the whole gradient.
gradient_listener rank_model::early_listener(const std::function<void(std::uint32_t part)>& ready) {
  return [this, &ready, complete = std::vector<std::span<const float>>(tables_.size())](
           std::uint32_t table, std::span<const float> gradient) mutable {
    const auto part = part_of_[table];
    if (part == 0 || job_.tables[table].optimizer.clip_norm > 0.0f)
      return;
    complete[table] = gradient;
    for (std::uint32_t i = 0; i < tables_.size(); ++i)
      if (part_of_[i] == part && complete[i].empty() && !job_.tables[i].frozen)
        return;
    for (std::uint32_t i = 0; i < tables_.size(); ++i)
      if (part_of_[i] == part)
        std::ranges::copy(complete[i], sum_.get() + begins_[i]);
    left_[part] = true;
    ready(part);
  };
}

void rank_model::repeat() {
  left_.assign(parts_.size(), false);
  put_own();
}

/// Writes the own gradient, or zeros if it has no pieces, into all parts that have not left. It has
/// none without a slot, or if it is not finite.
void rank_model::put_own() {
  for (std::uint32_t i = 0; i < tables_.size(); ++i) {
    if (left_[part_of_[i]])
      continue;
    if (own_.pieces.empty())
      std::fill_n(sum_.get() + begins_[i], gradient_floats(job_.tables[i]), 0.0f);
  }
  for (const auto& piece : own_.pieces)
    if (!left_[part_of_[piece.where.table.value]])
      put(piece);
  step_flags mine;
  mine.stop = stop_ ? 1.0f : 0.0f;
  mine.unusable = own_.finite ? 0.0f : 1.0f;
  mine.spoiled = !own_.finite && std::ranges::count(left_, true) > 0 ? 1.0f : 0.0f;
  std::memcpy(sum_.get(), &mine, sizeof(mine));
}

void rank_model::put(const piece& piece) {
  const auto table = piece.where.table.value;
  const float clip = job_.tables[table].optimizer.clip_scale(own_.norm);
  float* const to = sum_.get() + begins_[table];
  for (std::size_t i = 0; i < piece.where.count; ++i)
    to[i] = clip * piece.values.get()[i];
}

rank_model::step_flags rank_model::told() const {
  step_flags all;
  std::memcpy(static_cast<void*>(&all), sum_.get(), sizeof(all));
  return all;
}

bool rank_model::spoiled() const { return told().spoiled > 0; }

result<rank_model::step_flags> rank_model::step() {
  assert(!finished());
  auto all = told();
  push_request push;
  push.tables = tables_;
  for (const auto table : tables_) {
    const auto& spec = job_.tables[table.value];
    for (std::uint64_t block = 0; !spec.frozen && block < block_count(spec); ++block) {
      const auto where = block_range(job_, table, block);
      push.pieces.push_back({where, {sum_, sum_.get() + begins_[table.value] + where.first}});
    }
  }
  const auto slots = bsp_end(job_, clock_).value - bsp_first(job_, clock_).value;
  const push_request* const pushes[] = {&push};
  const auto taken = store_->apply({tables_, {}, 0, static_cast<std::size_t>(slots)}, pushes);
  const auto has_function = [](const table_spec& x) {
    return x.optimizer.kind == optimizer_kind::user;
  };
  if (!taken && std::ranges::any_of(job_.tables, has_function))
    return taken.error();
  if (!taken)
    all.unusable = static_cast<float>(slots);
  refused_ = !own_.finite || !taken;
  ++clock_;
  return all;
}

std::vector<partition_image> rank_model::images() const {
  std::vector<shard_partition> held;
  for (const auto id : partitions_)
    held.push_back({id, clock_, std::vector<batch_set>(job_.tables.size(), batch_set{done()})});
  return store_->pin(held);
}

result<void> rank_model::restore(const std::vector<partition_image>& images, std::uint64_t clock) {
  auto restored = table_store::restored(job_, images, pool_, functions_);
  if (!restored)
    return restored.error();
  store_ = *std::move(restored);
  clock_ = clock;
  hold_frozen();
  return {};
}

std::size_t rank_model::state_floats() const {
  std::size_t floats = 0;
  for (const auto& partition : images())
    for (const auto& block : partition.blocks)
      floats += number_floats + block.count + block.state_count;
  return floats;
}

std::vector<float> rank_model::state() const {
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

result<void> rank_model::take_state(std::span<const float> state, std::uint64_t clock) {
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

void rank_model::read_parameters(std::span<float> into) const {
  const auto whole = values();
  assert(whole);
  for (const auto table : tables_) {
    const auto size = static_cast<std::size_t>(job_.tables[table.value].size());
    std::memcpy(into.data(), (*whole)->tables[table.value].get(), size * sizeof(float));
    into = into.subspan(size);
  }
}

std::uint64_t rank_model::checksum() const {
  std::uint64_t hash = 14695981039346656037u;
  for (const auto& partition : images())
    for (const auto& block : partition.blocks) {
      hash = mixed(hash, block.values.get(), block.count);
      hash = mixed(hash, block.state.get(), block.state_count);
    }
  return hash;
}

} // namespace troupe
