#include "actors/tables/gradient_sum.hpp"

#include "actors/tables/table_store.hpp"

#include "doctest/doctest.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace troupe::gradient_sum_test {

namespace {

constexpr std::uint64_t block = 4096;
constexpr std::uint64_t size = 2 * block;
constexpr std::uint32_t width = 3;

table_spec table_of(const std::string& name, consistency_mode mode, bool is_sparse) {
  table_spec table;
  table.name = name;
  table.sync.mode = mode;
  table.optimizer.kind = optimizer_kind::adam;
  table.optimizer.clip_norm = 1.0f;
  table.init = {initializer_kind::uniform, 0.5f};
  if (is_sparse) {
    table.kind = table_kind::sparse;
    table.width = width;
  } else {
    table.shape = {size};
  }
  return table;
}

/// Returns a job whose table 2 takes no part in bsp clocks.
job_spec sample_job() {
  job_spec job;
  job.name = "test";
  job.partitions = 4;
  job.samples = 100;
  job.workers = 3;
  job.tables = {table_of("dense", consistency_mode::bsp, false),
                table_of("sparse", consistency_mode::bsp, true),
                table_of("other", consistency_mode::asp, false)};
  return job;
}

std::shared_ptr<const float> random_floats(std::mt19937_64& random, std::uint64_t count) {
  const auto values = std::make_shared<std::vector<float>>(count);
  for (float& x : *values)
    x = static_cast<float>(static_cast<double>(random() >> 40) * 0x1p-23 - 1.0);
  return {values, values->data()};
}

std::shared_ptr<const push_request> push_of(std::uint64_t seed, float norm) {
  std::mt19937_64 random{seed};
  const auto keys = std::make_shared<std::vector<std::uint64_t>>();
  for (std::uint64_t key = seed; keys->size() < 40; key += 1 + random() % 3)
    keys->push_back(key);
  push_request push;
  push.step.batch = {seed};
  push.tables = {{0}, {1}, {2}};
  push.gradient_norm = norm;
  push.pieces = {{{{0}, block, block}, random_floats(random, block)},
                 {{{2}, block, block}, random_floats(random, block)},
                 {{{0}, 0, block}, random_floats(random, block)}};
  push.rows = {{{{1}, width, keys->size(), {keys, keys->data()}},
                random_floats(random, keys->size() * width)}};
  return std::make_shared<const push_request>(std::move(push));
}

std::shared_ptr<table_store> store_of(const job_spec& job) {
  return std::make_shared<table_store>(job, std::vector<partition_id>{{0}, {1}, {2}, {3}},
                                       std::make_shared<buffer_pool>());
}

/// Returns all values of a store, ordered by key.
std::vector<float> content(table_store& store) {
  const auto keys = std::make_shared<std::vector<std::uint64_t>>();
  for (std::uint64_t key = 0; key < 200; ++key)
    keys->push_back(key);
  pull_request all;
  all.ranges = {{{0}, 0, size}, {{2}, 0, size}};
  all.rows = {{{1}, width, keys->size(), {keys, keys->data()}}};
  const auto read = store.read(all, {});
  std::vector<float> values;
  for (const auto& x : read.pieces)
    values.insert(values.end(), x.values.get(), x.values.get() + x.where.count);
  for (const auto& x : read.rows)
    values.insert(values.end(), x.values.get(), x.values.get() + x.where.floats());
  return values;
}

bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

} // namespace

TEST_CASE("a step with the sum of a clock's slots is the step with all of them, bit for bit") {
  const auto job = sample_job();
  const std::vector<table_id> tables{{0}, {1}};
  buffer_pool pool;
  const auto alone = store_of(job);
  const auto replica = store_of(job);
  for (std::uint64_t clock = 0; clock < 3; ++clock) {
    std::vector<std::shared_ptr<const push_request>> pushes;
    std::vector<const push_request*> plain;
    for (std::uint64_t slot = 0; slot < 3; ++slot) {
      pushes.push_back(push_of(10 * clock + slot, slot == 1 ? 3.0f : 0.5f)); // Slot 1 is clipped.
      plain.push_back(pushes.back().get());
      REQUIRE(alone->check(*plain.back()));
    }
    const apply_effect effect{.tables = tables, .skip = {}, .pushes = 3};
    REQUIRE(alone->apply(effect, plain));
    const auto sum = add_up(job, tables, pushes, pool);
    REQUIRE(sum);
    CHECK(sum->step == pushes.front()->step);
    REQUIRE(replica->check(*sum));
    const push_request* const one = sum.get();
    REQUIRE(replica->apply(effect, {&one, 1}));
    CHECK(same_bytes(content(*alone), content(*replica)));
  }
  CHECK_FALSE(same_bytes(content(*alone), content(*store_of(job))));
}

TEST_CASE("slots that bring different ranges, or a norm that is no number, are not added up") {
  const auto job = sample_job();
  buffer_pool pool;
  const std::vector<table_id> tables{{0}, {1}};
  auto odd = *push_of(2, 0.5f);
  odd.pieces.pop_back();
  const std::vector<std::shared_ptr<const push_request>> ranges{
    push_of(1, 0.5f), std::make_shared<const push_request>(odd)};
  CHECK(add_up(job, tables, ranges, pool) == nullptr);
  const std::vector<std::shared_ptr<const push_request>> norms{
    push_of(1, 0.5f), push_of(2, std::numeric_limits<float>::infinity())};
  CHECK(add_up(job, tables, norms, pool) == nullptr);
}

} // namespace troupe::gradient_sum_test
