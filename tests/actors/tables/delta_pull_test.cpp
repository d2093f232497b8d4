// Tests pulls that bring only changed values against full pulls: stores, router and the merge.
#include "actors/tables/block_store.hpp"
#include "actors/training/cached_values.hpp"
#include "tests/actors/router_fixture.hpp"
#include "tests/serialization/random_source.hpp"

#include "doctest/doctest.h"

#include <set>

namespace delta_pull_test {

using namespace troupe;
using test::random_source;

namespace {

job_spec job_in(consistency_mode mode) {
  job_spec job = test::routed_job();
  for (auto& table : job.tables) {
    table.sync.mode = mode;
    table.init = {initializer_kind::uniform, 0.5f};
    table.optimizer.learning_rate = 0.5f;
  }
  return job;
}

std::vector<partition_id> partitions_of(const job_spec& job, std::uint32_t server) {
  std::vector<partition_id> own;
  for (std::uint32_t p = 0; p < job.partitions; ++p)
    if (p % job.servers == server)
      own.push_back({p});
  return own;
}

std::vector<partition_id> all_partitions() { return {{0}, {1}, {2}, {3}}; }

push_request random_push(const job_spec& job, random_source& random, std::uint32_t server) {
  push_request push;
  for (std::uint32_t t = 0; t < job.tables.size(); ++t)
    for (std::uint64_t b = 0; b < block_count(job.tables[t]); ++b) {
      range where = block_range(job, {t}, b);
      if (partition_of(job, {t}, b).value % job.servers != server || random.chance())
        continue;
      where.first += random.below(where.count);
      where.count = 1;
      const auto value = std::make_shared<float>(random.below(3) == 0 ? 0.0f : random.real());
      push.pieces.push_back({where, value});
    }
  return push;
}

/// Servers that step, roll back and are replaced, behind a router.
struct cluster {
  cluster(consistency_mode mode, random_source& how)
      : random(how), job(job_in(mode)), split(job), known(empty_cache(job)) {
    for (std::uint32_t s = 0; s < job.servers; ++s) {
      stores.emplace_back(job, partitions_of(job, s), pool);
      pinned.emplace_back();
      pin(s);
    }
    router_effects none;
    split.set_view(test::routed_view(job), {}, none);
  }

  void pin(std::uint32_t server) {
    std::vector<shard_partition> own;
    for (const partition_id p : partitions_of(job, server))
      own.push_back({p, 1, {}});
    pinned[server] = stores[server].pin(own);
  }

  void step(std::uint32_t server) {
    const push_request push = random_push(job, random, server);
    const push_request* const pushes[] = {&push};
    apply_effect effect;
    effect.tables = {{0}, {1}};
    REQUIRE(stores[server].apply(effect, pushes));
  }

  void disturb() {
    const auto server = static_cast<std::uint32_t>(random.below(job.servers));
    switch (random.below(8)) {
    case 0: pin(server); break;
    case 1: stores[server] = block_store{job, pinned[server], pool}; break;
    case 2: stores[server] = block_store{job, partitions_of(job, server), pool}; break;
    case 3: break;
    default: step(server);
    }
  }

  /// Pulls from all servers; some change before they answer. `full`: the values of a full pull.
  pull_reply ask(pull_request what, std::vector<piece>& full) {
    router_effects parts;
    split.ask({++token}, request{{}, std::move(what)}, {}, parts);
    pull_reply answer;
    for (const auto& effect : parts) {
      if (random.below(4) == 0)
        disturb();
      const auto& part = std::get<send_part_effect>(effect);
      const pull_request& asked = *part.what.pull;
      const std::vector<table_id> previous =
        random.chance() ? std::vector<table_id>{{0}, {1}} : std::vector<table_id>{};
      const block_store& store = stores[part.to.shard.value];
      const auto whole = store.read(asked.ranges, previous);
      full.insert(full.end(), whole.begin(), whole.end());
      pull_reply own;
      own.pieces = store.read(asked.ranges, previous, &own.unchanged);
      router_effects done;
      split.answered(part.part, reply{{}, std::move(own)}, {}, done);
      for (const auto& x : done)
        answer = *std::get<answered_effect>(x).answer.pulled;
    }
    unchanged += answer.unchanged.size();
    brought += answer.pieces.size();
    return answer;
  }

  random_source& random;
  job_spec job;
  std::shared_ptr<buffer_pool> pool = std::make_shared<buffer_pool>();
  std::vector<block_store> stores;
  std::vector<std::vector<partition_image>> pinned;
  router split;
  std::uint64_t token = 0;
  cached_ptr known;
  std::size_t unchanged = 0, brought = 0;
};

pull_request delta_of(const cached_values& known, random_source& random) {
  pull_request what;
  what.ranges = known.ranges;
  what.delta = true;
  for (range& x : what.ranges) { // Some stamps are missing, some are of no store.
    if (random.below(8) == 0)
      x.stamp = 0;
    if (random.below(16) == 0)
      x.stamp = random.next();
  }
  return what;
}

/// Returns the number of elements that differ from a full pull's; 1 if `full` is incomplete.
std::size_t differences(const cached_values& found, const std::vector<piece>& full) {
  std::size_t wrong = 0, seen = 0;
  for (const piece& x : full) {
    const float* const own = found.tables[x.where.table.value].get() + x.where.first;
    for (std::uint64_t i = 0; i < x.where.count; ++i)
      wrong += own[i] == x.values.get()[i] ? 0 : 1;
    seen += x.where.count;
  }
  return seen == 10'003 ? wrong : 1;
}

} // namespace

TEST_CASE("a delta pull gives what a full pull gives, whatever happens to servers") {
  for (const auto mode : {consistency_mode::asp, consistency_mode::bsp})
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      CAPTURE(seed);
      random_source random{seed};
      cluster all{mode, random};
      for (int i = 0; i < 60; ++i) {
        for (auto changes = random.below(3); changes > 0; --changes)
          all.disturb();
        const cached_ptr known = all.known; // Another pull reply may come before this one.
        std::vector<piece> full;
        const auto answer = all.ask(delta_of(*known, random), full);
        const auto found = hold(all.job, *known, answer, *all.pool);
        REQUIRE_MESSAGE(found, found.error().text);
        REQUIRE(differences(**found, full) == 0);
        if (random.below(4) != 0)
          all.known = *found;
      }
      CHECK(all.unchanged > 20);
      CHECK(all.brought > 20);
    }
}

TEST_CASE("stamps are new with each change, and of no other store") {
  const auto job = job_in(consistency_mode::bsp);
  const auto pool = std::make_shared<buffer_pool>();
  std::set<std::uint64_t> seen{0};
  const auto stamp_of = [](const block_store& store, bool before = false) {
    std::vector<range> none;
    const std::vector<table_id> previous =
      before ? std::vector<table_id>{{0}} : std::vector<table_id>{};
    return store.read({{{0}, 5, 1}}, previous, &none).at(0).where.stamp;
  };
  const auto step = [](block_store& store, float gradient) {
    push_request push;
    push.pieces = {{{{0}, 7, 1}, std::make_shared<float>(gradient)}};
    const push_request* const pushes[] = {&push};
    apply_effect effect;
    effect.tables = {{0}};
    REQUIRE(store.apply(effect, pushes));
  };
  block_store store{job, all_partitions(), pool};
  const auto first = stamp_of(store);
  CHECK(seen.insert(first).second);
  step(store, 1);
  const auto second = stamp_of(store);
  CHECK(seen.insert(second).second);
  CHECK(stamp_of(store, true) == first);
  step(store, 0);
  CHECK(stamp_of(store) == second);
  CHECK(stamp_of(store, true) == second);
  const auto images = store.pin({{{0}, 1, {}}, {{1}, 1, {}}, {{2}, 1, {}}, {{3}, 1, {}}});
  CHECK(seen.insert(stamp_of(block_store{job, images, pool})).second);
  CHECK(seen.insert(stamp_of(block_store{job, all_partitions(), pool})).second);
  CHECK(store.read({{{0}, 5, 1}}, {}).at(0).where.stamp == 0); // No stamp was asked for.
}

TEST_CASE("a range is unchanged only where its own block has its stamp") {
  const auto job = job_in(consistency_mode::asp);
  const block_store store{job, all_partitions(), std::make_shared<buffer_pool>()};
  std::vector<range> unchanged;
  const auto pieces = store.read({{{0}, 0, 10'000}}, {}, &unchanged);
  REQUIRE(pieces.size() == 3);
  CHECK(unchanged.empty());
  range across{{0}, 4000, 200, pieces[0].where.stamp};
  const auto some = store.read({across}, {}, &unchanged);
  CHECK(unchanged == std::vector<range>{{{0}, 4000, 96}});
  REQUIRE(some.size() == 1);
  CHECK(some[0].where == range{{0}, 4096, 104});
  CHECK(some[0].where.stamp == pieces[1].where.stamp);
}

TEST_CASE("a router takes unchanged for values only of a delta, and never for too many") {
  const auto answered = [](bool delta, std::vector<range> unchanged) {
    test::router_fixture f;
    auto asked = test::whole_pull(f.job);
    asked.delta = delta;
    asked.ranges = {{{1}, 0, 3, 77}};
    f.pull(1, asked);
    REQUIRE(f.sent.size() == 1);
    CHECK(f.sent[0].what.pull->delta == delta);
    CHECK(f.sent[0].what.pull->ranges.at(0).stamp == 77);
    pull_reply answer;
    answer.unchanged = std::move(unchanged);
    const auto lines = f.answered(1, {{}, answer});
    return lines.at(0) + ", unchanged " + std::to_string(f.last_values.unchanged.size());
  };
  CHECK(answered(true, {{{1}, 0, 3}}) == "pulled 1 version 0 elements 0, unchanged 1");
  CHECK(answered(false, {{{1}, 0, 3}}) == "failed 1 malformed, unchanged 0");
  CHECK(answered(true, {{{1}, 0, 2}}) == "failed 1 malformed, unchanged 0");
  CHECK(answered(true, {{{1}, 0, 3}, {{1}, 0, 3}}) == "failed 1 malformed, unchanged 0");
  CHECK(answered(true, {{{9}, 0, 3}}) == "failed 1 malformed, unchanged 0");
  CHECK(answered(true, {{{1}, 1, 3}}) == "failed 1 malformed, unchanged 0");
}

TEST_CASE("an asker takes nothing for unchanged that it does not have") {
  const auto job = job_in(consistency_mode::asp);
  buffer_pool pool;
  pull_reply first;
  first.pieces = {{{{1}, 0, 3, 5}, test::numbers(3)},
                  {{{0}, 0, 4096, 6}, test::numbers(4096)},
                  {{{0}, 4096, 5904}, test::numbers(5904)}};
  const auto held = hold(job, *empty_cache(job), first, pool);
  REQUIRE(held);
  CHECK((*held)->ranges == std::vector<range>{{{0}, 0, 4096}, {{0}, 4096, 5904}, {{1}, 0, 3}});

  const auto merged = [&](const cached_ptr& known, std::vector<range> unchanged,
                          std::vector<piece> pieces) {
    pull_reply answer;
    answer.unchanged = std::move(unchanged);
    answer.pieces = std::move(pieces);
    return hold(job, *known, answer, pool);
  };
  const piece rest{{{0}, 4096, 5904, 8}, test::numbers(5904)};
  const auto next = merged(*held, {{{0}, 0, 4096}, {{1}, 0, 3}}, {rest});
  REQUIRE(next);
  CHECK((*next)->tables[1] == (*held)->tables[1]); // Both share the memory.
  CHECK((*next)->tables[0] != (*held)->tables[0]);
  CHECK((*next)->ranges.at(0).stamp == 6);
  CHECK((*next)->ranges.at(1).stamp == 8);
  CHECK((*next)->ranges.at(2).stamp == 5);

  CHECK(!merged(empty_cache(job), {{{0}, 0, 4096}, {{1}, 0, 3}}, {rest}));
  CHECK(!merged(*held, {{{0}, 0, 10'000}, {{1}, 0, 3}}, {}));                  // More than is held.
  CHECK(!merged(*held, {{{0}, 0, 4096}, {{0}, 4096, 5904}, {{1}, 0, 3}}, {})); // One has no stamp.
  CHECK(!merged(*held, {{{0}, 0, 4096}}, {rest}));
  CHECK(!merged(*held, {{{0}, 0, 4096}, {{0}, 0, 4096}, {{1}, 0, 3}}, {rest}));
}

} // namespace delta_pull_test
