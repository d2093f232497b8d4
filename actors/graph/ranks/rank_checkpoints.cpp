#include "actors/graph/ranks/rank_checkpoints.hpp"

#include "base/system/resource_limits.hpp"
#include "storage/checkpoint_directory.hpp"
#include "storage/checkpoint_writer.hpp"
#include "storage/manifest.hpp"

#include <chrono>
#include <utility>

namespace troupe {

rank_checkpoints::rank_checkpoints(const cluster_file& cluster, const checkpoint_options& period,
                                   shared_status& status, const log_sink& log,
                                   const notice_sink& waits, std::uint64_t clock)
    : cluster_(cluster), period_(period), status_(status), log_(log), waits_(waits),
      last_(storage::last_number(cluster.members.checkpoints)), written_at_(steady_now()),
      written_clock_(clock) {}

bool rank_checkpoints::due(std::uint64_t clock) const {
  const bool by_time =
    period_.interval.count() > 0 && steady_now() - written_at_ >= period_.interval;
  const bool by_clock = period_.clocks > 0 && clock >= written_clock_ + period_.clocks;
  return (by_time || by_clock) && !is_busy();
}

void rank_checkpoints::begin(const rank_model& model) {
  if (auto before = finish(); !before)
    log_(log_level::warn, "no checkpoint: " + before.error().text);
  written_at_ = steady_now();
  written_clock_ = model.clock();
  storage::manifest what{++last_, model.job(), {1}, model.clock(), model.done(), {}};
  writing_ = starting_threads([&] {
    return std::async(std::launch::async,
                      [this, what = std::move(what), images = model.images()]() mutable {
                        auto done = write(std::move(what), std::move(images));
                        const auto text = done ? "" : "no checkpoint: " + done.error().text;
                        if (waits_)
                          waits_({log_level::warn, "checkpoint", {}, text});
                        return done;
                      });
  });
}

result<void> rank_checkpoints::finish() {
  if (!writing_.valid())
    return {};
  return writing_.get();
}

bool rank_checkpoints::is_busy() const {
  return writing_.valid()
         && writing_.wait_for(std::chrono::seconds{0}) != std::future_status::ready;
}

result<void> rank_checkpoints::write(storage::manifest what, std::vector<partition_image> images) {
  const auto& directory = cluster_.members.checkpoints;
  if (!writer_) {
    auto opened = storage::checkpoint_writer::open(directory, {0}, {0});
    if (!opened)
      return opened.error();
    writer_ = *std::move(opened);
  }
  auto part = writer_->write({what.checkpoint, {0}, std::move(images)});
  if (!part)
    return part.error();
  what.parts = {*std::move(part)};
  if (auto done = storage::commit(directory, what); !done)
    return done;
  status_.head().checkpoint = what.checkpoint; // Who reads one that goes now looks again.
  // One that cannot be removed costs space only; the next one tries again.
  (void)storage::retain(directory, period_.keep);
  return {};
}

} // namespace troupe
