#include "actors/training/flat_copy.hpp"

#include "actors/tables/server_functions.hpp"
#include "serialization/layout.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <tuple>

namespace troupe {

namespace {

/// The place of one block in the arrays of a copy.
struct block_place {
  table_id table;
  std::uint64_t block = 0;
  partition_id partition;
  std::uint64_t count = 0, values = 0, state_count = 0, state = 0, steps = 0;
};

std::uint64_t blocks_in(const job_spec& job) {
  std::uint64_t all = 0;
  for (const auto& table : job.tables)
    all += block_count(table);
  return all;
}

std::uint64_t optimizer_state(const job_spec& job) {
  std::uint64_t all = 0;
  for (const auto& table : job.tables)
    all += table.size() * state_per_weight(table.optimizer);
  return all;
}

/// Calls `visit` with the place of each block, in the order of tables and blocks.
template <class Visit>
void for_each_place(const job_spec& job, Visit visit) {
  std::uint64_t values = 0, state = 0, steps = optimizer_state(job);
  for (std::uint32_t table = 0; table < job.tables.size(); ++table) {
    const auto per_element = state_per_weight(job.tables[table].optimizer);
    for (std::uint64_t block = 0; block < block_count(job.tables[table]); ++block) {
      const auto count = block_range(job, {table}, block).count;
      visit(block_place{{table},
                        block,
                        partition_of(job, {table}, block),
                        count,
                        values,
                        count * per_element,
                        state,
                        steps});
      values += count;
      state += count * per_element;
      steps += 2;
    }
  }
}

/// A number as two floats, each of which is exact: 24 bits and the rest.
constexpr std::uint64_t exact = std::uint64_t{1} << 24;

void write_count(std::uint64_t count, float* to) {
  to[0] = static_cast<float>(count % exact);
  to[1] = static_cast<float>(std::min(count / exact, exact));
}

std::uint64_t read_count(const float* from) {
  const auto part = [](float x) {
    return x >= 0 && x <= static_cast<float>(exact) ? static_cast<std::uint64_t>(x) : 0;
  };
  return part(from[0]) + part(from[1]) * exact;
}

flat_copy make(const job_spec& job, buffer_pool& pool, float*& values, float*& state) {
  auto of_values = pool.floats(flat_values(job));
  auto of_state = pool.floats(flat_state(job));
  values = of_values.get();
  state = of_state.get();
  return {{std::move(of_values), flat_values(job)}, {std::move(of_state), flat_state(job)}};
}

/// Writes the mean of some arrays.
void write_mean(const std::vector<const float*>& arrays, std::uint64_t count, float* to) {
  constexpr std::uint64_t summed = 4096; // Sums stay in the cache.
  double sums[summed];
  const double share = 1.0 / static_cast<double>(arrays.size());
  for (std::uint64_t first = 0; first < count; first += summed) {
    const auto n = std::min(summed, count - first);
    std::fill_n(sums, n, 0.0);
    for (const float* each : arrays)
      for (std::uint64_t i = 0; i < n; ++i)
        sums[i] += static_cast<double>(each[first + i]);
    for (std::uint64_t i = 0; i < n; ++i)
      to[first + i] = static_cast<float>(sums[i] * share);
  }
}

} // namespace

std::uint64_t flat_values(const job_spec& job) {
  std::uint64_t all = 0;
  for (const auto& table : job.tables)
    all += table.size();
  return all;
}

std::uint64_t flat_state(const job_spec& job) { return optimizer_state(job) + 2 * blocks_in(job); }

flat_copy flat_of(const job_spec& job, const std::vector<partition_image>& images,
                  buffer_pool& pool) {
  std::map<std::tuple<table_id, std::uint64_t>, const block_image*> blocks;
  for (const auto& image : images)
    for (const auto& each : image.blocks)
      blocks[{each.table, each.block}] = &each;
  float *values = nullptr, *state = nullptr;
  auto made = make(job, pool, values, state);
  for_each_place(job, [&](const block_place& at) {
    const auto& block = *blocks.at({at.table, at.block});
    std::copy_n(block.values.get(), at.count, values + at.values);
    if (at.state_count > 0)
      std::copy_n(block.state.get(), at.state_count, state + at.state);
    write_count(block.steps, state + at.steps);
  });
  return made;
}

result<std::vector<partition_image>> images_of(const job_spec& job, const flat_copy& what,
                                               const batch_set& applied, std::uint64_t version) {
  if (what.values.count != flat_values(job) || what.state.count != flat_state(job))
    return {errc::damaged, "a copy does not have the size of the job's tables"};
  std::vector<partition_image> images(job.partitions);
  for (std::uint32_t i = 0; i < job.partitions; ++i) {
    images[i].partition = {i};
    images[i].version = version;
    images[i].applied.assign(job.tables.size(), applied);
  }
  for_each_place(job, [&](const block_place& at) {
    block_image block;
    block.table = at.table;
    block.block = at.block;
    block.version = version;
    block.steps = read_count(what.state.values.get() + at.steps);
    block.count = at.count;
    block.values = float_ptr{what.values.values, what.values.values.get() + at.values};
    block.state_count = at.state_count;
    if (at.state_count > 0)
      block.state = float_ptr{what.state.values, what.state.values.get() + at.state};
    images[at.partition.value].blocks.push_back(std::move(block));
  });
  return images;
}

flat_copy mean_of(const job_spec& job, const std::vector<const flat_copy*>& copies,
                  buffer_pool& pool) {
  if (copies.size() == 1)
    return *copies.front();
  std::vector<const float*> values, state;
  for (const auto* each : copies) {
    values.push_back(each->values.values.get());
    state.push_back(each->state.values.get());
  }
  float *mean = nullptr, *mean_state = nullptr;
  auto made = make(job, pool, mean, mean_state);
  write_mean(values, flat_values(job), mean);
  write_mean(state, optimizer_state(job), mean_state);
  for_each_place(job, [&](const block_place& at) {
    std::uint64_t most = 0;
    for (const float* each : state)
      most = std::max(most, read_count(each + at.steps));
    write_count(most, mean_state + at.steps);
  });
  return made;
}

double distance_of(const std::vector<const flat_copy*>& copies, const flat_copy& mean) {
  const float* const middle = mean.values.values.get();
  double apart = 0, size = 0;
  for (std::uint64_t i = 0; i < mean.values.count; ++i) {
    const double x = middle[i];
    size += x * x;
    for (const auto* each : copies) {
      const double d = each->values.values.get()[i] - x;
      apart += d * d;
    }
  }
  const auto count = static_cast<double>(std::max<std::size_t>(copies.size(), 1));
  return size > 0 ? std::sqrt(apart / count / size) : std::sqrt(apart / count);
}

parcel_tensor tensor_of(const batch_set& batches) {
  static_assert(sizeof(std::uint64_t) == 2 * sizeof(float));
  const auto count = 2 * (batches.words().size() + 1);
  std::shared_ptr<float> memory{new float[count], std::default_delete<float[]>()};
  const std::uint64_t floor = batches.floor().value;
  std::memcpy(memory.get(), &floor, sizeof floor);
  if (!batches.words().empty())
    std::memcpy(memory.get() + 2, batches.words().data(),
                batches.words().size() * sizeof(std::uint64_t));
  return {std::move(memory), count};
}

result<batch_set> batches_of(const parcel_tensor& what) {
  if (what.count < 2 || what.count % 2 != 0)
    return {errc::damaged, "a set of batches has an odd size"};
  std::vector<std::uint64_t> words(what.count / 2);
  std::memcpy(words.data(), what.values.get(), what.count * sizeof(float));
  const batch_id floor{words.front()};
  words.erase(words.begin());
  return batch_set{floor, std::move(words)};
}

} // namespace troupe
