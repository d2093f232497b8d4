// Random clusters under random misfortune: the job ends in bounded time, every batch is once in
// every chain's values, its replicas have the same, nothing goes back while a replica lives, no two
// workers hold the same open batch, no lease id is used twice.
#include "tests/actors/cluster_model.hpp"
#include "tests/actors/cluster_model_members.hpp"
#include "tests/actors/cluster_model_world.hpp"

#include "doctest/doctest.h"

namespace troupe::model {
namespace {

world_options random_options(consistency_mode mode, std::mt19937_64& random) {
  const auto pick = [&](int low, int high) {
    return static_cast<std::uint32_t>(std::uniform_int_distribution<>(low, high)(random));
  };
  world_options how;
  how.sync = {mode, mode == consistency_mode::ssp ? pick(0, 3) : 0};
  how.servers = pick(1, 3);
  how.replicas = pick(1, static_cast<int>(how.servers));
  how.added = pick(0, 3) == 0 ? 1 : 0;
  how.workers = pick(1, 4);
  how.batches_per_pass = pick(20, 250);
  how.passes = pick(1, 3);
  how.lease_batches = pick(1, 20);
  how.checkpoint_clocks = pick(0, 2) == 0 ? pick(1, 20) : 0;
  how.loss = pick(0, 2) * 0.05;
  how.repetition = pick(0, 2) * 0.05;
  how.kill_rate = pick(0, 4);
  how.resume_after = pick(0, 4) == 0;
  return how;
}

/// Some of the workers are slow, and some too many.
world_options slow_options(consistency_mode mode, std::mt19937_64& random) {
  const auto pick = [&](int low, int high) {
    return static_cast<std::uint32_t>(std::uniform_int_distribution<>(low, high)(random));
  };
  auto how = random_options(mode, random);
  how.workers = pick(5, 7);
  how.slow_workers = 1;
  how.backup_workers = mode == consistency_mode::bsp ? pick(0, 2) : 0;
  how.batches_per_pass = pick(200, 400);
  how.kill_rate = pick(0, 2);
  return how;
}

tally run_seeds(consistency_mode mode, std::uint64_t seeds,
                world_options (*options)(consistency_mode, std::mt19937_64&) = random_options) {
  tally all;
  milliseconds longest{0};
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    std::mt19937_64 random(seed * 7919 + static_cast<std::uint64_t>(mode));
    world one(options(mode, random), random());
    try {
      longest = std::max(longest, one.run(60s));
    } catch (const violation& what) {
      std::string story;
      for (const auto& line : one.log())
        story += "\n  " + line;
      story += one.describe();
      FAIL("seed ", seed, ": ", std::string{what.what()}, story);
    }
    all.add(one.counted());
  }
  MESSAGE("seeds ", seeds, ", longest ", longest.count(), " ms; kills: ", all.worker_kills,
          " workers, ", all.server_kills, " servers, ", all.coordinator_kills, " coordinators; ",
          all.stalls, " stalls, ", all.restores, " restores, ", all.rollbacks_to_zero,
          " starts over, ", all.commits, " commits, ", all.repeats, " repeats, ", all.resumes,
          " resumes, ", all.rejoined, " rejoined, ", all.failovers, " failovers, ", all.copies,
          " copies, ", all.moves, " moves, ", all.backups, " backups, ", all.evictions,
          " evictions, ", all.shared, " batches shared");
  return all;
}

/// The misfortunes must have happened, else nothing was tested.
void check_counts(const tally& all, std::uint64_t seeds) {
  CHECK(all.worker_kills > seeds);
  CHECK(all.server_kills > seeds / 2);
  CHECK(all.coordinator_kills > seeds / 2);
  CHECK(all.stalls > seeds / 4);
  CHECK(all.restores > seeds / 4);
  CHECK(all.rotten > 0);
  CHECK(all.rollbacks_to_zero > seeds / 20);
  CHECK(all.commits > seeds);
  CHECK(all.resumes > seeds / 20);
  CHECK(all.failovers > seeds / 20);
  CHECK(all.copies > seeds / 10);
  CHECK(all.moves > seeds / 50);
}

#ifdef TROUPE_SANITIZED // Ten times slower.
constexpr std::uint64_t seeds = 150;
#else
constexpr std::uint64_t seeds = 700;
#endif

} // namespace

TEST_CASE("an asp job ends with every batch applied once, whatever dies") {
  check_counts(run_seeds(consistency_mode::asp, seeds), seeds);
}

TEST_CASE("an ssp job ends with every batch applied once, whatever dies") {
  check_counts(run_seeds(consistency_mode::ssp, seeds), seeds);
}

TEST_CASE("a bsp job ends with every batch applied once, whatever dies") {
  check_counts(run_seeds(consistency_mode::bsp, seeds), seeds);
}

TEST_CASE("whoever is slow, spare, put out or killed, every batch is applied once") {
  constexpr auto some = seeds / 5;
  for (const auto mode : {consistency_mode::asp, consistency_mode::ssp, consistency_mode::bsp}) {
    const auto all = run_seeds(mode, some, slow_options);
    CHECK(all.evictions > some / 5);
    CHECK(all.backups > some / 5);
    CHECK(all.shared > some);
    CHECK(all.worker_kills > some / 2);
  }
}

} // namespace troupe::model
