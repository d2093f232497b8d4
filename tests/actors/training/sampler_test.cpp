#include "actors/training/sampler.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

namespace troupe::sampler_test {

namespace {

job_spec make_job(std::uint64_t samples, std::uint32_t batch_samples, std::uint64_t seed = 1) {
  job_spec job;
  job.seed = seed;
  job.samples = samples;
  job.batch_samples = batch_samples;
  job.epochs = 3;
  return job;
}

std::vector<std::uint32_t> order_of_epoch(const job_spec& job, std::uint64_t epoch) {
  sampler batches(job);
  std::vector<std::uint32_t> order;
  const std::uint64_t count = job.batches_per_epoch();
  for (std::uint64_t i = 0; i < count; ++i) {
    const batch work = batches.at({epoch * count + i});
    CHECK(work.id.value == epoch * count + i);
    CHECK(work.epoch == epoch);
    CHECK(work.index == i);
    CHECK(work.samples.size()
          == std::min<std::uint64_t>(job.batch_samples, job.samples - i * job.batch_samples));
    order.insert(order.end(), work.samples.begin(), work.samples.end());
  }
  return order;
}

} // namespace

TEST_CASE("the batches of a pass cover every sample once") {
  for (const auto& [samples, size] : std::vector<std::pair<std::uint64_t, std::uint32_t>>{
         {1, 1}, {1, 64}, {64, 64}, {65, 64}, {1000, 7}, {60'000, 64}}) {
    CAPTURE(samples);
    CAPTURE(size);
    for (const std::uint64_t epoch : {0u, 2u}) {
      auto order = order_of_epoch(make_job(samples, size), epoch);
      REQUIRE(order.size() == samples);
      std::ranges::sort(order);
      std::vector<std::uint32_t> all(samples);
      std::iota(all.begin(), all.end(), 0u);
      CHECK(order == all);
    }
  }
}

TEST_CASE("the order is a function of seed and pass alone") {
  const auto order = order_of_epoch(make_job(1000, 10), 1);
  CHECK(order_of_epoch(make_job(1000, 10), 1) == order);
  CHECK(order_of_epoch(make_job(1000, 33), 1) == order);
  CHECK(order_of_epoch(make_job(1000, 10), 0) != order);
  CHECK(order_of_epoch(make_job(1000, 10, 2), 1) != order);
}

TEST_CASE("batches may be asked for in any order") {
  const job_spec job = make_job(500, 16);
  sampler forward(job), any(job);
  const auto copy = [](const batch& work) {
    return std::vector<std::uint32_t>(work.samples.begin(), work.samples.end());
  };
  for (const std::uint64_t id : {70u, 3u, 95u, 4u, 3u, 40u}) {
    sampler fresh(job);
    const batch work = any.at({id});
    const batch expected = fresh.at({id});
    CHECK(copy(work) == copy(expected));
    CHECK(work.seed == expected.seed);
  }
}

TEST_CASE("every batch has a seed of its own") {
  std::set<std::uint64_t> seeds;
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    sampler batches(make_job(1000, 10, seed));
    for (std::uint64_t i = 0; i < 300; ++i)
      seeds.insert(batches.at({i}).seed);
  }
  CHECK(seeds.size() == 900);
}

TEST_CASE("every sample comes to every place about equally often") {
  constexpr std::size_t samples = 8, epochs = 8000;
  std::vector<std::uint32_t> seen(samples * samples);
  sampler batches(make_job(samples, samples));
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    const batch work = batches.at({epoch});
    for (std::size_t place = 0; place < samples; ++place)
      ++seen[place * samples + work.samples[place]];
  }
  // 1000 are expected, with a standard deviation of 30; the bounds allow five of them.
  CHECK(*std::ranges::min_element(seen) > 850);
  CHECK(*std::ranges::max_element(seen) < 1150);
}

} // namespace troupe::sampler_test
