#include "actors/tables/block_store.hpp"

#include "kernels/optimizer.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace troupe::block_store_test {

namespace {

constexpr std::uint64_t size = 10'000; ///< Blocks of 4096, 4096 and 1808 elements.
constexpr std::uint64_t block_size = 4096;

table_spec table_of(const std::string& name, optimizer_kind kind,
                    consistency_mode mode = consistency_mode::asp) {
  table_spec table;
  table.name = name;
  table.shape = {size};
  table.sync.mode = mode;
  table.optimizer.kind = kind;
  table.optimizer.learning_rate = 0.05f;
  table.init = {initializer_kind::uniform, 0.5f};
  return table;
}

job_spec job_of(std::vector<table_spec> tables) {
  job_spec job;
  job.name = "test";
  job.partitions = 4;
  job.samples = 100;
  job.batch_samples = 1;
  job.tables = std::move(tables);
  return job;
}

job_spec every_optimizer() {
  return job_of(
    {table_of("sgd", optimizer_kind::sgd), table_of("momentum", optimizer_kind::momentum),
     table_of("adagrad", optimizer_kind::adagrad), table_of("adam", optimizer_kind::adam),
     table_of("nesterov", optimizer_kind::nesterov), table_of("adamw", optimizer_kind::adamw),
     table_of("ftrl", optimizer_kind::ftrl)});
}

std::vector<partition_id> all_partitions(const job_spec& job) {
  std::vector<partition_id> all;
  for (std::uint32_t p = 0; p < job.partitions; ++p)
    all.push_back({p});
  return all;
}

std::vector<shard_partition> described(const std::vector<partition_id>& ids) {
  std::vector<shard_partition> all;
  for (const partition_id p : ids)
    all.push_back({p, 3, {}});
  return all;
}

block_store store_of(const job_spec& job) {
  return {job, all_partitions(job), std::make_shared<buffer_pool>()};
}

std::vector<float> random_gradient(std::uint64_t seed, std::uint64_t count = size) {
  std::mt19937_64 engine{seed};
  std::vector<float> values(count);
  for (float& x : values)
    x = static_cast<float>(static_cast<double>(engine() >> 40) * 0x1p-23 - 1.0);
  return values;
}

/// Returns the pieces of a stretch of a table, cut at its blocks. `values` begin at element
/// `first`.
std::vector<piece> pieces_of(std::uint32_t table, const std::vector<float>& values,
                             std::uint64_t first = 0) {
  const auto memory = std::make_shared<std::vector<float>>(values);
  std::vector<piece> pieces;
  for (std::uint64_t at = first; at < first + values.size();) {
    const std::uint64_t end = std::min(first + values.size(), (at / block_size + 1) * block_size);
    pieces.push_back({{{table}, at, end - at}, float_ptr{memory, memory->data() + (at - first)}});
    at = end;
  }
  return pieces;
}

push_request push_of(std::uint32_t worker, std::vector<piece> pieces, float norm = 1.0f) {
  push_request push;
  push.step.worker = {worker};
  push.gradient_norm = norm;
  push.pieces = std::move(pieces);
  for (const piece& x : push.pieces)
    if (std::find(push.tables.begin(), push.tables.end(), x.where.table) == push.tables.end())
      push.tables.push_back(x.where.table);
  return push;
}

push_request& operator+=(push_request& push, const std::vector<piece>& more) {
  push.pieces.insert(push.pieces.end(), more.begin(), more.end());
  return push;
}

apply_effect effect_of(const job_spec& job, std::size_t pushes) {
  apply_effect effect;
  effect.pushes = pushes;
  for (std::uint32_t i = 0; i < job.tables.size(); ++i)
    effect.tables.push_back({i});
  return effect;
}

result<void> apply(block_store& store, const apply_effect& effect,
                   const std::vector<push_request>& pushes) {
  std::vector<const push_request*> pointers;
  for (const push_request& push : pushes)
    pointers.push_back(&push);
  return store.apply(effect, pointers);
}

std::vector<float> read(const block_store& store, std::uint32_t table,
                        const std::vector<table_id>& previous = {}) {
  std::vector<float> values;
  for (const piece& x : store.read({{{table}, 0, size}}, previous))
    values.insert(values.end(), x.values.get(), x.values.get() + x.where.count);
  return values;
}

/// Computes one table in float64, element by element, by the formulas of kernels/optimizer.hpp.
struct reference {
  optimizer_spec how;
  std::vector<double> w, m, v;
  std::vector<double> t;

  reference(const optimizer_spec& optimizer, const std::vector<float>& start)
      : how(optimizer), w(start.begin(), start.end()), m(w.size()), v(w.size()), t(w.size()) {}

  void step(std::size_t i, double gradient, double rate_scale = 1.0) {
    if (how.clip_value > 0.0f)
      gradient = std::clamp<double>(gradient, -how.clip_value, how.clip_value);
    const double decay = how.weight_decay * w[i];
    const double g = gradient + decay;
    const double rate = how.learning_rate * rate_scale;
    t[i] += 1.0;
    switch (how.kind) {
    case optimizer_kind::user: // server_functions_test.cpp tests functions.
    case optimizer_kind::sgd: w[i] -= rate * g; break;
    case optimizer_kind::momentum:
      m[i] = how.momentum * m[i] + g;
      w[i] -= rate * m[i];
      break;
    case optimizer_kind::adagrad:
      v[i] += g * g;
      w[i] -= rate * g / (std::sqrt(v[i]) + how.epsilon);
      break;
    case optimizer_kind::adam:
      m[i] = how.momentum * m[i] + (1.0 - how.momentum) * g;
      v[i] = how.beta2 * v[i] + (1.0 - how.beta2) * g * g;
      w[i] -= rate * (m[i] / (1.0 - std::pow(how.momentum, t[i])))
              / (std::sqrt(v[i] / (1.0 - std::pow(how.beta2, t[i]))) + how.epsilon);
      break;
    case optimizer_kind::nesterov:
      m[i] = how.momentum * m[i] + g;
      w[i] -= rate * (g + how.momentum * m[i]);
      break;
    case optimizer_kind::adamw:
      m[i] = how.momentum * m[i] + (1.0 - how.momentum) * gradient;
      v[i] = how.beta2 * v[i] + (1.0 - how.beta2) * gradient * gradient;
      w[i] -= rate * decay;
      w[i] -= rate * (m[i] / (1.0 - std::pow(how.momentum, t[i])))
              / (std::sqrt(v[i] / (1.0 - std::pow(how.beta2, t[i]))) + how.epsilon);
      break;
    case optimizer_kind::ftrl: // In the paper, `m` is z and `v` is n.
      m[i] += gradient;
      m[i] -= (std::sqrt(v[i] + gradient * gradient) - std::sqrt(v[i])) / rate * w[i];
      v[i] += gradient * gradient;
      w[i] = std::abs(m[i]) <= how.l1
               ? 0.0
               : (std::copysign(how.l1, m[i]) - m[i])
                   / ((how.beta + std::sqrt(v[i])) / rate + how.weight_decay);
    }
  }

  double distance(const std::vector<float>& values) const {
    double largest = 0.0;
    for (std::size_t i = 0; i < w.size(); ++i)
      largest = std::max(largest, std::abs(w[i] - static_cast<double>(values[i])));
    return largest;
  }
};

/// Allows a few float32 roundings of values and moments of size one, over up to ten steps.
constexpr double tolerance = 2e-5;

// -- stepping --

TEST_CASE("every optimiser follows its formula, also across a checkpoint") {
  job_spec job = every_optimizer();
  for (table_spec& table : job.tables) {
    table.optimizer.weight_decay = 0.01f;
    table.optimizer.clip_value = 0.9f;
    table.optimizer.beta2 = 0.99f;
    table.optimizer.l1 = 0.1f;
  }
  block_store store = store_of(job);
  std::vector<reference> references;
  for (std::uint32_t i = 0; i < job.tables.size(); ++i)
    references.emplace_back(job.tables[i].optimizer, read(store, i));
  for (std::uint64_t step = 0; step < 10; ++step) {
    if (step == 5) {
      const auto images = store.pin(described(all_partitions(job)));
      REQUIRE(block_store::complete(job, images));
      store = block_store{job, images, std::make_shared<buffer_pool>()};
    }
    push_request push = push_of(0, {});
    for (std::uint32_t i = 0; i < job.tables.size(); ++i) {
      const auto gradient = random_gradient(step * 10 + i);
      push += pieces_of(i, gradient);
      for (std::size_t k = 0; k < size; ++k)
        references[i].step(k, gradient[k]);
    }
    REQUIRE(apply(store, effect_of(job, 1), {push}));
  }
  for (std::uint32_t i = 0; i < job.tables.size(); ++i) {
    CAPTURE(job.tables[i].name);
    CHECK(references[i].distance(read(store, i)) < tolerance);
  }
}

TEST_CASE("a restored store is equal and stays equal, bit for bit") {
  const job_spec job = every_optimizer();
  block_store one = store_of(job);
  const auto step = [&](block_store& store, std::uint64_t seed) {
    push_request push = push_of(0, {});
    for (std::uint32_t i = 0; i < job.tables.size(); ++i)
      push += pieces_of(i, random_gradient(seed + i));
    REQUIRE(apply(store, effect_of(job, 1), {push}));
  };
  step(one, 1);
  step(one, 2);
  block_store two{job, one.pin(described(all_partitions(job))), std::make_shared<buffer_pool>()};
  step(one, 3);
  step(two, 3);
  for (std::uint32_t i = 0; i < job.tables.size(); ++i)
    CHECK(read(one, i) == read(two, i));
}

TEST_CASE("values do not depend on the number of servers") {
  const job_spec job = every_optimizer();
  block_store one = store_of(job);
  std::vector<block_store> two;
  for (const auto& mine :
       {std::vector<partition_id>{{0}, {3}}, std::vector<partition_id>{{1}, {2}}})
    two.emplace_back(job, mine, std::make_shared<buffer_pool>());
  const auto part_of = [&](const piece& x) -> std::size_t {
    const auto p = partition_of(job, x.where.table, x.where.first / block_size).value;
    return p == 1 || p == 2 ? 1 : 0;
  };
  for (std::uint64_t step = 0; step < 4; ++step) {
    std::vector<push_request> whole;
    std::vector<std::vector<push_request>> parts(2);
    for (std::uint32_t worker = 0; worker <= step; ++worker) {
      push_request push = push_of(worker, {}, 3.0f);
      for (std::uint32_t i = 0; i < job.tables.size(); ++i)
        push += pieces_of(i, random_gradient(step * 100 + worker * 10 + i));
      for (std::size_t server = 0; server < 2; ++server) {
        push_request part = push;
        std::erase_if(part.pieces, [&](const piece& x) { return part_of(x) != server; });
        parts[server].push_back(part);
      }
      whole.push_back(push);
    }
    REQUIRE(apply(one, effect_of(job, whole.size()), whole));
    for (std::size_t server = 0; server < 2; ++server)
      REQUIRE(apply(two[server], effect_of(job, whole.size()), parts[server]));
  }
  for (std::uint32_t i = 0; i < job.tables.size(); ++i)
    for (const piece& x : one.read({{{i}, 0, size}}, {})) {
      const auto other = two[part_of(x)].read({x.where}, {});
      REQUIRE(other.size() == 1);
      CHECK(std::equal(x.values.get(), x.values.get() + x.where.count, other[0].values.get()));
    }
}

TEST_CASE("several pushes are added in slot order and applied as their mean, once") {
  const job_spec job = job_of({table_of("w", optimizer_kind::sgd)});
  // The magnitudes differ, so that another order gives other bits.
  std::vector<std::vector<float>> gradients{random_gradient(1), random_gradient(2),
                                            random_gradient(3)};
  for (std::size_t i = 0; i < size; ++i) {
    gradients[0][i] *= 1e6f;
    gradients[2][i] *= 1e3f;
  }
  block_store store = store_of(job);
  const auto start = read(store, 0);
  REQUIRE(apply(store, effect_of(job, 3),
                {push_of(0, pieces_of(0, gradients[0])), push_of(1, pieces_of(0, gradients[1])),
                 push_of(2, pieces_of(0, gradients[2]))}));
  std::vector<float> sum(size);
  for (std::size_t i = 0; i < size; ++i)
    sum[i] = (gradients[0][i] + gradients[1][i]) + gradients[2][i];
  kernels::step_options options;
  options.rate = 0.05f;
  options.gradient_scale = 1.0f / 3.0f;
  std::vector<float> expected(size);
  REQUIRE(kernels::optimizer_step(expected, {}, start, {}, sum, options));
  CHECK(read(store, 0) == expected);
}

TEST_CASE("a push that brings nothing counts as a zero gradient") {
  const job_spec job = job_of({table_of("w", optimizer_kind::sgd)});
  block_store store = store_of(job);
  reference expected{job.tables[0].optimizer, read(store, 0)};
  const auto gradient = random_gradient(1);
  REQUIRE(
    apply(store, effect_of(job, 4),
          {push_of(0, {}), push_of(1, pieces_of(0, gradient)), push_of(2, {}), push_of(3, {})}));
  for (std::size_t i = 0; i < size; ++i)
    expected.step(i, gradient[i] / 4.0);
  CHECK(expected.distance(read(store, 0)) < tolerance);
}

TEST_CASE("a block that no piece touches is left as it is") {
  const job_spec job = job_of({table_of("w", optimizer_kind::adam)});
  block_store store = store_of(job);
  const auto start = read(store, 0);
  const auto before = store.pin(described(all_partitions(job)));
  REQUIRE(
    apply(store, effect_of(job, 2),
          {push_of(0, pieces_of(0, random_gradient(1, block_size), block_size)), push_of(1, {})}));
  const auto now = read(store, 0);
  CHECK(std::equal(now.begin(), now.begin() + block_size, start.begin()));
  CHECK_FALSE(
    std::equal(now.begin() + block_size, now.begin() + 2 * block_size, start.begin() + block_size));
  CHECK(std::equal(now.begin() + 2 * block_size, now.end(), start.begin() + 2 * block_size));
  for (const auto& partition : store.pin(described(all_partitions(job))))
    for (const auto& x : partition.blocks) {
      CHECK(x.steps == (x.block == 1 ? 1 : 0));
      CHECK(x.version == (x.block == 1 ? 1 : 0));
    }
}

TEST_CASE("a part of a block is stepped alone, with every optimiser") {
  const job_spec job = every_optimizer();
  block_store store = store_of(job);
  std::vector<reference> references;
  for (std::uint32_t i = 0; i < job.tables.size(); ++i)
    references.emplace_back(job.tables[i].optimizer, read(store, i));
  for (std::uint64_t step = 0; step < 3; ++step) {
    push_request push = push_of(0, {});
    for (std::uint32_t i = 0; i < job.tables.size(); ++i) {
      const auto gradient = random_gradient(step * 10 + i, 6000);
      push += pieces_of(i, {gradient.begin(), gradient.begin() + 1}, 5);
      push += pieces_of(i, {gradient.begin() + 1, gradient.end()}, 100);
      references[i].step(5, gradient[0]);
      for (std::size_t k = 1; k < 6000; ++k)
        references[i].step(99 + k, gradient[k]);
    }
    REQUIRE(store.check(push.pieces));
    REQUIRE(apply(store, effect_of(job, 1), {push}));
  }
  for (std::uint32_t i = 0; i < job.tables.size(); ++i) {
    CAPTURE(job.tables[i].name);
    CHECK(references[i].distance(read(store, i)) < tolerance);
  }
}

TEST_CASE("parts of a block that overlap are added where they do") {
  const job_spec job = job_of({table_of("w", optimizer_kind::momentum)});
  block_store store = store_of(job);
  reference expected{job.tables[0].optimizer, read(store, 0)};
  const auto a = random_gradient(1, 1000);
  const auto b = random_gradient(2, 1000);
  const auto c = random_gradient(3, 50);
  REQUIRE(apply(store, effect_of(job, 3),
                {push_of(0, pieces_of(0, a, 3600)), push_of(1, pieces_of(0, b, 4000)),
                 push_of(2, pieces_of(0, c, 10))}));
  for (std::size_t i = 0; i < size; ++i) {
    double sum = 0.0;
    if (i >= 3600 && i < 4600)
      sum += a[i - 3600];
    if (i >= 4000 && i < 5000)
      sum += b[i - 4000];
    if (i >= 10 && i < 60)
      sum += c[i - 10];
    if (sum != 0.0)
      expected.step(i, sum / 3.0);
  }
  CHECK(expected.distance(read(store, 0)) < tolerance);
}

TEST_CASE("clipping by norm scales each push before they are added") {
  job_spec job =
    job_of({table_of("w", optimizer_kind::sgd), table_of("free", optimizer_kind::sgd)});
  job.tables[0].optimizer.clip_norm = 2.0f;
  block_store store = store_of(job);
  reference clipped{job.tables[0].optimizer, read(store, 0)};
  reference free{job.tables[1].optimizer, read(store, 1)};
  const auto a = random_gradient(1);
  const auto b = random_gradient(2);
  push_request large = push_of(0, pieces_of(0, a), 8.0f);
  large += pieces_of(1, a);
  push_request small = push_of(1, pieces_of(0, b), 1.0f);
  small += pieces_of(1, b);
  REQUIRE(apply(store, effect_of(job, 1), {large}));
  REQUIRE(apply(store, effect_of(job, 2), {large, small}));
  for (std::size_t i = 0; i < size; ++i) {
    clipped.step(i, a[i] / 4.0);
    clipped.step(i, (a[i] / 4.0 + b[i]) / 2.0);
    free.step(i, a[i]);
    free.step(i, (double{a[i]} + b[i]) / 2.0);
  }
  CHECK(clipped.distance(read(store, 0)) < tolerance);
  CHECK(free.distance(read(store, 1)) < tolerance);
}

TEST_CASE("where the table says so, a large staleness lowers the rate") {
  job_spec job =
    job_of({table_of("w", optimizer_kind::sgd), table_of("full", optimizer_kind::sgd)});
  job.tables[0].optimizer.full_rate_staleness = 1.5f;
  for (const std::uint64_t staleness : {0, 1, 2, 5}) {
    block_store store = store_of(job);
    reference scaled{job.tables[0].optimizer, read(store, 0)};
    reference full{job.tables[1].optimizer, read(store, 1)};
    const auto gradient = random_gradient(1);
    push_request push = push_of(0, pieces_of(0, gradient));
    push += pieces_of(1, gradient);
    apply_effect effect = effect_of(job, 1);
    effect.staleness_versions = staleness;
    REQUIRE(apply(store, effect, {push}));
    for (std::size_t i = 0; i < size; ++i) {
      scaled.step(i, gradient[i], 1.5 / std::max(1.5, static_cast<double>(staleness)));
      full.step(i, gradient[i]);
    }
    CHECK(scaled.distance(read(store, 0)) < tolerance);
    CHECK(full.distance(read(store, 1)) < tolerance);
  }
}

TEST_CASE("skipped partitions and tables that the effect does not name are left alone") {
  const job_spec job =
    job_of({table_of("a", optimizer_kind::sgd), table_of("b", optimizer_kind::sgd)});
  block_store store = store_of(job);
  const auto start_a = read(store, 0);
  const auto start_b = read(store, 1);
  push_request push = push_of(0, pieces_of(0, random_gradient(1)));
  push += pieces_of(1, random_gradient(2));
  apply_effect effect = effect_of(job, 1);
  effect.tables = {{0}};
  effect.skip = {{{0}, partition_of(job, {0}, 1)}};
  REQUIRE(apply(store, effect, {push}));
  CHECK(read(store, 1) == start_b);
  const auto now = read(store, 0);
  CHECK(std::equal(now.begin() + block_size, now.begin() + 2 * block_size,
                   start_a.begin() + block_size));
  CHECK(now[0] != start_a[0]);
  CHECK(now[size - 1] != start_a[size - 1]);
}

TEST_CASE("memory of pieces may be aligned like a float") {
  const job_spec job = job_of({table_of("w", optimizer_kind::adam)});
  const auto gradient = random_gradient(1);
  block_store even = store_of(job);
  block_store odd = store_of(job);
  REQUIRE(apply(even, effect_of(job, 1), {push_of(0, pieces_of(0, gradient))}));
  std::vector<piece> shifted;
  for (const piece& x : pieces_of(0, gradient)) {
    const auto memory = std::make_shared<std::vector<float>>(x.where.count + 1);
    std::copy_n(x.values.get(), x.where.count, memory->data() + 1);
    shifted.push_back({x.where, float_ptr{memory, memory->data() + 1}});
  }
  REQUIRE(apply(odd, effect_of(job, 1), {push_of(0, shifted)}));
  CHECK(read(even, 0) == read(odd, 0));
}

// -- not finite --

TEST_CASE("a gradient that is not finite changes nothing and is named") {
  const job_spec job =
    job_of({table_of("w0", optimizer_kind::sgd), table_of("w1", optimizer_kind::sgd)});
  block_store store = store_of(job);
  const auto start = read(store, 0);
  auto bad = random_gradient(2);
  bad[5000] = std::numeric_limits<float>::quiet_NaN();
  push_request push = push_of(2, pieces_of(0, random_gradient(1)));
  push += pieces_of(1, bad);
  const std::string text =
    "worker 2 pushed a gradient that is not finite: table 'w1', element 5000 (nan)";
  SUBCASE("alone") {
    const auto done = apply(store, effect_of(job, 1), {push});
    REQUIRE_FALSE(done);
    CHECK(done.error() == failure{errc::non_finite, text});
  }
  SUBCASE("among others") {
    const auto done =
      apply(store, effect_of(job, 2), {push_of(1, pieces_of(1, random_gradient(3))), push});
    REQUIRE_FALSE(done);
    CHECK(done.error().text == text);
  }
  SUBCASE("on arrival") {
    const auto done = store.check_finite(push);
    REQUIRE_FALSE(done);
    CHECK(done.error().text == text);
    CHECK(store.check_finite(push_of(1, pieces_of(1, random_gradient(3)))));
  }
  SUBCASE("in a part of a block") {
    push = push_of(2, pieces_of(1, {1.0f, -std::numeric_limits<float>::infinity()}, 7));
    const auto done = apply(store, effect_of(job, 1), {push});
    REQUIRE_FALSE(done);
    CHECK(done.error().text
          == "worker 2 pushed a gradient that is not finite: table 'w1', element 8 (-inf)");
  }
  CHECK(read(store, 0) == start);
  for (const auto& partition : store.pin(described(all_partitions(job))))
    for (const auto& x : partition.blocks)
      CHECK(x.steps == 0);
}

TEST_CASE("a sum that is not finite changes nothing and is named") {
  const job_spec job = job_of({table_of("w", optimizer_kind::sgd, consistency_mode::bsp)});
  block_store store = store_of(job);
  const auto start = read(store, 0);
  auto large = random_gradient(1);
  large[4100] = std::numeric_limits<float>::max();
  const auto done = apply(store, effect_of(job, 2),
                          {push_of(0, pieces_of(0, large)), push_of(1, pieces_of(0, large))});
  REQUIRE_FALSE(done);
  CHECK(done.error()
        == failure{errc::non_finite, "sum of 2 gradients is not finite: table 'w', element 4100"});
  CHECK(read(store, 0) == start);
}

TEST_CASE("a norm that is not finite is refused where it would be used") {
  job_spec job = job_of({table_of("w", optimizer_kind::sgd)});
  const push_request push =
    push_of(3, pieces_of(0, random_gradient(1)), std::numeric_limits<float>::infinity());
  block_store free = store_of(job);
  CHECK(free.check_finite(push));
  CHECK(apply(free, effect_of(job, 1), {push}));
  job.tables[0].optimizer.clip_norm = 1.0f;
  block_store clipping = store_of(job);
  CHECK_FALSE(clipping.check_finite(push));
  const auto done = apply(clipping, effect_of(job, 1), {push});
  REQUIRE_FALSE(done);
  CHECK(done.error().text
        == "worker 3 pushed a gradient whose norm is not finite: table 'w' (inf)");
}

// -- blocks are shared and never written --

TEST_CASE("what was read or pinned never changes") {
  const job_spec job = every_optimizer();
  block_store store = store_of(job);
  std::vector<float> start = read(store, 3);
  const auto held = store.read({{{3}, 0, size}}, {});
  const auto image = store.pin(described(all_partitions(job)));
  for (std::uint64_t step = 0; step < 3; ++step)
    REQUIRE(apply(store, effect_of(job, 1), {push_of(0, pieces_of(3, random_gradient(step)))}));
  std::vector<float> now;
  for (const piece& x : held)
    now.insert(now.end(), x.values.get(), x.values.get() + x.where.count);
  CHECK(now == start);
  const block_store restored{job, image, std::make_shared<buffer_pool>()};
  CHECK(read(restored, 3) == start);
  CHECK(read(store, 3) != start);
}

TEST_CASE("reading copies nothing and cuts at blocks") {
  const job_spec job = job_of({table_of("w", optimizer_kind::sgd)});
  const block_store store = store_of(job);
  const auto all = store.read({{{0}, 0, size}}, {});
  REQUIRE(all.size() == 3);
  const auto some = store.read({{{0}, 4000, 5000}, {{0}, 17, 1}}, {});
  REQUIRE(some.size() == 4);
  CHECK(some[0].where == range{{0}, 4000, 96});
  CHECK(some[0].values.get() == all[0].values.get() + 4000);
  CHECK(some[1].where == range{{0}, 4096, 4096});
  CHECK(some[1].values == all[1].values);
  CHECK(some[2].where == range{{0}, 8192, 808});
  CHECK(some[3].where == range{{0}, 17, 1});
  CHECK(some[3].values.get() == all[0].values.get() + 17);
}

TEST_CASE("steps reuse the memory of the blocks that they replace") {
  const job_spec job = every_optimizer();
  const auto pool = std::make_shared<buffer_pool>();
  block_store store{job, all_partitions(job), pool};
  const auto step = [&] {
    REQUIRE(apply(store, effect_of(job, 1), {push_of(0, pieces_of(3, random_gradient(1)))}));
  };
  step();
  step();
  const auto allocated = pool->stats().allocated;
  step();
  CHECK(pool->stats().allocated == allocated);
}

TEST_CASE("a bsp table is readable as before its last step") {
  const job_spec job = job_of({table_of("sync", optimizer_kind::sgd, consistency_mode::bsp),
                               table_of("loose", optimizer_kind::sgd)});
  block_store store = store_of(job);
  const auto step = [&](const std::vector<piece>& pieces) {
    REQUIRE(apply(store, effect_of(job, 1), {push_of(0, pieces)}));
  };
  const auto start = read(store, 0);
  CHECK(read(store, 0, {{0}}) == start);
  step(pieces_of(0, random_gradient(1)));
  const auto first = read(store, 0);
  CHECK(first != start);
  CHECK(read(store, 0, {{0}}) == start);
  CHECK(read(store, 0, {{1}}) == first);
  SUBCASE("where the last step touched one block only") {
    step(pieces_of(0, random_gradient(2, block_size)));
    CHECK(read(store, 0) != first);
    CHECK(read(store, 0, {{0}}) == first);
  }
  SUBCASE("where the last step touched nothing") {
    step({});
    CHECK(read(store, 0, {{0}}) == first);
  }
  SUBCASE("where the last step skipped a partition") {
    apply_effect effect = effect_of(job, 1);
    for (std::uint64_t i = 0; i < 3; ++i)
      effect.skip.emplace_back(table_id{0}, partition_of(job, {0}, i));
    REQUIRE(apply(store, effect, {push_of(0, pieces_of(0, random_gradient(3)))}));
    CHECK(read(store, 0) == first);
    CHECK(read(store, 0, {{0}}) == start);
  }
  SUBCASE("where another table was stepped") {
    apply_effect effect = effect_of(job, 1);
    effect.tables = {{1}};
    REQUIRE(apply(store, effect, {push_of(0, pieces_of(1, random_gradient(3)))}));
    CHECK(read(store, 0, {{0}}) == start);
    CHECK(read(store, 1, {{1}}) == read(store, 1));
  }
}

// -- checks --

TEST_CASE("pieces are checked before they are applied") {
  const job_spec job = job_of({table_of("w", optimizer_kind::sgd)});
  const block_store store = store_of(job);
  const auto memory = pieces_of(0, random_gradient(1))[0].values;
  const auto code = [&](std::uint32_t table, std::uint64_t first, std::uint64_t count) {
    const auto done = store.check(std::vector<piece>{{{{table}, first, count}, memory}});
    return done ? std::string{"fine"} : to_string(done.error().code);
  };
  CHECK(code(0, 0, block_size) == "fine");
  CHECK(code(0, 9999, 1) == "fine");
  CHECK(code(1, 0, 1) == "shape_mismatch");
  CHECK(code(0, 0, 0) == "shape_mismatch");
  CHECK(code(0, size, 1) == "shape_mismatch");
  CHECK(code(0, 9999, 2) == "shape_mismatch");
  CHECK(code(0, 1, std::numeric_limits<std::uint64_t>::max()) == "shape_mismatch");
  CHECK(code(0, 4095, 2) == "shape_mismatch");
  CHECK_FALSE(store.check(std::vector<piece>{{{{0}, 0, 1}, nullptr}}));
  const piece early{{{0}, 10, 5}, memory};
  const piece touching{{{0}, 15, 5}, memory};
  const piece overlapping{{{0}, 14, 5}, memory};
  CHECK(store.check(std::vector<piece>{touching, early}));
  CHECK_FALSE(store.check(std::vector<piece>{overlapping, early}));
}

TEST_CASE("ranges to be read are checked too, and may cross blocks") {
  const job_spec job = job_of({table_of("w", optimizer_kind::sgd)});
  const block_store store = store_of(job);
  CHECK(store.check(std::vector<range>{{{0}, 0, size}, {{0}, 5, 9000}}));
  CHECK_FALSE(store.check(std::vector<range>{{{0}, 5, size}}));
  CHECK_FALSE(store.check(std::vector<range>{{{7}, 0, 1}}));
}

TEST_CASE("a partition that is elsewhere is not ready here") {
  const job_spec job = job_of({table_of("w", optimizer_kind::sgd)});
  const partition_id mine = partition_of(job, {0}, 1);
  const block_store store{job, std::vector<partition_id>{mine}, std::make_shared<buffer_pool>()};
  CHECK(store.check(std::vector<range>{{{0}, block_size, block_size}}));
  const auto done = store.check(std::vector<range>{{{0}, block_size, block_size + 1}});
  REQUIRE_FALSE(done);
  CHECK(done.error().code == errc::not_ready);
  CHECK_FALSE(store.check(pieces_of(0, {1.0f})));
}

TEST_CASE("a checkpoint is complete only with all of its blocks in their size") {
  const job_spec job = every_optimizer();
  const block_store store = store_of(job);
  auto images = store.pin(described(all_partitions(job)));
  REQUIRE(block_store::complete(job, images));
  CHECK(images[0].version == 3);
  auto& blocks = images[1].blocks;
  REQUIRE(blocks.size() > 1);
  SUBCASE("one is missing") { blocks.pop_back(); }
  SUBCASE("one is too small") { --blocks[0].count; }
  SUBCASE("one has no state") {
    for (auto& x : blocks)
      x.state_count = 0;
  }
  SUBCASE("one comes twice") { blocks.push_back(blocks[0]); }
  SUBCASE("one lies elsewhere") {
    images[2].blocks.push_back(blocks.back());
    blocks.pop_back();
  }
  const auto done = block_store::complete(job, images);
  REQUIRE_FALSE(done);
  CHECK(done.error().code == errc::damaged);
}

} // namespace

TEST_CASE("admitted pushes applied in one pass leave the bytes of one after the other") {
  auto job = every_optimizer();
  job.tables[1].optimizer.clip_norm = 0.5f;
  job.tables[3].optimizer.full_rate_staleness = 1;
  std::vector<push_request> pushes;
  for (std::uint32_t i = 0; i < 5; ++i) {
    pushes.push_back(push_of(i, {}, 0.3f * static_cast<float>(i)));
    for (std::uint32_t table = 0; table < job.tables.size(); ++table) {
      const bool part = (i + table) % 3 == 0; // 5000 elements, across blocks.
      pushes.back() += part ? pieces_of(table, random_gradient(i * 10 + table, 5000), 1000 * i)
                            : pieces_of(table, random_gradient(i * 10 + table));
    }
  }
  auto one_by_one = store_of(job), together = store_of(job);
  std::vector<block_store::admitted_push> admitted;
  for (const push_request& push : pushes) {
    auto effect = effect_of(job, 1);
    effect.staleness_versions = admitted.size();
    if (admitted.size() == 3)
      effect.skip = {{{0}, {1}}, {{3}, {2}}};
    const push_request* const one[] = {&push};
    REQUIRE(together.admit(effect, push));
    admitted.push_back({effect, &push});
    REQUIRE(one_by_one.apply(effect, one));
  }
  together.apply_admitted(admitted);
  const auto ids = described(all_partitions(job));
  const auto a = one_by_one.pin(ids), b = together.pin(ids);
  for (std::size_t p = 0; p < a.size(); ++p)
    for (std::size_t i = 0; i < a[p].blocks.size(); ++i) {
      const auto &x = a[p].blocks[i], &y = b[p].blocks[i];
      CHECK(x.steps == y.steps);
      CHECK(x.version == y.version);
      CHECK(std::equal(x.values.get(), x.values.get() + x.count, y.values.get()));
      CHECK(std::equal(x.state.get(), x.state.get() + x.state_count, y.state.get()));
    }
}

TEST_CASE("a push that apply would refuse is not admitted") {
  auto job = job_of({table_of("t", optimizer_kind::sgd)});
  const auto store = store_of(job);
  auto gradient = random_gradient(1);
  CHECK(store.admit(effect_of(job, 1), push_of(0, pieces_of(0, gradient))));
  gradient[9999] = std::numeric_limits<float>::quiet_NaN();
  CHECK_FALSE(store.admit(effect_of(job, 1), push_of(0, pieces_of(0, gradient))));
}

TEST_CASE("blocks_begin_with_given_values_on_any_number_of_servers") {
  const auto job = every_optimizer();
  const auto given = std::make_shared<const std::vector<float>>(random_gradient(4));
  std::vector<float> found(size);
  for (const auto id : all_partitions(job)) {
    const block_store store{job, {id}, std::make_shared<buffer_pool>(), {}, {{2, given}}};
    const block_store plain{job, {id}, std::make_shared<buffer_pool>()};
    const auto images = store.pin(described({id})), before = plain.pin(described({id}));
    for (std::size_t i = 0; i < images[0].blocks.size(); ++i) {
      const auto& block = images[0].blocks[i];
      const float* const values = block.values.get();
      if (block.table.value == 2)
        std::copy_n(values, block.count, found.begin() + block.block * block_size);
      else
        CHECK(std::equal(values, values + block.count, before[0].blocks[i].values.get()));
    }
  }
  CHECK(found == *given);
}

TEST_CASE("a_piece_of_a_frozen_table_is_refused") {
  auto job = every_optimizer();
  job.tables[1].frozen = true;
  const auto store = store_of(job);
  CHECK(store.check(pieces_of(0, random_gradient(1))));
  const auto refused = store.check(pieces_of(1, random_gradient(1)));
  REQUIRE_FALSE(refused);
  CHECK(refused.error()
        == failure{errc::shape_mismatch,
                   "a piece for table 'momentum', which is frozen: a stage must not add one"});
}

} // namespace troupe::block_store_test
