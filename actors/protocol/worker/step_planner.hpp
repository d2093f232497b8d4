// Decides which batch a worker pulls values for, computes and pushes next. A plain state machine:
// outcomes in, steps out. The shell (worker_actor.hpp) asks for the next steps after each event.
#pragma once

#include "actors/protocol/worker/work_list.hpp"
#include "serialization/job.hpp"
#include "serialization/messages.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace troupe {

/// One batch in progress: pulled for, computed, pushed.
struct training_step {
  std::uint64_t number = 0; ///< Names the step in outcomes; grows.
  batch_id batch;
  generation_id generation;
  std::uint64_t clock = 0; ///< Pushes that the worker made before it.
};

struct step_planner_options {
  /// Batches to pull values for while another is computed. More: less waiting, but values that lack
  /// as many more pushes of each worker, which costs accuracy with many workers. Always 0 for bsp,
  /// where each clock is waited for, and for ssp, whose bound it would exceed.
  std::uint32_t ahead_max = 0;
  /// Pushes that may wait for their replies; the next batch is not computed before. More: less
  /// waiting, more memory. In bsp always the slots of a clock, as none is acknowledged before the
  /// others.
  std::size_t pushes_in_flight_max = 2;
};

/// The states of a step:
///
///     begun --> to_pull --> pulling --> ready --> computing --> pushed --> acknowledged
///                  ^           |                                  |
///                  +-----------+ pull_failed()                    +--> begun anew: not_applied()
///
/// From every state a step is dropped when its lease is gone or history was rolled back; in bsp
/// also before it is computed, when a smaller batch is open.
///
/// Invariants:
/// (1) steps are computed and pushed in the order in which they were begun. Held by: assert in
///     computed().
/// (2) a step whose batch is not leased any more, or whose history was rolled back, is not pushed.
///     Held by: assert in computed().
/// (3) each leased batch stays on the work list until its push is acknowledged. Held by: assert in
///     acknowledged().
class step_planner {
public:
  step_planner(const job_spec& job, step_planner_options options);

  /// Applies the coordinator's newest desired state.
  void reconcile(const desired_worker& now_valid);

  // -- next steps; call each until nullopt --
  /// Returns the next step whose values are to be pulled.
  std::optional<training_step> next_pull();
  /// Returns the next step whose pull may share a request with this push, so that the push reply
  /// and the values wait for each other. In bsp this is a step of the clock after the push's, whose
  /// values are there with the push reply. A pull for the same clock would wait for a reply that
  /// needs its own batch. A pull for a later clock may wait for a batch that this worker gets only
  /// when the push reply has ended a lease.
  std::optional<training_step> next_pull_with(const training_step& push);
  /// Returns the next step whose gradient is to be computed. If values are pulled ahead, a second
  /// step is given out while one is being computed, so that the trainer never waits for it.
  std::optional<training_step> next_compute();

  // -- outcomes; ignored for steps that were dropped meanwhile --
  /// Takes pulled values. Returns false if they are not needed any more.
  bool pulled(std::uint64_t number);
  /// Makes next_pull() return the step again.
  void pull_failed(std::uint64_t number);
  /// Returns the step to be pushed, with its clock; nullopt if it was dropped.
  std::optional<training_step> computed(std::uint64_t number);
  /// Returns the numbers of steps that were dropped while they were being computed, each once.
  /// computed() still ends their computation.
  std::vector<std::uint64_t> take_dropped() { return std::exchange(dropped_, {}); }
  /// Ends a step. Returns false if its history was rolled back or its lease is gone.
  bool acknowledged(const training_step& pushed);
  /// Opens the batch again. Returns false as acknowledged() does.
  bool not_applied(const training_step& pushed);

  /// Returns whether a lease has just become wholly done, which the coordinator wants to hear at
  /// once.
  bool take_finished() { return work_.take_finished(); }
  std::vector<lease_progress> progress() const { return work_.progress(); }
  /// Returns the clock of the next push.
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
  template <class Unwanted>
  void drop_steps(Unwanted is_unwanted);
  entry* find(std::uint64_t number);

  job_spec job_;
  bool goes_by_clocks_ = false;
  step_planner_options options_;
  work_list work_;
  std::deque<entry> steps_;   ///< Their batches are in flight on the work list.
  std::size_t computing_ = 0; ///< Includes steps that were dropped.
  std::vector<std::uint64_t> dropped_; ///< For take_dropped().
  std::set<batch_id> pushed_; ///< Wait for replies; in flight on the work list.
  bool admitted_ = false;
  generation_id generation_;
  std::uint64_t clock_ = 0;
  std::uint64_t next_number_ = 1;
};

} // namespace troupe
