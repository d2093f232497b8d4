#include "actors/training/keeper_store.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace troupe::keeper_store_test {

namespace {

/// Adds up gradients of a dense table, and remembers what it was asked.
struct summing final : keeper {
  explicit summing(std::size_t elements) : sums(elements) {}

  void apply(const update& what, const node_notes&) override {
    if (what.batch.value == 13)
      throw std::runtime_error{"an unlucky batch"};
    batches += what.batches;
    for (std::size_t i = 0; i < what.gradients[0].size(); ++i)
      sums[i] += what.gradients[0][i];
    if (what.gradients.size() > 1) {
      keys.assign(what.keys[1].begin(), what.keys[1].end());
      rows.assign(what.gradients[1].begin(), what.gradients[1].end());
    }
  }
  void read(const query& what, mutable_tensors values) override {
    std::copy_n(sums.begin(), values[0].size(), values[0].begin());
    if (values.size() > 1)
      for (std::size_t i = 0; i < values[1].size(); ++i)
        values[1][i] = static_cast<float>(what.keys[1][i / 2]);
  }
  std::vector<std::byte> save() const override {
    if (!can_save)
      throw std::runtime_error{"the disk of the keeper is full"};
    std::vector<std::byte> all(sums.size() * sizeof(float) + 1, std::byte{7}); // An odd size.
    std::memcpy(all.data(), sums.data(), all.size() - 1);
    return all;
  }
  void load(std::span<const std::byte> saved) override {
    if (saved.size() != sums.size() * sizeof(float) + 1)
      throw std::runtime_error{"other elements"};
    std::memcpy(sums.data(), saved.data(), saved.size() - 1);
  }

  std::vector<float> sums, rows;
  std::vector<std::uint64_t> keys;
  std::size_t batches = 0;
  bool can_save = true;
};

constexpr std::uint64_t elements = 10'000; // More than one block.

job_spec job_of(bool with_rows) {
  job_spec job;
  job.name = "kept";
  job.own_store = true;
  job.tables = {{.name = "sums", .shape = {elements}}};
  if (with_rows)
    job.tables.push_back({.name = "rows", .kind = table_kind::sparse, .width = 2});
  return job;
}

float_ptr floats_of(const std::shared_ptr<buffer_pool>& pool, std::uint64_t count, float first) {
  auto made = pool->floats(count);
  for (std::uint64_t i = 0; i < count; ++i)
    made.get()[i] = first + static_cast<float>(i);
  return made;
}

struct fixture {
  explicit fixture(bool with_rows = false, const std::vector<partition_image>& images = {})
      : job(job_of(with_rows)) {
    const keeper_options how{[this] {
                               auto made = std::make_unique<summing>(elements);
                               inner = made.get();
                               return made;
                             },
                             "sums"};
    store = *keeper_store::made(job, images, how, pool);
  }

  push_request push(std::uint64_t batch, std::uint64_t first, std::uint64_t count) const {
    push_request made;
    made.step.batch = {batch};
    made.pieces.push_back({{{0}, first, count}, floats_of(pool, count, 1)});
    return made;
  }
  result<void> apply(const push_request& what) {
    const push_request* const all[]{&what};
    return store->apply({}, all);
  }
  std::vector<float> read_all() const {
    pull_request asked;
    asked.ranges = {{{0}, 0, elements}};
    std::vector<float> all(elements);
    const auto found = *store->answer(asked, {});
    for (const auto& piece : found.pieces)
      std::copy_n(piece.values.get(), piece.where.count,
                  all.begin() + static_cast<std::ptrdiff_t>(piece.where.first));
    return all;
  }

  job_spec job;
  std::shared_ptr<buffer_pool> pool = std::make_shared<buffer_pool>();
  summing* inner = nullptr;
  std::shared_ptr<value_store> store;
};

} // namespace

TEST_CASE("a keeper gets whole tables, and answers any range") {
  fixture f;
  REQUIRE(f.apply(f.push(0, 0, elements)));
  REQUIRE(f.apply(f.push(1, 5000, 3)));
  CHECK(f.inner->batches == 2);
  const auto all = f.read_all();
  CHECK(all[0] == 1);
  CHECK(all[5000] == 5001 + 1);
  CHECK(all[5002] == 5003 + 3);
  CHECK(all[9999] == 10'000);
  pull_request asked;
  asked.ranges = {{{0}, 4999, 2}};
  const auto found = *f.store->answer(asked, {});
  std::uint64_t floats = 0;
  for (const auto& piece : found.pieces)
    floats += piece.where.count;
  CHECK(floats == 2);
  CHECK(found.pieces.front().values.get()[0] == 5000);
}

TEST_CASE("a keeper gets rows and their keys") {
  fixture f{true};
  auto push = f.push(0, 0, elements);
  const auto keys =
    std::make_shared<const std::array<std::uint64_t, 2>>(std::array<std::uint64_t, 2>{4, 9});
  push.rows.push_back({{{1}, 2, 2, {keys, keys->data()}}, floats_of(f.pool, 4, 10)});
  REQUIRE(f.store->check(push));
  REQUIRE(f.apply(push));
  CHECK(f.inner->keys == std::vector<std::uint64_t>{4, 9});
  CHECK(f.inner->rows == std::vector<float>{10, 11, 12, 13});
  pull_request asked;
  asked.rows.push_back(push.rows[0].where);
  const auto found = *f.store->answer(asked, {});
  REQUIRE(found.rows.size() == 1);
  CHECK(found.rows[0].values.get()[3] == 9);
}

TEST_CASE("a sum counts as its batches, and a push without values as a batch") {
  fixture f;
  auto sum = f.push(0, 0, elements);
  sum.others.resize(2);
  REQUIRE(f.apply(sum));
  CHECK(f.inner->batches == 3);
  push_request empty;
  empty.step.batch = {7};
  REQUIRE(f.apply(empty));
  CHECK(f.inner->batches == 4);
  CHECK(f.inner->sums[1] == 2);
}

TEST_CASE("a keeper's state and its batches are one image, which a new keeper loads") {
  fixture f;
  REQUIRE(f.apply(f.push(0, 0, elements)));
  batch_set applied;
  applied.insert(batch_id{0});
  const auto images = f.store->pin({{{0}, 1, {applied}}});
  REQUIRE(images.size() == 1);
  CHECK(images[0].version == 1);
  CHECK(images[0].applied == std::vector{applied});
  REQUIRE(f.apply(f.push(1, 0, elements))); // It does not change the image.
  fixture again{false, images};
  CHECK(again.inner->sums[9999] == 10'000);
}

TEST_CASE("a keeper that refuses a state is named, as is one that throws") {
  fixture f;
  const auto images = f.store->pin({{{0}, 1, {}}});
  const auto refused = keeper_store::made(
    f.job, images, {[] { return std::make_unique<summing>(3); }, "sums"}, f.pool);
  REQUIRE(!refused);
  CHECK(refused.error()
        == failure{errc::contract_broken, "the keeper of 'sums' failed in load(): other elements"});
  const failure broken{
    errc::contract_broken,
    "the keeper of 'sums' failed in apply() at batch 13 of worker 0: an unlucky batch"};
  const auto first = f.apply(f.push(13, 0, elements));
  REQUIRE(!first);
  CHECK(first.error() == broken);
  const auto later = f.apply(f.push(14, 0, elements));
  REQUIRE(!later);
  CHECK(later.error() == broken);
  pull_request asked;
  asked.ranges = {{{0}, 0, 1}};
  CHECK(f.store->answer(asked, {}).error() == broken);
}

TEST_CASE("a keeper whose exception has an empty text is broken as any other") {
  const fixture f;
  const auto made = keeper_store::made(
    f.job, {}, {[]() -> std::unique_ptr<keeper> { throw std::runtime_error{""}; }, "sums"}, f.pool);
  REQUIRE_FALSE(made);
  CHECK(made.error().text
        == "the keeper of 'sums' failed in make(): std::runtime_error without a text");
}

TEST_CASE("a maker that makes no keeper is named") {
  const fixture f;
  const auto made =
    keeper_store::made(f.job, {}, {[] { return std::unique_ptr<keeper>{}; }, "sums"}, f.pool);
  REQUIRE_FALSE(made);
  CHECK(made.error().text == "the keeper of 'sums' failed in make(): it returned no keeper");
}

TEST_CASE("a keeper that cannot save gives nothing to keep") {
  fixture f;
  CHECK(f.store->defect() == nullptr);
  f.inner->can_save = false;
  f.store->pin({{{0}, 1, {}}});
  REQUIRE(f.store->defect() != nullptr);
  CHECK(f.store->defect()->text
        == "the keeper of 'sums' failed in save(): the disk of the keeper is full");
}

TEST_CASE("a keeper that gives out a value that is not finite is named") {
  fixture f;
  f.inner->sums[7] = std::numeric_limits<float>::quiet_NaN();
  pull_request asked;
  asked.ranges = {{{0}, 0, 1}};
  const failure broken{
    errc::contract_broken,
    "the keeper of 'sums' failed in read(): a value is not finite: nan in table 'sums'"};
  CHECK(f.store->answer(asked, {}).error() == broken);
  REQUIRE(f.store->defect() != nullptr);
  CHECK(*f.store->defect() == broken);
}

TEST_CASE("a push that is not finite never reaches the keeper, which goes on") {
  fixture f;
  auto push = f.push(7, 0, elements);
  const auto wrong = f.pool->floats(elements);
  std::fill_n(wrong.get(), elements, std::numeric_limits<float>::infinity());
  push.pieces[0].values = wrong;
  const auto refused = f.apply(push);
  REQUIRE(!refused);
  CHECK(refused.error()
        == failure{errc::non_finite,
                   "worker 0 pushed a gradient of batch 7 that is not finite: table 'sums'"});
  CHECK(f.inner->batches == 0);
  CHECK(f.apply(f.push(8, 0, elements)));
}

TEST_CASE("requests that do not fit the tables are refused before the keeper sees them") {
  fixture f;
  CHECK_FALSE(f.store->check(f.push(0, elements - 1, 2)));
  auto other = f.push(0, 0, 1);
  other.pieces[0].where.table = {1};
  CHECK_FALSE(f.store->check(other));
  pull_request asked;
  asked.ranges = {{{0}, elements, 1}};
  CHECK_FALSE(f.store->check(asked));
  CHECK(f.inner->batches == 0);
}

} // namespace troupe::keeper_store_test
