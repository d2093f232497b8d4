#include "actors/graph/ranks/rank_process.hpp"

#include "actors/graph/ranks/heartbeat.hpp"
#include "actors/graph/ranks/link_communicator.hpp"
#include "actors/graph/ranks/rank_checkpoints.hpp"
#include "actors/graph/ranks/rank_sum.hpp"
#include "actors/graph/ranks/shared_status.hpp"
#include "actors/graph/plan.hpp"
#include "actors/protocol/process_name.hpp"
#include "actors/training/divergence.hpp"
#include "base/clock.hpp"
#include "base/system/process_memory.hpp"
#include "base/system/resource_limits.hpp"
#include "kernels/collectives/shared_communicator.hpp"
#include "serialization/wire.hpp"
#include "storage/checkpoint_directory.hpp"
#include "storage/checkpoint_reader.hpp"

#include "fmt/format.h"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace troupe {

namespace {

using namespace std::chrono_literals;

/// Interval between log lines on missing ranks. A rank waits without limit while others load, as
/// the launcher restarts ranks that end.
constexpr std::chrono::seconds waiting_told{60};
/// Longest time for a gradient, practically no limit: links notice a process that stands still.
constexpr std::chrono::hours gradient_max{24};
/// Time for the launcher to see the end of a process whose links are lost.
constexpr std::chrono::milliseconds news_max{1'000};
constexpr std::chrono::milliseconds look_again{20};

/// Returns this rank's room as memory for its model. Lifetime: of `memory`; null without one.
std::shared_ptr<float> room_of(kernels::team_memory* memory, std::uint32_t rank) {
  return memory ? std::shared_ptr<float>{memory->room(rank).data(), [](float*) {}} : nullptr;
}

class rank_process {
public:
  rank_process(const child_identity& who, const cluster_file& cluster, shared_status status,
               const plan& what, const rank_voice& voice, kernels::team_memory* memory)
      : who_(who.self), listener_(who.inherited), cluster_(cluster), status_(std::move(status)),
        log_(voice.log), waits_(voice.waits), works_(voice.works), memory_(memory),
        period_(what.options.servers.checkpoints), notes_(std::make_shared<program_notes>(log_)),
        model_(cluster.members.job, trainer_of(what, cluster.members.job, who.self.index, notes_),
               who.self.index, room_of(memory, who.self.index), what.functions),
        line_(status_.line(who.self.index)) {}

  result<void> run() {
    begin_line();
    if (auto restored = restore(); !restored)
      return restored;
    if (who_.index == 0)
      checkpoints_.emplace(cluster_, period_, status_, log_, waits_, model_.clock());
    while (true) {
      auto communicator = form();
      if (!communicator)
        return communicator.error();
      communicator_ = *std::move(communicator);
      const auto outcome = take_part();
      if (outcome || permanent_)
        return outcome;
      log_(log_level::warn, outcome.error().text);
      communicator_.reset();
      // The launcher sees a rank that ended, and publishes it. It kills a rank that hangs later.
      status_.head().generation.wait(generation_ + 1, {.spin = 0us}, news_max);
    }
  }

private:
  void begin_line() {
    line_.training = false;
    line_.clock = line_.batches = line_.samples = line_.computed = line_.unusable = 0;
    line_.wait_us = line_.bytes = line_.losses = 0;
    line_.loss = 0;
    line_.notes.clear();
    line_.incarnation = who_.incarnation.value;
  }

  /// Restores the model from the run that is resumed, or from this run if all ranks were lost.
  result<void> restore() {
    if (!cluster_.members.resume && !any_from_file(cluster_.members.job)
        && status_.head().checkpoint == 0)
      return {};
    while (true) {
      const auto newest = status_.head().checkpoint.load();
      auto restored = restore_newest();
      // Rank 0 may have written a checkpoint meanwhile, and removed the one that was being read.
      if (restored || status_.head().checkpoint == newest)
        return restored;
    }
  }

  result<void> restore_newest() {
    const auto found = storage::newest_good(cluster_.members.checkpoints, cluster_.members.job);
    if (!found)
      return found.error();
    if (!found->newest)
      return {errc::damaged,
              "no checkpoint in " + cluster_.members.checkpoints.string() + " is usable any more"};
    const auto& newest = *found->newest;
    auto images = storage::read(cluster_.members.checkpoints, newest.checkpoint,
                                cluster_.members.job, model_.partitions());
    if (!images)
      return images.error();
    log_(log_level::info,
         fmt::format("begins with checkpoint {}, clock {}", newest.checkpoint, newest.clock));
    if (who_.index == 0 && status_.head().checkpoint == 0)
      status_.head().begun = newest.clock;
    return model_.restore(*images, newest.clock);
  }

  result<std::unique_ptr<kernels::communicator>> form() {
    line_.training = false;
    while (true) {
      generation_ = status_.head().generation.value();
      auto made = memory_ ? form_in_memory() : form_over_links();
      if (made || made.error().code != errc::timed_out)
        return made;
      if (is_wanted())
        log_(log_level::warn, made.error().text + "; waits on");
    }
  }

  bool is_wanted() const { return status_.head().generation.value() == generation_; }

  result<std::unique_ptr<kernels::communicator>> form_in_memory() {
    kernels::shared_communicator_options how;
    // Where ranks have no core each, the awaited one may need this core.
    how.wait.yield = ranks() >= std::thread::hardware_concurrency();
    how.losses = generation_;
    how.forming = waiting_told;
    how.wanted = [this] { return is_wanted(); };
    how.waits = [this](const std::vector<std::uint32_t>& missing) { tell_waits(missing); };
    how.deadline = gradient_max;
    auto made = kernels::shared_communicator::form(*memory_, who_.index, how);
    if (!made)
      return made.error();
    log_(log_level::info, "adds up in shared memory");
    return std::unique_ptr<kernels::communicator>{*std::move(made)};
  }

  void tell_waits(const std::vector<std::uint32_t>& missing) const {
    if (!waits_)
      return;
    std::vector<std::string> names;
    for (const auto rank : missing)
      names.push_back(to_string(process_of(worker_id{rank})));
    waits_(
      {log_level::warn, "communicator", {}, names.empty() ? "" : "waits for " + list_of(names)});
  }

  result<std::unique_ptr<kernels::communicator>> form_over_links() {
    link_communicator_options how;
    how.forming = waiting_told;
    how.waits = waits_;
    how.deadline = gradient_max;
    how.wanted = [this] { return is_wanted(); };
    const hello self{wire::protocol_version, fingerprint(cluster_.members.job) + generation_,
                     cluster_.secret, who_};
    std::vector<endpoint> addresses;
    for (std::uint32_t rank = 0; rank < ranks(); ++rank)
      addresses.push_back({"127.0.0.1", status_.line(rank).port});
    auto made = form_link_communicator(self, addresses, fcntl(listener_, F_DUPFD_CLOEXEC, 0), how);
    if (made)
      log_(log_level::info, "adds up over links");
    return made;
  }

  // -- as a rank of a communicator --

  result<void> take_part() {
    stopping_ = false; // A rank that missed the stop takes another step, which repeats it to all.
    if (auto agreed = agree(); !agreed)
      return agreed;
    line_.clock = model_.clock();
    line_.training = true;
    while (!model_.finished() && !stopping_)
      if (auto stepped = step(); !stepped)
        return stepped;
    return finish();
  }

  std::uint32_t ranks() const { return cluster_.members.job.workers; }

  /// Ranks that lack steps get the state of one that lacks none.
  result<void> agree() {
    const auto clocks = communicator_->gather(model_.clock());
    if (!clocks)
      return clocks.error();
    const auto newest = std::ranges::max_element(*clocks);
    if (std::ranges::count(*clocks, *newest) == std::ssize(*clocks))
      return {};
    const auto from = static_cast<std::uint32_t>(newest - clocks->begin());
    auto state = from == who_.index ? model_.state() : std::vector<float>(model_.state_floats());
    if (auto sent = communicator_->broadcast(from, state); !sent)
      return sent;
    if (model_.clock() == *newest)
      return {};
    log_(log_level::info, fmt::format("goes on with clock {}, from rank {}", *newest, from));
    if (auto taken = model_.take_state(state, *newest); !taken)
      return fail_permanently(taken.error());
    line_.clock = model_.clock();
    return {};
  }

  result<void> step() {
    if (auto computed = compute_and_add(model_, *communicator_, status_.head().stop); !computed)
      return fail_permanently(computed.error());
    const bool has_slot = model_.samples() > 0;
    line_.computed += has_slot ? 1 : 0;
    const auto waits_from = steady_now();
    if (auto summed = finish_sum(model_, *communicator_); !summed)
      return summed;
    line_.wait_us += static_cast<std::uint64_t>((steady_now() - waits_from).count() / 1000);
    line_.bytes += 2 * (ranks() - 1) * model_.sum().size_bytes() / ranks();
    const auto told = model_.step();
    if (!told)
      return fail_permanently(told.error());
    stopping_ = told->stop > 0;
    if (has_slot)
      account();
    works_();
    line_.clock = model_.clock();
    line_.rss = peak_rss_bytes();
    line_.notes.write(notes_->all());
    if (diverges_)
      return fail_permanently({errc::non_finite, divergence::text()});
    if (checkpoints_) {
      if (checkpoints_->due(model_.clock()))
        checkpoints_->begin(model_);
      if (model_.done().value % cluster_.members.job.batches_per_epoch() == 0)
        offer(false);
    }
    return {};
  }

  /// Counts the own gradient, once its step is taken.
  void account() {
    ++line_.batches;
    line_.samples += model_.samples();
    line_.unusable += model_.refused() ? 1 : 0;
    diverges_ = divergence_.after(!model_.refused());
    if (!std::isfinite(model_.loss()))
      return;
    ++line_.losses;
    line_.loss = line_.loss + model_.loss();
  }

  /// Offers the parameters to the launcher's evaluation. A pass that ends during one is left out.
  bool offer(bool last) {
    auto& head = status_.head();
    if (head.offered != head.taken)
      return false;
    model_.read_parameters(status_.parameters());
    head.last = last;
    head.epoch = model_.done().value / cluster_.members.job.batches_per_epoch();
    head.offered.fetch_add(1);
    return true;
  }

  /// Ends the work of all ranks together, once everything is written. Until then a restarted rank
  /// may need the state of any other rank.
  result<void> finish() {
    const auto checksum = model_.checksum();
    const auto all = communicator_->gather(checksum);
    if (!all)
      return all.error();
    if (std::ranges::count(*all, checksum) != std::ssize(*all))
      return fail_permanently({errc::damaged, "the ranks' parameters are not equal"});
    if (checkpoints_) {
      checkpoints_->begin(model_);
      const auto saved = checkpoints_->finish();
      status_.head().unsaved = !saved;
      if (!saved)
        log_(log_level::error, "no last checkpoint: " + saved.error().text);
    }
    if (const auto ready = communicator_->gather(0); !ready)
      return ready.error();
    log_(log_level::info,
         fmt::format("parameters have checksum {:016x}, as those of all ranks", checksum));
    auto& head = status_.head();
    while (!head.done) {
      if (!is_wanted())
        return {errc::peer_lost, "a rank was lost at the end"};
      if (who_.index == 0 && offer(true)) { // Fails while an earlier pass is evaluated.
        head.checksum = checksum;
        head.done = true;
      } else {
        head.generation.wait(generation_ + 1, {.spin = 0us}, look_again);
      }
    }
    return {};
  }

  result<void> fail_permanently(failure why) {
    permanent_ = true;
    return why;
  }

  const member_id who_;
  const int listener_;
  const cluster_file& cluster_;
  shared_status status_;
  const log_sink& log_;
  const notice_sink& waits_;
  const std::function<void()>& works_;
  kernels::team_memory* const memory_; ///< Null: ranks add up over links.
  const checkpoint_options period_;
  const std::shared_ptr<program_notes> notes_;
  rank_model model_;
  rank_line& line_;
  heartbeat heartbeat_{line_.heartbeats};
  std::optional<rank_checkpoints> checkpoints_;
  std::unique_ptr<kernels::communicator> communicator_;
  std::uint32_t generation_ = 0;
  divergence divergence_;
  bool diverges_ = false;
  bool stopping_ = false;
  bool permanent_ = false;
};

} // namespace

result<void> run_rank(const child_identity& who, const cluster_file& cluster, const plan& what,
                      const rank_voice& voice) {
  auto status = shared_status::open(what.options.run_directory);
  if (!status)
    return status.error();
  std::optional<kernels::team_memory> memory;
  if (status->head().in_memory) {
    auto attached = kernels::team_memory::attach(who.inherited);
    if (!attached)
      return {attached.error().code, with_limits(attached.error().text)};
    memory.emplace(*std::move(attached));
  }
  return rank_process{who, cluster, *std::move(status), what, voice, memory ? &*memory : nullptr}
    .run();
}

} // namespace troupe
