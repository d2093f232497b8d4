#include "actors/tables/server_functions.hpp"

#include "actors/tables/table_store.hpp"
#include "serialization/messages.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <limits>
#include <random>
#include <stdexcept>

namespace troupe::server_functions_test {

namespace {

constexpr std::uint64_t size = 10'000; ///< Blocks of 4096, 4096 and 1808 elements.
constexpr std::uint64_t block_size = 4096;
constexpr std::uint32_t width = 5;

/// Is the momentum of kernels/optimizer.hpp, with mu as parameter 0.
bool momentum(const step_info& info, std::span<float> weights, std::span<float> state,
              std::span<const float> gradient) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    state[i] = info.parameters[0] * state[i] + gradient[i] * info.scale;
    weights[i] -= info.rate * state[i];
  }
  return true;
}

/// Writes what it is told: the element or key, and the step; state 1 becomes the staleness.
bool dictate(const step_info& info, std::span<float> weights, std::span<float> state,
             std::span<const float>) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] = static_cast<float>(info.first + (info.table.value == 0 ? i : 0))
                 + 100'000.0f * static_cast<float>(info.step);
    state[i] += 1;
    state[weights.size() + i] = static_cast<float>(info.staleness);
    if (state[i] != static_cast<float>(info.step))
      return false;
  }
  return true;
}

/// How fail_late fails: it returns false, throws, or returns true with a weight that is not finite.
enum class failing { returns_false, throws, gives_nan };

/// Fails from step 3 on, after it has changed the values. Parameter 0: a `failing`.
bool fail_late(const step_info& info, std::span<float> weights, std::span<float> state,
               std::span<const float>) {
  std::ranges::fill(weights, 7.0f);
  std::ranges::fill(state, 7.0f);
  const auto how = static_cast<failing>(info.parameters[0]);
  if (info.step >= 3 && how == failing::throws)
    throw std::runtime_error{"on purpose"};
  if (info.step >= 3 && how == failing::gives_nan)
    weights.back() = std::numeric_limits<float>::quiet_NaN();
  return info.step < 3 || how == failing::gives_nan;
}

const server_functions functions{
  {"momentum/1", {momentum, 1}}, {"dictate/1", {dictate, 2}}, {"fail_late/1", {fail_late, 1}}};

/// Returns a job of a dense and a sparse table.
job_spec job_of(const optimizer_spec& optimizer, consistency_mode mode = consistency_mode::asp) {
  job_spec job;
  job.partitions = 4;
  job.samples = 100;
  job.batch_samples = 1;
  table_spec dense{.name = "w",
                   .shape = {size},
                   .sync = {mode, 0},
                   .optimizer = optimizer,
                   .init = {initializer_kind::uniform, 0.5f}};
  auto rows = dense;
  rows.name = "rows";
  rows.shape.clear();
  rows.kind = table_kind::sparse;
  rows.width = width;
  job.tables = {dense, rows};
  REQUIRE(resolve_functions(job.tables, functions));
  REQUIRE(validate(job));
  return job;
}

optimizer_spec user(const std::string& name, std::vector<float> parameters = {}) {
  return {.kind = optimizer_kind::user,
          .learning_rate = 0.05f,
          .function = name,
          .parameters = std::move(parameters)};
}

std::vector<partition_id> all_partitions() { return {{0}, {1}, {2}, {3}}; }

std::shared_ptr<table_store> store_of(const job_spec& job) {
  return std::make_shared<table_store>(job, all_partitions(), std::make_shared<buffer_pool>(),
                                       functions);
}

std::vector<float> some_floats(std::mt19937_64& random, std::size_t count) {
  std::vector<float> some(count);
  for (float& x : some)
    x = static_cast<float>(static_cast<double>(random() >> 40) * 0x1p-23 - 1.0);
  return some;
}

float_ptr held(std::vector<float> values) {
  const auto memory = std::make_shared<std::vector<float>>(std::move(values));
  return {memory, memory->data()};
}

row_keys keys_of(const std::vector<std::uint64_t>& keys) {
  const auto memory = std::make_shared<std::vector<std::uint64_t>>(keys);
  return {{1}, width, memory->size(), {memory, memory->data()}};
}

const std::vector<std::uint64_t> all_keys{2, 3, 5, 7, 1000, 1001, 123'456};

/// Returns a push of elements [first, end) and of some rows. Both are all of them or a part.
push_request push_of(std::mt19937_64& random, bool all) {
  push_request push;
  push.tables = {{0}, {1}};
  push.gradient_norm = static_cast<float>(1 + random() % 3);
  const std::uint64_t first = all ? 0 : random() % size, end = all ? size : size - random() % 1000;
  for (auto at = std::min(first, end - 1); at < end;) {
    const auto next = std::min(end, (at / block_size + 1) * block_size);
    push.pieces.push_back({{{0}, at, next - at}, held(some_floats(random, next - at))});
    at = next;
  }
  std::vector<std::uint64_t> keys;
  for (const auto key : all_keys)
    if (all || random() % 2 == 0)
      keys.push_back(key);
  if (!keys.empty())
    push.rows.push_back({keys_of(keys), held(some_floats(random, keys.size() * width))});
  return push;
}

result<void> apply(table_store& store, const std::vector<push_request>& pushes,
                   std::uint64_t staleness = 0) {
  std::vector<const push_request*> pointers;
  for (const auto& push : pushes)
    pointers.push_back(&push);
  return store.apply({{{0}, {1}}, {}, staleness, pushes.size()}, pointers);
}

std::vector<float> read(const table_store& store) {
  pull_request all;
  all.ranges = {{{0}, 0, size}};
  all.rows = {keys_of(all_keys)};
  const auto found = store.read(all, {});
  std::vector<float> values;
  for (const auto& x : found.pieces)
    values.insert(values.end(), x.values.get(), x.values.get() + x.where.count);
  const auto& rows = found.rows.front();
  values.insert(values.end(), rows.values.get(), rows.values.get() + rows.where.floats());
  return values;
}

std::vector<partition_image> pin(table_store& store) {
  std::vector<shard_partition> here;
  for (const auto id : all_partitions())
    here.push_back({id, 3, std::vector<batch_set>(2)});
  return store.pin(here);
}

} // namespace

TEST_CASE("a function gives the bytes of the built-in optimiser of its formula") {
  for (const auto mode : {consistency_mode::asp, consistency_mode::bsp}) {
    optimizer_spec built_in{.kind = optimizer_kind::momentum, .learning_rate = 0.05f};
    auto own = user("momentum/1", {built_in.momentum});
    for (auto* const each : {&built_in, &own}) {
      each->clip_norm = 2.0f;
      each->full_rate_staleness = 1.5f;
    }
    const auto job = job_of(own, mode);
    auto mine = store_of(job);
    const auto theirs = store_of(job_of(built_in, mode));
    std::mt19937_64 random{5};
    for (int step = 0; step < 12; ++step) {
      std::vector<push_request> pushes{push_of(random, step % 3 == 0)};
      if (mode == consistency_mode::bsp)
        pushes.push_back(push_of(random, step % 2 == 0));
      REQUIRE(apply(*mine, pushes, step % 4));
      REQUIRE(apply(*theirs, pushes, step % 4));
      REQUIRE(read(*mine) == read(*theirs));
      if (step == 6) { // Across a checkpoint.
        auto restored =
          table_store::restored(job, pin(*mine), std::make_shared<buffer_pool>(), functions);
        REQUIRE(restored);
        mine = *std::move(restored);
      }
    }
  }
}

TEST_CASE("a function is told element or key, step and staleness, and keeps its state") {
  const auto store = store_of(job_of(user("dictate/1")));
  std::mt19937_64 random{5};
  for (std::uint64_t step = 1; step <= 3; ++step) {
    REQUIRE(apply(*store, {push_of(random, true)}, 4));
    const auto values = read(*store);
    const auto base = 100'000.0f * static_cast<float>(step);
    for (std::size_t i = 0; i < size; ++i)
      REQUIRE(values[i] == base + static_cast<float>(i));
    for (std::size_t i = 0; i < all_keys.size() * width; ++i)
      REQUIRE(values[size + i] == base + static_cast<float>(all_keys[i / width]));
  }
  for (const auto& partition : pin(*store)) {
    for (const auto& x : partition.blocks)
      if (x.count > 0) {
        CHECK(x.state_count == 2 * x.count);
        CHECK(x.state.get()[0] == 3);
        CHECK(x.state.get()[x.count] == 4);
      }
    for (const auto& x : partition.slabs) {
      CHECK(x.row_floats == 3 * width);
      CHECK(x.rows.get()[width] == 3);
      CHECK(x.rows.get()[2 * width] == 4);
      CHECK(x.steps.get()[0] == 3);
    }
  }
}

TEST_CASE("a function that fails changes nothing, and the text names it and the place") {
  for (const auto how : {failing::returns_false, failing::throws, failing::gives_nan}) {
    const bool throws = how == failing::throws;
    const auto store = store_of(job_of(user("fail_late/1", {static_cast<float>(how)})));
    std::mt19937_64 random{5};
    REQUIRE(apply(*store, {push_of(random, true)}));
    auto rows_only = push_of(random, true); // From now on a row fails a step earlier.
    rows_only.pieces.clear();
    REQUIRE(apply(*store, {rows_only}));
    const auto before = read(*store);
    const auto failed = apply(*store, {push_of(random, true)});
    REQUIRE_FALSE(failed);
    CHECK(failed.error().code == (throws ? errc::contract_broken : errc::non_finite));
    CHECK(failed.error().text
          == (throws ? "function 'fail_late/1' threw (on purpose): table 'rows', key 2"
                     : "function 'fail_late/1' gave a value that is not finite: table 'rows', key "
                       "2"));
    CHECK(read(*store) == before);
    auto blocks_only = push_of(random, true);
    blocks_only.rows.clear();
    REQUIRE(apply(*store, {blocks_only}));
    const auto later = apply(*store, {blocks_only});
    REQUIRE_FALSE(later);
    CHECK(later.error().text.ends_with(": table 'w', elements 0 to 4095"));
    CHECK(read(*store) == before);
  }
}

TEST_CASE("a gradient that is not finite does not reach a function") {
  const auto store = store_of(job_of(user("dictate/1")));
  std::mt19937_64 random{5};
  auto bad = push_of(random, true);
  bad.step.worker = {3};
  const_cast<float*>(bad.pieces[1].values.get())[2] = std::numeric_limits<float>::infinity();
  const auto before = read(*store);
  const auto failed = apply(*store, {bad});
  REQUIRE_FALSE(failed);
  CHECK(failed.error().text
        == "worker 3 pushed a gradient that is not finite: table 'w', element 4098 (inf)");
  CHECK(read(*store) == before);
}

TEST_CASE("a probe tells functions, parameters and states apart, and is the same each time") {
  const auto crc = [](const optimizer_spec& what, const server_functions& all = functions) {
    const auto probes = probes_of(job_of(what), all);
    REQUIRE(probes.size() == 1);
    CHECK(probes.front().function == what.function);
    return probes.front().crc32c;
  };
  const auto usual = crc(user("momentum/1", {0.5f}));
  CHECK(usual == crc(user("momentum/1", {0.5f})));
  CHECK(usual != crc(user("momentum/1", {0.25f})));
  const server_function otherwise = [](const step_info& info, std::span<float> weights,
                                       std::span<float> state, std::span<const float> gradient) {
    const bool done = momentum(info, weights, state, gradient);
    if (info.step == 30)
      weights.back() += 0x1p-20f;
    return done;
  };
  CHECK(usual != crc(user("momentum/1", {0.5f}), {{"momentum/1", {otherwise, 1}}}));
  CHECK(probes_of(job_of({}), functions).empty());
}

TEST_CASE("a checksum is that of the values and the state") {
  const auto job = job_of(user("momentum/1", {0.5f}));
  const auto one = store_of(job), other = store_of(job);
  CHECK(one->checksum() == other->checksum());
  std::mt19937_64 random{5}, same{5};
  REQUIRE(apply(*one, {push_of(random, true)}));
  CHECK(one->checksum() != other->checksum());
  REQUIRE(apply(*other, {push_of(same, true)}));
  CHECK(one->checksum() == other->checksum());
  auto rows_only = push_of(random, true), blocks_only = rows_only;
  rows_only.pieces.clear();
  blocks_only.rows.clear();
  const auto both = one->checksum();
  REQUIRE(apply(*one, {rows_only}));
  CHECK(one->checksum() != both);
  REQUIRE(apply(*other, {blocks_only}));
  CHECK(other->checksum() != both);
  const auto before = one->checksum();
  const auto images = pin(*one);
  CHECK(one->checksum() == before);
  const auto copied =
    table_store::restored(job, images, std::make_shared<buffer_pool>(), functions);
  REQUIRE(copied);
  CHECK((*copied)->checksum() == before);
}

TEST_CASE("a table of a function that the program lacks is refused") {
  auto tables = job_of(user("momentum/1", {0.5f})).tables;
  CHECK(tables.front().optimizer.function_state == 1);
  const auto missing = resolve_functions(tables, {});
  REQUIRE_FALSE(missing);
  CHECK(missing.error().text
        == "table 'w' names the function 'momentum/1', which this program does not have: call "
           "program.function");
  const auto job = job_of(user("momentum/1", {0.5f}));
  CHECK(check_functions(job, functions));
  CHECK_FALSE(check_functions(job, {}));
  const auto other = check_functions(job, {{"momentum/1", {momentum, 2}}});
  REQUIRE_FALSE(other);
  CHECK(other.error().text
        == "the function 'momentum/1' has 2 floats of state for a weight here and 1 in the job: "
           "build all hosts alike");
}

} // namespace troupe::server_functions_test
