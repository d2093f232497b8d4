#include "actors/tables/sparse_store.hpp"

#include "actors/tables/block_store.hpp"
#include "kernels/optimizer.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <random>

namespace troupe::sparse_store_test {

namespace {

using keys = std::vector<std::uint64_t>;

table_spec table_of(const std::string& name, std::uint32_t width, optimizer_kind kind,
                    consistency_mode mode = consistency_mode::asp) {
  table_spec table;
  table.name = name;
  table.kind = table_kind::sparse;
  table.width = width;
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

job_spec every_optimizer(consistency_mode mode = consistency_mode::asp) {
  return job_of({table_of("sgd", 16, optimizer_kind::sgd, mode),
                 table_of("momentum", 3, optimizer_kind::momentum, mode),
                 table_of("adagrad", 8, optimizer_kind::adagrad, mode),
                 table_of("adam", 5, optimizer_kind::adam, mode),
                 table_of("nesterov", 4, optimizer_kind::nesterov, mode),
                 table_of("adamw", 2, optimizer_kind::adamw, mode),
                 table_of("ftrl", 1, optimizer_kind::ftrl, mode)});
}

std::vector<partition_id> partitions_of(const job_spec& job, std::uint32_t server,
                                        std::uint32_t servers) {
  std::vector<partition_id> here;
  for (std::uint32_t p = server; p < job.partitions; p += servers)
    here.push_back({p});
  return here;
}

sparse_store store_of(const job_spec& job, std::uint32_t server = 0, std::uint32_t servers = 1) {
  return {job, partitions_of(job, server, servers), std::make_shared<buffer_pool>()};
}

row_keys list_of(std::uint32_t table, const keys& which, std::uint32_t width) {
  const auto memory = std::make_shared<keys>(which);
  return {{table}, width, memory->size(), {memory, memory->data()}};
}

/// Returns the rows of these keys; `values` has at least one row.
row_piece piece_of(std::uint32_t table, const keys& which, const std::vector<float>& values) {
  const auto memory = std::make_shared<std::vector<float>>(values);
  const auto width = static_cast<std::uint32_t>(values.size() / which.size());
  return {list_of(table, which, width), {memory, memory->data()}};
}

/// A worker's push.
struct push {
  float norm = 1.0f;
  std::vector<row_piece> rows;
};

apply_effect effect_of(const job_spec& job, std::size_t pushes) {
  apply_effect effect;
  effect.pushes = pushes;
  for (std::uint32_t i = 0; i < job.tables.size(); ++i)
    effect.tables.push_back({i});
  return effect;
}

result<void> apply(sparse_store& store, const apply_effect& effect,
                   const std::vector<push>& pushes) {
  std::vector<row_push> views;
  for (std::uint32_t i = 0; i < pushes.size(); ++i)
    views.push_back({{i}, pushes[i].norm, pushes[i].rows});
  if (auto added = store.add_up(effect, views); !added)
    return added;
  store.step(effect);
  return {};
}

std::vector<float> read(const sparse_store& store, const job_spec& job, std::uint32_t table,
                        const keys& which, bool previous = false) {
  const auto values = store.read(list_of(table, which, job.tables[table].width), previous);
  return {values.values.get(), values.values.get() + values.where.floats()};
}

keys some_keys(std::mt19937_64& random, std::size_t count, std::uint64_t below) {
  keys some;
  while (some.size() < count)
    some.push_back(random() % below * 0x1234567);
  std::ranges::sort(some);
  some.erase(std::unique(some.begin(), some.end()), some.end());
  return some;
}

std::vector<float> some_floats(std::mt19937_64& random, std::size_t count) {
  std::vector<float> some(count);
  for (float& x : some)
    x = static_cast<float>(static_cast<double>(random() >> 40) * 0x1p-23 - 1.0);
  return some;
}

/// Computes one table row by row with the kernel of dense tables.
class reference {
public:
  reference(const job_spec& job, std::uint32_t table)
      : spec_(job.tables[table]), initial_(job.seed, spec_) {}

  void step(std::uint64_t key, std::vector<float> gradient, float scale = 1.0f) {
    row& at = at_key(key);
    auto options = options_of(spec_.optimizer, ++at.steps);
    options.gradient_scale = scale;
    REQUIRE(kernels::optimizer_step(at.values, at.state, at.values, at.state, gradient, options));
  }

  std::vector<float> values(const keys& which) {
    std::vector<float> all;
    for (const std::uint64_t key : which)
      std::ranges::copy(at_key(key).values, std::back_inserter(all));
    return all;
  }

private:
  struct row {
    std::vector<float> values, state;
    std::uint64_t steps = 0;
  };

  row& at_key(std::uint64_t key) {
    const auto [found, is_new] = rows_.try_emplace(key);
    if (is_new) {
      found->second.values.resize(spec_.width);
      initial_.fill(key, found->second.values);
      found->second.state.resize(spec_.width * kernels::state_per_weight(spec_.optimizer.kind));
    }
    return found->second;
  }

  table_spec spec_;
  row_initializer initial_;
  std::map<std::uint64_t, row> rows_;
};

std::vector<float> slice(const std::vector<float>& from, std::size_t i, std::size_t width) {
  return {from.begin() + static_cast<std::ptrdiff_t>(i * width),
          from.begin() + static_cast<std::ptrdiff_t>((i + 1) * width)};
}

std::vector<partition_image> pinned(sparse_store& store, const job_spec& job) {
  std::vector<partition_image> images;
  for (const partition_id p : partitions_of(job, 0, 1))
    images.push_back({p, 0, {}, {}, {}});
  store.pin(images);
  return images;
}

const float nan = std::numeric_limits<float>::quiet_NaN();

} // namespace

// -- stepping --

TEST_CASE("rows take the steps of dense elements, bit for bit, also across a checkpoint") {
  job_spec job = every_optimizer();
  for (table_spec& table : job.tables) {
    table.optimizer.weight_decay = 0.01f;
    table.optimizer.clip_value = 0.9f;
  }
  sparse_store store = store_of(job);
  std::vector<reference> expected;
  for (std::uint32_t i = 0; i < job.tables.size(); ++i)
    expected.emplace_back(job, i);
  std::mt19937_64 random{1};
  for (int step = 0; step < 12; ++step) {
    if (step == 6) {
      auto restored =
        sparse_store::restored(job, pinned(store, job), std::make_shared<buffer_pool>());
      REQUIRE(restored);
      store = *std::move(restored);
    }
    push what;
    for (std::uint32_t i = 0; i < job.tables.size(); ++i) {
      const auto touched = some_keys(random, 5000, 20'000);
      const std::size_t width = job.tables[i].width;
      const auto gradient = some_floats(random, touched.size() * width);
      what.rows.push_back(piece_of(i, touched, gradient));
      for (std::size_t k = 0; k < touched.size(); ++k)
        expected[i].step(touched[k], slice(gradient, k, width));
    }
    REQUIRE(store.check(std::span<const row_piece>{what.rows}));
    REQUIRE(apply(store, effect_of(job, 1), {what}));
  }
  for (std::uint32_t i = 0; i < job.tables.size(); ++i) {
    const auto some = some_keys(random, 8000, 25'000);
    CHECK(read(store, job, i, some) == expected[i].values(some));
  }
}

TEST_CASE("a row that nobody pushed is read as its initial values, and not made") {
  const job_spec job = job_of({table_of("a", 4, optimizer_kind::sgd)});
  const sparse_store store = store_of(job);
  const auto first = read(store, job, 0, {1, 2, 3});
  CHECK(first == reference{job, 0}.values({1, 2, 3}));
  CHECK(slice(first, 0, 4) != slice(first, 1, 4));
  CHECK(slice(first, 0, 4) == read(store, job, 0, {1}));
  CHECK(std::ranges::all_of(first, [](float x) { return std::abs(x) <= 0.5f; }));
  CHECK(store.size() == 0);
}

TEST_CASE("rows do not depend on how many servers hold the partitions") {
  const job_spec job = every_optimizer();
  sparse_store whole = store_of(job);
  std::vector<sparse_store> halves;
  halves.push_back(store_of(job, 0, 2));
  halves.push_back(store_of(job, 1, 2));
  std::mt19937_64 random{2};
  for (int step = 0; step < 5; ++step) {
    const auto touched = some_keys(random, 300, 1000);
    const auto gradient = some_floats(random, touched.size() * 5);
    REQUIRE(apply(whole, effect_of(job, 1), {{1.0f, {piece_of(3, touched, gradient)}}}));
    for (std::uint32_t half = 0; half < 2; ++half) {
      keys mine;
      std::vector<float> its;
      for (std::size_t i = 0; i < touched.size(); ++i)
        if (partition_of(job, touched[i]).value % 2 == half) {
          mine.push_back(touched[i]);
          std::ranges::copy(slice(gradient, i, 5), std::back_inserter(its));
        }
      REQUIRE(apply(halves[half], effect_of(job, 1), {{1.0f, {piece_of(3, mine, its)}}}));
      CHECK(read(halves[half], job, 3, mine) == read(whole, job, 3, mine));
    }
  }
  CHECK(halves[0].size() + halves[1].size() == whole.size());
}

TEST_CASE("several pushes are one step with their mean, added up in order") {
  job_spec job = every_optimizer(consistency_mode::bsp);
  sparse_store store = store_of(job);
  std::mt19937_64 random{4};
  for (std::uint32_t t = 0; t < job.tables.size(); ++t) {
    const std::size_t width = job.tables[t].width;
    reference expected{job, t};
    for (int step = 0; step < 4; ++step) {
      std::vector<push> pushes;
      std::map<std::uint64_t, std::vector<float>> sums;
      for (int slot = 0; slot < 3; ++slot) {
        const auto touched = some_keys(random, 40, 60);
        const auto gradient = some_floats(random, touched.size() * width);
        pushes.push_back({1.0f, {piece_of(t, touched, gradient)}});
        for (std::size_t k = 0; k < touched.size(); ++k) {
          auto& sum = sums.try_emplace(touched[k], width).first->second;
          for (std::size_t i = 0; i < width; ++i)
            sum[i] += gradient[k * width + i];
        }
      }
      pushes.push_back({}); // This slot has no rows for these tables.
      const auto all = some_keys(random, 500, 70);
      const auto before = read(store, job, t, all);
      REQUIRE(apply(store, effect_of(job, 4), pushes));
      for (const auto& [key, sum] : sums)
        expected.step(key, sum, 0.25f);
      CHECK(read(store, job, t, all) == expected.values(all));
      CHECK(read(store, job, t, all, true) == before);
    }
  }
}

TEST_CASE("a step that brings nothing makes the previous values the present ones") {
  const job_spec job = job_of({table_of("a", 2, optimizer_kind::sgd, consistency_mode::bsp)});
  sparse_store store = store_of(job);
  REQUIRE(apply(store, effect_of(job, 1), {{1.0f, {piece_of(0, {5}, {1, 1})}}}));
  CHECK(read(store, job, 0, {5}) != read(store, job, 0, {5}, true));
  REQUIRE(apply(store, effect_of(job, 1), {push{}}));
  CHECK(read(store, job, 0, {5}) == read(store, job, 0, {5}, true));
}

TEST_CASE("clipping by norm, mean and staleness scale the step as for dense tables") {
  job_spec job = job_of({table_of("a", 1, optimizer_kind::sgd)});
  job.tables[0].init = {};
  job.tables[0].optimizer.learning_rate = 1.0f;
  job.tables[0].optimizer.clip_norm = 2.0f;
  job.tables[0].optimizer.full_rate_staleness = 1;
  sparse_store store = store_of(job);
  REQUIRE(apply(store, effect_of(job, 1), {{8.0f, {piece_of(0, {1}, {8})}}}));
  CHECK(read(store, job, 0, {1}) == std::vector{-2.0f});
  REQUIRE(apply(store, effect_of(job, 2),
                {{8.0f, {piece_of(0, {2}, {8})}}, {1.0f, {piece_of(0, {2, 3}, {1, 1})}}}));
  CHECK(read(store, job, 0, {2, 3}) == std::vector{-1.5f, -0.5f});
  apply_effect stale = effect_of(job, 1);
  stale.staleness_versions = 4;
  REQUIRE(apply(store, stale, {{1.0f, {piece_of(0, {9}, {1})}}}));
  CHECK(read(store, job, 0, {9}) == std::vector{-0.25f});
}

TEST_CASE("skipped partitions and unnamed tables are left alone, and so are previous values") {
  const job_spec job = job_of({table_of("a", 1, optimizer_kind::sgd, consistency_mode::bsp),
                               table_of("b", 1, optimizer_kind::sgd, consistency_mode::bsp)});
  sparse_store store = store_of(job);
  keys all(100);
  std::iota(all.begin(), all.end(), 0u);
  const push what{1.0f,
                  {piece_of(0, all, std::vector<float>(100, 1.0f)),
                   piece_of(1, all, std::vector<float>(100, 1.0f))}};
  REQUIRE(apply(store, effect_of(job, 1), {what}));
  const auto a = read(store, job, 0, all), b = read(store, job, 1, all);
  const auto a_before = read(store, job, 0, all, true), b_before = read(store, job, 1, all, true);
  apply_effect effect = effect_of(job, 1);
  effect.tables = {{0}};
  effect.skip = {{{0}, {2}}};
  REQUIRE(apply(store, effect, {what}));
  CHECK(read(store, job, 1, all) == b);
  CHECK(read(store, job, 1, all, true) == b_before);
  const auto now = read(store, job, 0, all), before = read(store, job, 0, all, true);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool skipped = partition_of(job, all[i]).value == 2;
    CHECK((now[i] == a[i]) == skipped);
    CHECK(before[i] == (skipped ? a_before[i] : a[i]));
  }
}

TEST_CASE("a gradient that is not finite is named and changes nothing") {
  const job_spec job =
    job_of({table_of("good", 2, optimizer_kind::sgd), table_of("bad", 3, optimizer_kind::adagrad)});
  sparse_store store = store_of(job);
  const push what{1.0f, {piece_of(0, {1}, {1, 1}), piece_of(1, {4, 7}, {1, 1, 1, 1, nan, 1})}};
  const auto done = apply(store, effect_of(job, 1), {what});
  REQUIRE(!done);
  CHECK(done.error().code == errc::non_finite);
  CHECK(done.error().text
        == "worker 0 pushed a gradient that is not finite: table 'bad', key 7, element 1 (nan)");
  CHECK(store.size() == 0);
  const float huge = std::numeric_limits<float>::max();
  const push large{1.0f, {piece_of(0, {1}, {1, huge})}};
  const auto sum = apply(store, effect_of(job, 2), {large, large});
  REQUIRE(!sum);
  CHECK(sum.error().text == "sum of 2 gradients is not finite: table 'good', key 1, element 1");
  CHECK(store.size() == 0);
}

// -- checking --

TEST_CASE("what does not fit is refused with its name") {
  job_spec job = job_of({table_of("a", 2, optimizer_kind::sgd), table_of("d", 0, {})});
  job.tables[1].kind = table_kind::dense;
  job.tables[1].shape = {4};
  const sparse_store store = store_of(job, 0, 2);
  std::uint64_t mine = 0, other = 0;
  while (partition_of(job, mine).value % 2 != 0)
    ++mine;
  while (partition_of(job, other).value % 2 != 1)
    ++other;
  const auto error_of = [&](const std::vector<row_piece>& rows) {
    const auto checked = store.check(std::span<const row_piece>{rows});
    REQUIRE(!checked);
    return checked.error();
  };
  const row_piece none{{{0}, 2, 0, nullptr}, nullptr};
  CHECK(store.check(std::vector<row_piece>{piece_of(0, {mine}, {1, 2})}));
  CHECK(store.check(std::vector<row_piece>{none}));
  CHECK(error_of({piece_of(1, {mine}, {1})}).text == "no such sparse table: 1");
  CHECK(error_of({piece_of(2, {mine}, {1})}).code == errc::shape_mismatch);
  CHECK(error_of({piece_of(0, {mine}, {1})}).text == "rows of 1 floats: table 'a' has 2");
  CHECK(error_of({piece_of(0, {mine, mine}, {1, 2, 3, 4})}).text.starts_with("keys must ascend"));
  CHECK(error_of({piece_of(0, {mine}, {1, 2}), none}).text == "two lists of rows for table 'a'");
  CHECK(error_of({{list_of(0, {mine}, 2), nullptr}}).text == "rows without values: table 'a'");
  CHECK(error_of({{{{0}, 2, 3, nullptr}, nullptr}}).text == "rows without keys: table 'a'");
  CHECK(error_of({piece_of(0, {other}, {1, 2})}).code == errc::not_ready);
  CHECK(store.check(std::vector<row_keys>{list_of(0, {mine}, 2), list_of(0, {mine}, 2)}));
  CHECK(!store.check(std::vector<row_keys>{list_of(0, {other}, 2)}));
}

// -- checkpoints --

TEST_CASE("a pinned image stays as it was, and slabs that nobody wrote to stay the same") {
  const job_spec job = job_of({table_of("a", 16, optimizer_kind::adam)});
  sparse_store store = store_of(job);
  std::mt19937_64 random{5};
  const auto touched = some_keys(random, 9000, 1'000'000);
  const auto gradient = some_floats(random, touched.size() * 16);
  REQUIRE(apply(store, effect_of(job, 1), {{1.0f, {piece_of(0, touched, gradient)}}}));
  const auto at_cut = read(store, job, 0, touched);
  const auto images = pinned(store, job);
  // One existing row, in its partition's first slab, and new rows behind the last.
  const std::uint64_t first = images[1].slabs.at(0).keys.get()[3];
  REQUIRE(apply(store, effect_of(job, 1),
                {{1.0f, {piece_of(0, {first}, std::vector<float>(16, 1.0f))}}}));
  const auto fresh = some_keys(random, 50, 1'000'000'000'000);
  REQUIRE(apply(store, effect_of(job, 1),
                {{1.0f, {piece_of(0, fresh, std::vector<float>(fresh.size() * 16, 1.0f))}}}));
  const auto restored = sparse_store::restored(job, images, std::make_shared<buffer_pool>());
  REQUIRE(restored);
  CHECK(restored->size() == touched.size());
  CHECK(read(*restored, job, 0, touched) == at_cut);

  const auto later = pinned(store, job);
  for (std::size_t p = 0; p < images.size(); ++p) {
    REQUIRE(images[p].slabs.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      const auto &old = images[p].slabs[i], &now = later[p].slabs.at(i);
      const bool written = (p == 1 && i == 0) || i == 2;
      CHECK((old.version != now.version) == written);
      CHECK((old.rows != now.rows) == written);
      CHECK((old.count != now.count) == (i == 2));
    }
  }
}

TEST_CASE("rows of a checkpoint that do not fit are refused") {
  const job_spec job = job_of({table_of("a", 16, optimizer_kind::sgd)});
  sparse_store store = store_of(job);
  std::mt19937_64 random{6};
  const auto touched = some_keys(random, 9000, 1'000'000);
  REQUIRE(apply(store, effect_of(job, 1),
                {{1.0f, {piece_of(0, touched, some_floats(random, touched.size() * 16))}}}));
  const auto good = pinned(store, job);
  const auto refused = [&](auto change) {
    auto images = good;
    change(images);
    const auto restored = sparse_store::restored(job, images, std::make_shared<buffer_pool>());
    return !restored && restored.error().code == errc::damaged;
  };
  CHECK(!refused([](auto&) {}));
  CHECK(refused([](auto& x) { x[0].slabs.erase(x[0].slabs.begin()); }));
  CHECK(refused([](auto& x) { x[0].slabs[1].count -= 1; }));
  CHECK(refused([](auto& x) { x[0].slabs[1].count += 1; }));
  CHECK(refused([](auto& x) { x[0].slabs[0].row_floats = 17; }));
  CHECK(refused([](auto& x) { x[0].slabs[0].rows = nullptr; }));
  CHECK(refused([](auto& x) { x[0].slabs[0].steps = x[0].slabs[0].keys; }));
  CHECK(refused([](auto& x) { x[0].slabs[0].table = {1}; }));
  CHECK(refused([](auto& x) { x[0].slabs[1].keys = x[0].slabs[0].keys; }));
  CHECK(refused([](auto& x) { std::swap(x[0].slabs, x[1].slabs); }));
}

} // namespace troupe::sparse_store_test
