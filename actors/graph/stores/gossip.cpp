// The copies of the workers, which mix them with each other.
#include "actors/graph/nodes/store_rules.hpp"
#include "actors/graph/plan.hpp"
#include "actors/training/flat_copy.hpp"
#include "serialization/channel.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace troupe {

namespace of_gossip {

/// Options that have no meaning and no field of their own, and why, behind "STORE is gossip, ".
struct refusal {
  std::string_view options;
  std::string_view why;
};
constexpr std::array refusals{
  refusal{"--sync --staleness-lr", "whose workers mix as the graph says"},
  refusal{"--delta-pulls --push-memory --no-key-cache", "whose workers pull from themselves"},
  refusal{"--pull-ahead --backup-workers", "whose workers compute on their newest values"},
  refusal{"--workers-per-process", "which has a process for each worker"},
  refusal{"--compress", "whose gradients stay in their workers"},
  refusal{"--record --replay", "which keeps no order of pushes"},
};

static void settle(const any_store& store, plan& made) {
  const auto scrub = made.options.servers.scrub_interval; // It has no such field.
  made.options.servers = store.as_servers();
  made.options.servers.tables.clear(); // They are in the job.
  made.options.servers.scrub_interval = scrub;
  // A slow peer slows no other, or is waited for: an eviction would cost its copy. Its batches stay
  // with it, as it may have applied them.
  auto& measure = made.options.workers.stragglers;
  if (measure)
    measure = std::min(*measure, straggler_measure::warned);
}

static void fill(plan& made) {
  made.job.servers = 1;
  made.job.gossip = true;
}

static result<void> check(const plan& what) {
  const auto wrong = [&](std::string text) {
    return result<void>{errc::invalid_argument, std::move(text)};
  };
  for (const auto& [options, why] : refusals)
    for (const auto& given : what.options.given)
      if (fmt::format(" {} ", options).find(fmt::format(" {} ", given)) != std::string::npos)
        return wrong(
          fmt::format("{}: {} is gossip, {}: leave the option out", given, what.store_name, why));
  const auto& source = what.options.workers;
  if (source.per_process > 1 || source.backups > 0 || source.ahead > 0 || source.delta_pulls)
    return wrong(fmt::format("{}: a gossip peer has a process of its own, which pulls from itself: "
                             "leave per_process, backups, ahead and delta_pulls out",
                             what.workers_name));
  if (what.has<reduce>())
    return wrong(fmt::format("a reducer adds up gradients for servers, and {} is gossip: leave it "
                             "out",
                             what.store_name));
  for (const auto& [table, how] : what.options.codec.pushes)
    if (how.how != encoding::f32)
      return wrong(fmt::format("a codec packs gradients, and those of {} stay in their workers: "
                               "leave compress::pushes out",
                               what.store_name));
  for (const auto& table : what.job.tables) {
    if (table.is_sparse())
      return wrong(fmt::format("table '{}' is sparse, and peers mix dense tables alone: use "
                               "troupe::servers",
                               table.name));
    if (table.sync != consistency{})
      return wrong(fmt::format("table '{}' is {}, and the tables of gossip are asp: leave sync out",
                               table.name, to_string(table.sync)));
  }
  if (flat_values(what.job) + flat_state(what.job) + (1u << 20) > parcel_floats_max)
    return wrong(fmt::format("{} has {} MB of values and optimiser state, and a gossip peer has at "
                             "most 1 GiB",
                             what.store_name,
                             4 * (flat_values(what.job) + flat_state(what.job)) / 1'000'000));
  return {};
}

static std::string text(const plan& what) {
  return fmt::format("gossip, {}, {}, spectral gap {:.3f}", what.peers->with.text(),
                     to_string(what.peers->how), what.peers->graph.spectral_gap());
}

} // namespace of_gossip

const store_rules rules_of_gossip{
  .kind = store_kind::gossip,
  .has_servers = true,
  .why_no_servers = " is gossip, whose values are in its workers",
  .why_no_sync = " is gossip, whose workers mix as the graph says",
  .why_no_actors = " is gossip, whose lanes carry copies: leave the actors and channels out",
  .text = of_gossip::text,
  .is_exactly_once = false,
  .lost_at_death = [](const plan&) -> std::string {
    return "batches of the dead peer count partly";
  },
  .why_no_replay = " keeps no order of pushes",
  .settle = of_gossip::settle,
  .fill = of_gossip::fill,
  .check = of_gossip::check};

} // namespace troupe
