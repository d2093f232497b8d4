// Decides which pushes of a process's workers are added up before they are sent, which pulls are
// shared, and when a worker is no longer waited for. A plain state machine; the caller does the
// adding.
#pragma once

#include "actors/protocol/request_token.hpp"
#include "base/clock.hpp"
#include "serialization/job.hpp"
#include "serialization/messages.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

namespace troupe {

struct reducer_options {
  /// Longest time that a round waits for a worker, from the round's first request on. Longer: one
  /// straggler keeps the other workers of its process waiting. Shorter: more bytes, as more pushes
  /// go alone.
  std::chrono::milliseconds wait{100};
};

/// Names one request to the next kv; grows.
using sum_id = id<struct sum_tag, std::uint64_t>;

// -- effects --
/// Send the next kv the sum of these pushes, if there are any, and this pull. An outcome has to
/// follow: `sum_not_applicable` if the pushes cannot be added up.
struct sum_effect {
  sum_id number;
  std::vector<std::shared_ptr<const push_request>>
    pushes; ///< In the order in which they are added up.
  std::optional<pull_request> pull;
};
/// The round that has just ended did not wait for this worker any longer.
struct left_out_effect {
  worker_id worker;
};

using reducer_effect = std::variant<sum_effect, left_out_effect, answered_effect, failed_effect>;
using reducer_effects = std::vector<reducer_effect>;

/// Collects the requests of one process's workers in rounds. A round ends when each expected worker
/// is in it, and at the latest `wait` after its first request:
///
///     ask() --> open round --all there, or time is up--> forwarded --> answered, each worker
///                                                            |
///                                                            +--> refused as one: each alone
///
/// A worker is expected from its reply on, while it computes its next step, until a round has ended
/// without it. A later request of that worker goes into the next round.
///
/// A round's pushes are added up and sent as one. In ssp there is one sum for each group of workers
/// that share a pull, and one for workers that do not pull. So no push reply waits for values that
/// its worker did not ask for. In a job with a bsp table, pushes are sent at once and one by one:
/// the sum of a clock is taken in slot order, wherever the slots were computed, because sums of
/// floats depend on their order.
///
/// No partial push comes here: the later parts of a line have routers of their own.
///
/// Pulls for the same values become one pull, behind the pushes of all workers that share it. In
/// bsp pulls of one clock are shared. In ssp pulls are shared whose clocks are no further apart
/// than the bound, so that no reader is held up by one that waits for its reply. In asp all are
/// shared. Pulls that name rows are never shared. Workers without a push pull apart from those with
/// one, so that they are not held up by the push of an evicted worker.
///
/// Invariants:
/// (1) each request ends in exactly one answered or failed effect. Held by: assert in end();
///     check_end() in cli/sim/job_checks.cpp.
/// (2) each push is sent, in a sum or alone. A push that was refused within a sum is sent once
///     more, alone, unless history was rolled back, the request was too large, or the error asks
///     for a retry. Held by: check_end() in cli/sim/job_checks.cpp.
/// (3) requests of one worker are sent in the order in which they came. Held by: assert in ask().
/// (4) a sum has at most one batch of each worker, all of one generation and for the same tables.
///     Held by: assert in forward().
/// (5) no round stays open for longer than `wait`. Held by: assert in tick().
/// (6) in ssp without a bsp table, a pull is sent in one request with the push that came with it,
///     and later requests of a worker only when its requests with a push have ended. For each
///     request tells the clock behind its worker's pushes, and a push that a server refuses within
///     a sum is sent once more. Held by: check_staleness() in cli/sim/job_checks.cpp.
class reducer {
public:
  explicit reducer(const job_spec& job, reducer_options options = {});

  /// Takes a request; tokens grow.
  void ask(request_token token, request what, time_point now, reducer_effects& effects);
  void answered(sum_id number, const reply& answer, reducer_effects& effects);
  void failed(sum_id number, const failure& why, reducer_effects& effects);

  /// Ends a round whose time is up.
  void tick(time_point now, reducer_effects& effects);
  std::optional<time_point> next_tick() const;

private:
  struct open_request {
    worker_id worker;
    std::shared_ptr<const push_request> push;
    std::optional<pull_request> pull;
    reply answer; ///< With the parts that have arrived.
  };
  /// The part of a request that goes into one forward.
  struct share {
    request_token token;
    bool push = false, pull = false;
  };
  struct round {
    std::vector<share> shares; ///< One for each worker.
    generation_id generation;
    time_point ends{0};
  };
  struct worker_state {
    std::size_t open = 0; ///< Its open requests.
    bool expected = false;
  };

  bool fits(const open_request& what, generation_id generation) const;
  bool all_there() const;
  void end_round(reducer_effects& effects);
  void go_on(std::vector<share> together, reducer_effects& effects);
  std::vector<std::vector<request_token>> pulls_together(const std::vector<share>& shares) const;
  bool same_values(const pull_request& x, const pull_request& y) const;
  void forward(std::vector<share> shares, reducer_effects& effects);
  static bool is_one_sum(const std::vector<std::shared_ptr<const push_request>>& pushes);
  bool is_behind_a_push(request_token token) const;
  void release(reducer_effects& effects);
  void end(request_token token);

  job_spec job_;
  reducer_options options_;
  bool goes_by_clocks_;
  std::optional<std::uint32_t> least_lead_;
  std::map<request_token, open_request> requests_;
  std::map<sum_id, std::vector<share>> forwards_;
  std::vector<sum_effect> held_; ///< Each waits for an earlier push of a worker.
  std::map<worker_id, worker_state> workers_;
  std::optional<round> round_;
  std::uint64_t next_forward_ = 1;
};

} // namespace troupe
