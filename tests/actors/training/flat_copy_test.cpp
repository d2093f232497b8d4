#include "actors/training/flat_copy.hpp"

#include "tests/actors/training/flat_copy_fixture.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <limits>
#include <set>

namespace troupe::flat_copy_test {

using namespace test;

namespace {

/// Returns a copy of equal values and states, whose blocks have taken `steps` steps.
flat_copy constant_copy(const job_spec& job, float values, float state, std::uint64_t steps) {
  buffer_pool pool;
  const std::vector<float> all(flat_values(job), values), states(flat_state(job), state);
  auto images = *images_of(job, {tensor_with(all), tensor_with(states)}, {}, 0);
  for (auto& image : images)
    for (auto& block : image.blocks)
      block.steps = steps;
  return flat_of(job, images, pool);
}

std::set<std::uint64_t> steps_of(const job_spec& job, const flat_copy& what) {
  std::set<std::uint64_t> all;
  for (const auto& image : *images_of(job, what, {}, 0))
    for (const auto& block : image.blocks)
      all.insert(block.steps);
  return all;
}

} // namespace

TEST_CASE("a copy has all values, states, and two floats for each block") {
  const auto job = flat_job();
  CHECK(flat_values(job) == 5 + wide + 5000 + 17);
  // Blocks: 1 of sgd, 3 of adam, 2 of the frozen table and 1 of momentum.
  CHECK(flat_state(job) == 2 * wide + 17 + 2 * (1 + 3 + 2 + 1));
  const auto first = first_copy(job);
  CHECK(first.values.count == flat_values(job));
  CHECK(first.state.count == flat_state(job));
}

TEST_CASE("images that are made of a copy give the same copy") {
  const auto job = flat_job();
  auto store = fresh_store(job);
  for (std::uint64_t batch = 0; batch < 3; ++batch)
    take_step(job, store, gradient_of(job, batch));
  const auto before = copy_of(job, store);
  batch_set applied{batch_id{3}};
  applied.insert({7});
  const auto images = *images_of(job, before, applied, 42);
  REQUIRE(images.size() == job.partitions);
  CHECK(block_store::complete(job, images));
  for (std::uint32_t i = 0; i < images.size(); ++i) {
    CHECK(images[i].partition == partition_id{i});
    CHECK(images[i].version == 42);
    CHECK(images[i].applied == std::vector<batch_set>(job.tables.size(), applied));
    for (const auto& block : images[i].blocks) {
      CHECK(block.steps == (job.tables[block.table.value].frozen ? 0u : 3u));
      CHECK(block.values.get() >= before.values.values.get()); // It lies within the copy.
      CHECK(block.values.get() + block.count <= before.values.values.get() + before.values.count);
    }
  }
  buffer_pool pool;
  const auto after = flat_of(job, images, pool);
  CHECK(floats_of(after.values) == floats_of(before.values));
  CHECK(floats_of(after.state) == floats_of(before.state));
}

TEST_CASE("values of a copy lie table by table, in the order of elements") {
  const auto job = flat_job();
  const auto store = fresh_store(job);
  const auto flat = floats_of(first_copy(job).values);
  std::uint64_t first = 0;
  for (std::uint32_t i = 0; i < job.tables.size(); ++i) {
    const auto size = job.tables[i].size();
    std::vector<float> values(size);
    pull_request pull;
    pull.ranges = {{{i}, 0, size}};
    for (const auto& x : store.read(pull, {}).pieces)
      std::copy_n(x.values.get(), x.where.count,
                  values.begin() + static_cast<std::ptrdiff_t>(x.where.first));
    CHECK(
      std::equal(values.begin(), values.end(), flat.begin() + static_cast<std::ptrdiff_t>(first)));
    first += size;
  }
}

TEST_CASE("a copy of another size is refused") {
  const auto job = flat_job();
  const std::vector<float> values(flat_values(job)), state(flat_state(job));
  const auto why_not = [&](std::int64_t more_values, std::int64_t more_state) {
    const auto with = [](std::size_t size, std::int64_t more) {
      return tensor_with(
        std::vector<float>(static_cast<std::size_t>(static_cast<std::int64_t>(size) + more)));
    };
    const auto made =
      images_of(job, {with(values.size(), more_values), with(state.size(), more_state)}, {}, 0);
    if (!made)
      CHECK(made.error().code == errc::damaged);
    return made ? "" : made.error().text;
  };
  CHECK(why_not(0, 0).empty());
  for (const std::int64_t more : {-1, 1}) {
    CHECK(why_not(more, 0) == "a copy does not have the size of the job's tables");
    CHECK(why_not(0, more) == "a copy does not have the size of the job's tables");
  }
}

TEST_CASE("counts of steps are exact beyond the integers of a float, and garbage is a number") {
  const auto job = flat_job();
  for (const std::uint64_t steps :
       {0ull, 1ull, (1ull << 24) - 1, (1ull << 24) + 1, (1ull << 40) + 3})
    CHECK(steps_of(job, constant_copy(job, 1, 1, steps)) == std::set<std::uint64_t>{steps});
  for (const float bad : {-1.0f, 1e30f, std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> state(flat_state(job), bad);
    const std::vector<float> values(flat_values(job));
    CHECK(steps_of(job, {tensor_with(values), tensor_with(state)}) == std::set<std::uint64_t>{0});
  }
}

TEST_CASE("a mean has the mean of values and of states, and the most steps") {
  const auto job = flat_job();
  const auto a = constant_copy(job, 1, 3, 5), b = constant_copy(job, 2, 6, 9),
             c = constant_copy(job, 6, 0, 7);
  buffer_pool pool;
  const auto mean = mean_of(job, {&a, &b, &c}, pool);
  for (const float x : floats_of(mean.values))
    REQUIRE(x == 3.0f);
  auto states = floats_of(mean.state);
  states.resize(2 * wide + 17); // Counts of steps lie behind it.
  for (const float x : states)
    REQUIRE(x == 3.0f);
  CHECK(steps_of(job, mean) == std::set<std::uint64_t>{9});
  const auto alone = mean_of(job, {&a}, pool);
  CHECK(floats_of(alone.values) == floats_of(a.values));
  CHECK(floats_of(alone.state) == floats_of(a.state));
}

TEST_CASE("a mean is that of float64, rounded once") {
  const auto job = flat_job();
  std::vector<flat_copy> copies;
  std::vector<const flat_copy*> all;
  for (std::uint64_t seed = 1; seed <= 5; ++seed)
    copies.push_back(first_copy(job, seed));
  for (const auto& each : copies)
    all.push_back(&each);
  buffer_pool pool;
  const auto mean = mean_of(job, all, pool);
  for (std::uint64_t i = 0; i < mean.values.count; ++i) {
    double sum = 0;
    for (const auto* each : all)
      sum += static_cast<double>(each->values.values.get()[i]);
    REQUIRE(mean.values.values.get()[i] == doctest::Approx(sum / 5).epsilon(1e-7));
  }
}

TEST_CASE("a set of batches survives the way as floats") {
  batch_set some{batch_id{1000}};
  for (const std::uint64_t batch : {1001, 1003, 1200, 5000})
    some.insert({batch});
  for (const auto& each : {batch_set{}, batch_set{batch_id{64}}, batch_set{batch_id{77}}, some}) {
    const auto there = tensor_of(each);
    const auto back = batches_of(there);
    REQUIRE(back);
    CHECK(*back == each);
  }
  for (const std::size_t wrong : {0, 1, 3}) {
    const auto back = batches_of(tensor_with(std::vector<float>(wrong)));
    REQUIRE_FALSE(back);
    CHECK(back.error().code == errc::damaged);
    CHECK(back.error().text == "a set of batches has an odd size");
  }
}

} // namespace troupe::flat_copy_test
