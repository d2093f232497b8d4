#include "bench/checkpoints/restore_trials.hpp"

#include "bench/checkpoints/local_servers.hpp"
#include "bench/temporary_directory.hpp"
#include "storage/checkpoint_directory.hpp"
#include "storage/checkpoint_reader.hpp"
#include "tests/storage/same_images.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <array>
#include <random>
#include <stdexcept>
#include <utility>

namespace troupe::bench {

namespace {

using images = std::vector<partition_image>;

struct kind {
  const char* name;
  bsp_tables which;
};
constexpr std::array<kind, 3> kinds{
  {{"asp", bsp_tables::none}, {"bsp", bsp_tables::all}, {"asp and bsp", bsp_tables::every_other}}};

/// Clocks until the first checkpoint and the second, which adds to it; the job has 20.
constexpr std::uint64_t first_clocks = 10, second_clocks = 11;
constexpr std::uint64_t number = 2; ///< The checkpoint that is restored.

// -- training ----------------------------------------------------------------------------------

/// Trains whole clocks, their batches in any order. If no table is bsp, a batch may also be late: a
/// server's applied batches then have holes, and not those of the next server.
void train(const job_spec& job, local_server& server, std::uint64_t from, std::uint64_t to,
           std::mt19937_64& dice) {
  for (auto clock = from; clock < to; ++clock) {
    std::vector<batch_id> batches;
    for (std::uint64_t i = 0; i < job.workers; ++i)
      batches.push_back({clock * job.workers + i});
    std::ranges::shuffle(batches, dice);
    for (const auto batch : batches)
      if (goes_by_clocks(job) || dice() % 6 != 0)
        server.push(batch);
  }
}

/// Pushes some slots of a clock, not all: bsp tables wait for the rest, asp tables apply them at
/// once.
void begin_clock(const job_spec& job, local_server& server, std::uint64_t clock,
                 std::mt19937_64& dice) {
  const auto missing = dice() % job.workers;
  for (std::uint64_t i = 0; i < job.workers; ++i)
    if (i != missing)
      server.push({clock * job.workers + i});
}

void train_to_the_end(const job_spec& job, local_servers& servers) {
  for (auto& server : servers)
    for (batch_id batch; batch.value < job.batches(); ++batch.value)
      server.push(batch);
}

// -- comparing ---------------------------------------------------------------------------------

/// Clears the servers' counts of applied pushes: partitions that come together have one count.
images without_counts(images all) {
  for (auto& image : all)
    image.version = 0;
  return all;
}

/// Clears slabs' versions as well: only their changes matter.
images without_versions(images all) {
  for (auto& image : all)
    for (auto& slab : image.slabs)
      slab.version = 0;
  return without_counts(std::move(all));
}

const partition_image& image_of(const images& all, partition_id partition) {
  return all.at(partition.value);
}

/// Returns the batches applied to all tables in all of a server's partitions.
batch_set applied_in_all(const job_spec& job, const local_server& server, const images& truth) {
  batch_set everywhere{batch_id{job.batches()}};
  for (const auto& x : server.decider().partitions())
    for (const auto& applied : image_of(truth, x.partition).applied)
      everywhere.intersect(applied);
  return everywhere;
}

bool has_applied(const job_spec& job, const local_servers& servers, const images& truth) {
  return std::ranges::all_of(servers, [&](const local_server& server) {
    const auto partitions = server.decider().partitions();
    return server.decider().batches_applied() == applied_in_all(job, server, truth)
           && std::ranges::all_of(partitions, [&](const shard_partition& x) {
                return x.applied == image_of(truth, x.partition).applied;
              });
  });
}

bool has_clocks(const local_servers& servers, const images& truth, std::uint64_t clocks) {
  return std::ranges::all_of(servers, [&](const local_server& server) {
    std::uint64_t version = 0;
    for (const auto& x : server.decider().partitions())
      version = std::max(version, image_of(truth, x.partition).version);
    return server.decider().bsp_clocks() == clocks && server.decider().version() == version;
  });
}

bool has_all_batches(const job_spec& job, const local_servers& servers) {
  return std::ranges::all_of(servers, [&](const local_server& server) {
    return server.decider().batches_applied() == batch_set{batch_id{job.batches()}};
  });
}

// -- trials ------------------------------------------------------------------------------------

/// The state at the cut, and at the end of the uninterrupted run.
struct truth {
  images at_cut;
  std::vector<std::vector<float>> parameters;
  std::uint64_t clocks = 0;
  images at_end;
  std::vector<std::vector<float>> parameters_at_end;
};

/// Adds one to `figure` if `right`, else an error.
void count(bool right, std::uint64_t& figure, const char* what, std::uint32_t servers,
           restore_figures& figures) {
  if (right)
    ++figure;
  else
    figures.wrong.push_back(fmt::format("{}, {} servers restored on {}: other {}", figures.tables,
                                        figures.servers, servers, what));
}

void restore_on(std::uint32_t servers, const job_spec& job, const std::filesystem::path& directory,
                const truth& known, restore_figures& figures) {
  const auto found = storage::newest_good(directory, job);
  if (!found || !found->newest || found->newest->checkpoint != number)
    throw std::runtime_error{"the checkpoint is not found"};
  auto restored = restored_servers(job, servers, directory, number);
  ++figures.restored;
  const auto held = images_of(restored);
  count(parameters_of(job, restored) == known.parameters, figures.parameters, "parameters", servers,
        figures);
  count(storage::same(without_counts(held), without_counts(known.at_cut)), figures.states, "states",
        servers, figures);
  count(has_applied(job, restored, known.at_cut), figures.applied, "marks", servers, figures);
  count(found->newest->clock == known.clocks && has_clocks(restored, known.at_cut, known.clocks),
        figures.clocks, "clocks", servers, figures);
  train_to_the_end(job, restored);
  count(parameters_of(job, restored) == known.parameters_at_end
          && storage::same(without_versions(images_of(restored)), without_versions(known.at_end))
          && has_all_batches(job, restored),
        figures.ends, "values at the end", servers, figures);
}

restore_figures restore(const kind& tables, std::uint32_t servers, std::uint32_t servers_max,
                        std::uint64_t seed) {
  restore_figures figures;
  figures.tables = tables.name;
  figures.servers = servers;
  const auto job = stateful_job(tables.which);
  const temporary_directory home{"troupe-restores"};
  std::mt19937_64 dice{seed};
  auto running = fresh_servers(job, servers);
  const auto writers = open_writers(home.path(), servers);
  for (auto& server : running)
    train(job, server, 0, first_clocks, dice);
  (void)commit_cut(home.path(), job, number - 1, running, writers);
  for (auto& server : running) {
    train(job, server, first_clocks, second_clocks, dice);
    begin_clock(job, server, second_clocks, dice);
  }
  truth known;
  known.at_cut = images_of(running);
  known.parameters = parameters_of(job, running);
  known.clocks = goes_by_clocks(job) ? second_clocks : 0;
  const auto whole = commit_cut(home.path(), job, number, running, writers);
  for (const auto& part : whole.parts)
    for (const auto& file : part.files) {
      ++figures.files;
      figures.megabytes += static_cast<double>(file.size_bytes) / 1e6;
    }
  train_to_the_end(job, running);
  known.at_end = images_of(running);
  known.parameters_at_end = parameters_of(job, running);
  for (std::uint32_t others = 1; others <= servers_max; ++others)
    restore_on(others, job, home.path(), known, figures);
  return figures;
}

} // namespace

std::vector<restore_figures> restore_on_others(std::uint32_t servers_max, std::uint64_t seed) {
  std::vector<restore_figures> all;
  for (const auto& tables : kinds)
    for (std::uint32_t servers = 1; servers <= servers_max; ++servers)
      all.push_back(restore(tables, servers, servers_max, seed + all.size()));
  return all;
}

} // namespace troupe::bench
