#include "bench/checkpoints/damage_trials.hpp"

#include "bench/checkpoints/checkpoint_damage.hpp"
#include "bench/checkpoints/local_servers.hpp"
#include "bench/temporary_directory.hpp"
#include "storage/checkpoint_directory.hpp"
#include "storage/checkpoint_reader.hpp"
#include "tests/storage/same_images.hpp"

#include "fmt/format.h"

#include <cstddef>
#include <exception>
#include <optional>
#include <random>
#include <utility>

namespace troupe::bench {

namespace fs = std::filesystem;

namespace {

constexpr std::uint32_t trial_servers = 3;
constexpr std::uint64_t checkpoints = 5, clocks_until_first = 8;
/// The servers restart before this checkpoint: their files then begin with the same names again,
/// but have other content.
constexpr std::uint64_t first_of_new_writers = 3;

/// A checkpoint, and the memory at its cut.
struct specimen {
  storage::manifest whole;
  std::vector<partition_image> images;
  fs::path folder;
  file_tree files;
};

/// The damage of one checkpoint.
struct damage {
  std::size_t specimen = 0;
  std::size_t kind = 0;
  file_changes changes;
  bool has_effect = false;
};

/// Repeats a trial: its number of damages and its seed.
struct trial_options {
  std::uint64_t count, seed;
};

class trials {
public:
  trials();

  /// Runs a trial of at most `damages_max` damages. Returns their number.
  std::uint64_t run(std::uint64_t seed, std::uint64_t damages_max);
  /// Checks that after the last trial all is as it was before the first.
  void check_repaired();

  damage_result result;

private:
  std::vector<damage> choose(std::uint64_t seed, std::uint64_t damages_max) const;
  std::optional<std::size_t> newest_whole(const std::vector<damage>& damages) const;
  void judge(const std::vector<damage>& damages, trial_options trial);
  void judge_reader(const damage& done, trial_options trial);
  bool is_found(const std::optional<std::size_t>& good,
                const storage::checkpoint_search_result& found) const;
  bool is_restored(std::size_t which) const;
  void wrong(const damage& done, trial_options trial, const std::string& what);

  std::uint64_t number_of(std::size_t which) const { return specimens_[which].whole.checkpoint; }
  damage_figures& figures_of(const damage& done) { return result.kinds[done.kind]; }

  const job_spec job_ = stateful_job(bsp_tables::every_other);
  const temporary_directory home_{"troupe-checkpoints"};
  std::vector<partition_id> partitions_;
  std::vector<specimen> specimens_; ///< Oldest first.
};

trials::trials() {
  for (std::uint32_t p = 0; p < job_.partitions; ++p)
    partitions_.push_back({p});
  auto running = fresh_servers(job_, trial_servers);
  auto writers = open_writers(home_.path(), trial_servers);
  batch_id batch;
  for (std::uint64_t number = 1; number <= checkpoints; ++number) {
    const auto clocks = clocks_until_first + number - 1;
    for (; batch.value < clocks * job_.workers; ++batch.value)
      for (auto& server : running)
        server.push(batch);
    if (number == first_of_new_writers) {
      writers.clear();
      writers = open_writers(home_.path(), trial_servers);
    }
    specimen taken;
    taken.images = images_of(running);
    taken.whole = commit_cut(home_.path(), job_, number, running, writers);
    taken.folder = home_.path() / "checkpoints" / fmt::format("{:08}", number);
    taken.files = read_tree(taken.folder);
    result.files += taken.files.size();
    specimens_.push_back(std::move(taken));
  }
  result.checkpoints = checkpoints;
  for (const auto& kind : damage_kinds())
    result.kinds.push_back({.kind = kind.name});
}

/// Chooses the damages, newest checkpoint first.
std::vector<damage> trials::choose(std::uint64_t seed, std::uint64_t damages_max) const {
  std::mt19937_64 dice{seed};
  std::vector<damage> chosen;
  for (auto which = specimens_.size(); which-- > 0;) {
    damage made;
    made.specimen = which;
    made.kind = dice() % damage_kinds().size();
    const auto& files = specimens_[which].files;
    damage_source from{std::mt19937_64{dice()}, files, {}};
    for (std::size_t i = 0; i < specimens_.size(); ++i)
      if (which == 0 ? i > 0 : i < which)
        from.others.push_back(&specimens_[i].files);
    made.changes = damage_kinds()[made.kind].make(from);
    made.has_effect = !changes_nothing(files, made.changes);
    chosen.push_back(std::move(made));
    if (dice() % 3 != 0 || chosen.size() == damages_max)
      break;
  }
  return chosen;
}

/// Returns the checkpoint that the search should find.
std::optional<std::size_t> trials::newest_whole(const std::vector<damage>& damages) const {
  for (const auto& done : damages)
    if (!done.has_effect)
      return done.specimen;
  const auto left = specimens_.size() - damages.size();
  return left == 0 ? std::nullopt : std::optional{left - 1};
}

std::uint64_t trials::run(std::uint64_t seed, std::uint64_t damages_max) {
  const auto damages = choose(seed, damages_max);
  const trial_options trial{damages.size(), seed};
  for (const auto& done : damages)
    write_changes(specimens_[done.specimen].folder, done.changes);
  try {
    judge(damages, trial);
  } catch (const std::exception& problem) {
    wrong(damages.front(), trial, problem.what());
  }
  for (const auto& done : damages) {
    const auto& damaged = specimens_[done.specimen];
    fs::remove(damaged.folder / "DAMAGED"); // The search left it.
    repair(damaged.folder, damaged.files, done.changes);
  }
  return damages.size();
}

void trials::judge(const std::vector<damage>& damages, trial_options trial) {
  const auto good = newest_whole(damages);
  const auto found = storage::newest_good(home_.path(), job_);
  const bool right = found && is_found(good, *found);
  const bool restored = right && good && is_restored(*good);
  result.none_left += good ? 0 : 1;
  for (const auto& done : damages) {
    auto& figures = figures_of(done);
    ++figures.damages;
    const bool verified = bool{storage::verify(home_.path(), number_of(done.specimen), job_)};
    if (!right)
      wrong(done, trial, "the search " + (found ? "takes another one" : found.error().text));
    else if (good && !restored)
      wrong(done, trial, "what is restored are other values");
    if (verified == done.has_effect)
      wrong(done, trial, verified ? "it passes for good" : "it is good and does not pass");
    if (!done.has_effect) {
      ++figures.without_effect;
      continue;
    }
    const bool taken =
      found && found->newest && found->newest->checkpoint == number_of(done.specimen);
    figures.noticed += taken || verified ? 0 : 1;
    figures.restored += restored ? 1 : 0;
    judge_reader(done, trial);
  }
}

/// Returns true if the search took `good`, and refused each newer one by name.
bool trials::is_found(const std::optional<std::size_t>& good,
                      const storage::checkpoint_search_result& found) const {
  const auto refused = specimens_.size() - (good ? *good + 1 : 0);
  if (found.newest.has_value() != good.has_value() || found.refused.size() != refused)
    return false;
  for (std::size_t i = 0; i < refused; ++i)
    if (!found.refused[i].text.starts_with(
          fmt::format("checkpoint {} in ", number_of(specimens_.size() - 1 - i))))
      return false;
  return !good || to_json(*found.newest) == to_json(specimens_[*good].whole);
}

bool trials::is_restored(std::size_t which) const {
  const auto images = storage::read(home_.path(), number_of(which), job_, partitions_);
  return images && storage::same(*images, specimens_[which].images);
}

void trials::judge_reader(const damage& done, trial_options trial) {
  const auto images = storage::read(home_.path(), number_of(done.specimen), job_, partitions_);
  auto& figures = figures_of(done);
  ++(images ? figures.harmless_to_reader : figures.refused_by_reader);
  if (images && !storage::same(*images, specimens_[done.specimen].images))
    wrong(done, trial, "the reader, asked without a search, brings other values");
}

void trials::wrong(const damage& done, trial_options trial, const std::string& what) {
  std::string names;
  for (const auto& [name, unused] : done.changes)
    names += (names.empty() ? "" : ", ") + name;
  result.wrong.push_back(fmt::format(
    "{} in checkpoint {} ({}): {}; again with --count {} --seed {}", figures_of(done).kind,
    number_of(done.specimen), names, what, trial.count, trial.seed));
}

void trials::check_repaired() {
  for (const auto& each : specimens_)
    if (read_tree(each.folder) != each.files)
      result.wrong.push_back("not as it was before: " + each.folder.string());
}

} // namespace

damage_result damage_checkpoints(std::uint64_t count, std::uint64_t seed) {
  trials all;
  for (std::uint64_t damages = 0, trial = 0; damages < count; ++trial)
    damages += all.run(seed + trial, count - damages);
  all.check_repaired();
  return std::move(all.result);
}

} // namespace troupe::bench
