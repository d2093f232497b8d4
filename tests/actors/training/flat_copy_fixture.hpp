// A job of every kind of optimiser, its first values, and gradients, for tests of copies.
#pragma once

#include "actors/tables/table_store.hpp"
#include "actors/training/flat_copy.hpp"
#include "serialization/layout.hpp"

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace troupe::test {

constexpr std::uint64_t wide = 10'000; ///< Blocks of 4096, 4096 and 1808 elements.

inline table_spec flat_table(const std::string& name, optimizer_kind kind, std::uint64_t size) {
  table_spec table;
  table.name = name;
  table.shape = {size};
  table.optimizer.kind = kind;
  table.optimizer.learning_rate = 0.05f;
  table.init = {initializer_kind::uniform, 0.5f};
  return table;
}

/// Returns a job with tables of 0, 1 and 2 floats of optimiser state, and a frozen one.
inline job_spec flat_job() {
  job_spec job;
  job.name = "flat";
  job.partitions = 4;
  job.workers = 3;
  job.samples = 100;
  job.batch_samples = 1;
  job.gossip = true;
  job.tables = {flat_table("sgd", optimizer_kind::sgd, 5),
                flat_table("adam", optimizer_kind::adam, wide),
                flat_table("frozen", optimizer_kind::sgd, 5000),
                flat_table("momentum", optimizer_kind::momentum, 17)};
  job.tables[2].frozen = true;
  return job;
}

inline std::vector<shard_partition> whole_job(const job_spec& job) {
  std::vector<shard_partition> all;
  for (std::uint32_t i = 0; i < job.partitions; ++i)
    all.push_back({{i}, 0, std::vector<batch_set>(job.tables.size())});
  return all;
}

inline table_store fresh_store(const job_spec& job) {
  std::vector<partition_id> all;
  for (std::uint32_t i = 0; i < job.partitions; ++i)
    all.push_back({i});
  return {job, all, std::make_shared<buffer_pool>()};
}

inline flat_copy copy_of(const job_spec& job, table_store& store) {
  buffer_pool pool;
  return flat_of(job, store.pin(whole_job(job)), pool);
}

/// Returns the copy with which a fresh job begins. `seed`: of the initial values.
inline flat_copy first_copy(job_spec job, std::uint64_t seed = 1) {
  job.seed = seed;
  auto store = fresh_store(job);
  return copy_of(job, store);
}

inline std::vector<float> floats_of(const parcel_tensor& what) {
  return {what.values.get(), what.values.get() + what.count};
}

inline parcel_tensor tensor_with(std::vector<float> values) {
  const auto memory = std::make_shared<std::vector<float>>(std::move(values));
  return {float_ptr{memory, memory->data()}, memory->size()};
}

inline std::vector<float> random_floats(std::uint64_t seed, std::uint64_t count) {
  std::mt19937_64 engine{seed};
  std::vector<float> values(count);
  for (float& x : values)
    x = static_cast<float>(static_cast<double>(engine() >> 40) * 0x1p-23 - 1.0);
  return values;
}

/// Returns the push of one batch: a gradient of each table that is not frozen, each as one piece.
inline push_request gradient_of(const job_spec& job, std::uint64_t batch) {
  push_request push;
  push.step.worker = {0};
  push.step.batch = {batch};
  push.gradient_norm = 1.0f;
  for (std::uint32_t i = 0; i < job.tables.size(); ++i) {
    push.tables.push_back({i});
    if (job.tables[i].frozen)
      continue;
    const auto size = job.tables[i].size();
    push.pieces.push_back({{{i}, 0, size}, tensor_with(random_floats(batch + i, size)).values});
  }
  return push;
}

/// Takes the step of a push in a store, whose pieces are cut at its blocks.
inline void take_step(const job_spec& job, table_store& store, push_request push) {
  std::vector<piece> cut;
  for (const auto& each : push.pieces)
    cut_at_blocks(each.where, block_elements(job.tables[each.where.table.value]),
                  [&](const range& where, std::uint64_t offset) {
                    cut.push_back({where, at_offset(each.values, offset)});
                  });
  push.pieces = std::move(cut);
  apply_effect effect;
  effect.tables = push.tables;
  const push_request* const pushes[] = {&push};
  (void)store.apply(effect, pushes);
}

} // namespace troupe::test
