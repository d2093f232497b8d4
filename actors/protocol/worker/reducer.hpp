// What a reducer decides: whose pushes are added up before they leave the process, who is waited
// for no longer, and who shares a pull. A plain state machine; adding up is the caller's.
#pragma once

#include "actors/protocol/request_token.hpp"
#include "actors/protocol/worker/router.hpp" // answered_effect, failed_effect
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
  /// A round waits so long for a worker, from its first request on. Longer: one straggler keeps the
  /// other workers of its process waiting. Shorter: more bytes, as more pushes go alone.
  std::chrono::milliseconds wait{100};
};

/// Names one request to the next kv; grows.
using forward_id = id<struct forward_tag, std::uint64_t>;

// -- effects --
/// Ask the next kv: for the sum of these pushes, if there are any, and for these values. An outcome
/// has to follow; `sum_not_applicable` where the pushes cannot be added up.
struct forward_effect {
  forward_id number;
  std::vector<std::shared_ptr<const push_request>>
    pushes; ///< In the order in which they are added up.
  std::optional<pull_request> pull;
};
/// The round that has just ended did not wait for this worker any longer.
struct left_out_effect {
  worker_id worker;
};

using reducer_effect =
  std::variant<forward_effect, left_out_effect, answered_effect, failed_effect>;
using reducer_effects = std::vector<reducer_effect>;

/// Requests of one process's workers meet in rounds. A round ends when each worker that is expected
/// is in it, and at the latest `wait` after its first request:
///
///     ask() --> open round --all there, or time is up--> forwarded --> answered, each worker
///                                                            |
///                                                            +--> cannot be had as one: each alone
///
/// A worker is expected from its answer on, when it computes its next step, until a round has ended
/// without it. What it brings later is in the next round.
///
/// A round's pushes are added up and go on as one; in ssp, one for all who share a pull, and one
/// for those who do not pull, so that no receipt waits for values that its worker did not ask for.
/// Those of a job with a bsp table go on at once and one by one, because the sum of a clock is
/// taken in the order of its slots, wherever these were computed, and sums of floats depend on
/// their order; they wait for nobody. Pulls for the same values are one pull, which goes on behind
/// the pushes of all who share it: in bsp those of one clock, in ssp those of clocks no further
/// apart than the bound, so that no reader is held up by one that waits for its answer, in asp all;
/// but none that names rows. Who brings no push pulls apart from those who do, so that nobody is
/// held up by a push of a worker that is out.
///
/// Invariants:
/// (1) each request ends in exactly one answered or failed effect.
/// (2) a push that was asked for goes on, in a sum or alone; one that was refused within a sum, and
///     not because of everyone's history, goes on once more, alone.
/// (3) requests of one worker go on in the order in which they came.
/// (4) a sum has at most one batch of each worker, all of one generation and for the same tables.
/// (5) no round stays open for longer than `wait`.
/// (6) in ssp, without a bsp table, a pull goes on in one request with the push that came with it,
///     and what a worker asks for later when its requests with a push have ended: each tells the
///     clock behind its worker's pushes, and a push that a server refuses within a sum goes on once
///     more.
class reducer {
public:
  explicit reducer(const job_spec& job, reducer_options options = {});

  /// Tokens grow.
  void ask(request_token token, request what, time_point now, reducer_effects& effects);
  void answered(forward_id number, const reply& answer, reducer_effects& effects);
  void failed(forward_id number, const failure& why, reducer_effects& effects);

  /// Ends a round whose time is up.
  void tick(time_point now, reducer_effects& effects);
  std::optional<time_point> next_tick() const;

private:
  struct open_request {
    worker_id worker;
    std::shared_ptr<const push_request> push;
    std::optional<pull_request> pull;
    reply answer; ///< As far as it is there.
  };
  /// What of a request goes on in one forward.
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
    std::size_t open = 0; ///< Its requests.
    bool expected = false;
  };

  bool fits(const open_request& what, generation_id generation) const;
  bool all_there() const;
  void end_round(reducer_effects& effects);
  void go_on(std::vector<share> together, reducer_effects& effects);
  std::vector<std::vector<request_token>> pulls_together(const std::vector<share>& shares) const;
  bool same_values(const pull_request& x, const pull_request& y) const;
  void forward(std::vector<share> shares, reducer_effects& effects);
  bool is_behind_a_push(request_token token) const;
  void release(reducer_effects& effects);
  void end(request_token token);

  job_spec job_;
  reducer_options options_;
  bool any_bsp_;
  std::optional<std::uint64_t> staleness_min_; ///< Of the ssp tables.
  std::map<request_token, open_request> requests_;
  std::map<forward_id, std::vector<share>> forwards_;
  std::vector<forward_effect> held_; ///< Each behind a push that is not acknowledged yet.
  std::map<worker_id, worker_state> workers_;
  std::optional<round> round_;
  std::uint64_t next_forward_ = 1;
};

} // namespace troupe
