// Which batch a worker pulls values for, computes and pushes next. A plain state machine: outcomes
// in, steps out; the shell (worker_actor.hpp) asks for what is to be done after each event.
#pragma once

#include "actors/protocol/worker/work_list.hpp"
#include "serialization/job.hpp"
#include "serialization/messages.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <set>

namespace troupe {

/// One batch on its way: pulled for, computed, pushed.
struct training_step {
  std::uint64_t number = 0; ///< Its name in outcomes; grows.
  batch_id batch;
  generation_id generation;
  std::uint64_t clock = 0; ///< Pushes that the worker had made before.
};

struct step_planner_options {
  /// Batches that values are pulled for while another is computed. More: less waiting, and values
  /// that miss as many more updates of each worker, which costs accuracy where workers are many.
  /// Always 0 for bsp, where each clock is waited for, and for ssp, whose bound it would pass.
  std::uint32_t ahead_max = 0;
  /// Pushes that may wait for their receipts; the next batch is not begun before. More: less
  /// waiting, more memory. In bsp all slots of a clock, as none is acknowledged before the others.
  std::size_t pushes_in_flight_max = 2;
};

/// What becomes of a step:
///
///     begun --> to_pull --> pulling --> ready --> computing --> pushed --> acknowledged
///                  ^           |                                  |
///                  +-----------+ pull_failed()                    +--> begun anew: not_applied()
///
/// From everywhere: dropped, when its lease is gone or history was rolled back; in bsp also before
/// it is computed, when a smaller batch is open.
///
/// Invariants:
/// (1) steps are computed and pushed in the order in which they were begun.
/// (2) a step whose batch is not leased any more, or whose history was rolled back, is not pushed.
/// (3) each batch that is leased stays on the work list until its push was acknowledged.
class step_planner {
public:
  step_planner(const job_spec& job, step_planner_options options);

  /// The coordinator's newest orders.
  void reconcile(const desired_worker& now_valid);

  // -- what is to be done; ask until nullopt --
  /// The values of this step are to be pulled.
  std::optional<training_step> next_pull();
  /// The same, where the pull may share a request with this push, and so its receipt and its values
  /// wait for each other. In bsp only for the clock behind that of the push: that one's values are
  /// there with the receipt. Those of the same clock need receipts of others, and those of a later
  /// one may wait for a batch that this worker gets only when the receipt has ended a lease.
  std::optional<training_step> next_pull_with(const training_step& push);
  /// The gradient of this step is to be computed. Where values are pulled ahead, a second step is
  /// given out while one is being computed, so that the trainer finds it when it is done.
  std::optional<training_step> next_compute();

  // -- outcomes; of steps that were dropped meanwhile they change nothing --
  /// False: the values are of no use any more.
  bool pulled(std::uint64_t number);
  /// next_pull() gives it again.
  void pull_failed(std::uint64_t number);
  /// The step to be pushed, with its clock; nullopt where nobody wants it any more.
  std::optional<training_step> computed(std::uint64_t number);
  /// False: of a history that was rolled back, or of a lease that is gone.
  bool acknowledged(const training_step& pushed);
  /// The batch is done again. False as above.
  bool not_applied(const training_step& pushed);

  /// Whether a lease has just become wholly done, which the coordinator wants to hear at once.
  bool take_finished() { return work_.take_finished(); }
  std::vector<lease_progress> progress() const { return work_.progress(); }
  /// Of the next push.
  std::uint64_t clock() const { return clock_; }
  generation_id generation() const { return generation_; }

private:
  enum class phase { to_pull, pulling, ready, computing };
  struct entry {
    training_step step;
    step_planner::phase phase = phase::to_pull;
  };

  void begin_steps();
  void drop_unwanted();
  entry* find(std::uint64_t number);

  job_spec job_;
  bool any_bsp_ = false;
  step_planner_options options_;
  work_list work_;
  std::deque<entry> steps_;   ///< Their batches are in flight on the work list.
  std::size_t computing_ = 0; ///< With steps that were dropped.
  std::set<batch_id> pushed_; ///< Wait for receipts and are in flight on the work list.
  bool admitted_ = false;
  generation_id generation_;
  std::uint64_t clock_ = 0;
  std::uint64_t next_number_ = 1;
};

} // namespace troupe
