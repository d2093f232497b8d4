// Runs a stage and checks that it keeps to its contract (stage.hpp). A plain state machine; the
// caller owns the next kv and the promises.
#pragma once

#include "actors/protocol/worker/push_values.hpp"
#include "actors/protocol/worker/stage.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/growing_map.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

/// Write a warning of the guard to the log of the process.
struct warning_effect {
  std::string line;
};

using guard_effect = std::variant<forward_effect, answered_effect, failed_effect, count_effect,
                                  log_effect, warning_effect>;
using guard_effects = std::vector<guard_effect>;

/// Invariants:
/// (1) each request ends in one answered_effect or failed_effect. Held by: assert in take();
///     check_end() in cli/sim/job_checks.cpp.
/// (2) after a breach of the contract every request, open or new, fails with `contract_broken`. The
///     text names the stage and the batch; the workers then end the job with it. Held by: assert in
///     breach(), take(); failed() in cli/sim/job_workers.cpp.
/// (3) a stage of the program breaks the contract if it refuses own_refusals_max pushes or pulls of
///     a worker in a row, while the next kv fails none of this worker. Held by: assert in
///     refusal_fault().
/// (4) a request is refused with `timed_out` if for held_time_max no forward of its worker was
///     under way. Later effects of the stage for this request are dropped. It is a breach if this
///     happens for the third time in a row to a batch or to a worker. Held by: assert in expire().
class stage_guard {
public:
  /// Longest time that a stage holds a request while no forward of its worker is under way.
  static constexpr std::chrono::seconds held_time_max{10};
  /// Refusals in a row of requests that were held for too long; then the stage is at fault.
  static constexpr int refusals_max = 3;

  /// Requests of a worker that the stage refuses by itself in a row; then it is at fault.
  static constexpr int own_refusals_max = 1000;

  /// `checks_values`: whether values that the stage makes must be finite. Values that it passes on
  /// are not checked again, as trainers' gradients are.
  stage_guard(std::string name, std::unique_ptr<stage_decider> stage, bool checks_values = false);

  /// Takes a request; tokens grow.
  void ask(request_token token, request what, time_point now, guard_effects& effects);
  void answered(forward_id number, reply what, time_point now, guard_effects& effects);
  void failed(forward_id number, const failure& why, time_point now, guard_effects& effects);
  /// Call it at next_tick(), and about every 500 ms while is_empty() is false.
  void tick(time_point now, guard_effects& effects);
  /// Calls the stage's tick() alone, as for a stage that has decided something by itself.
  void poll(time_point now, guard_effects& effects);
  /// Takes the end of a stage that is an actor, which is a breach of the contract.
  void ended(const std::string& why, guard_effects& effects);
  /// Returns the time that the stage asked for behind its last event; nullopt: none.
  std::optional<time_point> next_tick() const { return next_tick_; }

  bool is_empty() const { return open_.empty(); }
  bool is_broken() const { return broken_.has_value(); }
  const std::string& name() const { return name_; }

private:
  using batch_key = std::pair<worker_id, batch_id>;
  enum class batch_state : std::uint8_t { held, under_way, applied, refused };
  struct open_batch {
    request_token owner;
    batch_state state = batch_state::held;

    bool can_be_forwarded() const {
      return state == batch_state::held || state == batch_state::refused;
    }
  };
  struct open_request {
    worker_id worker;
    std::vector<batch_key> batches; ///< Those of its push.
    std::optional<batch_key> pull;  ///< The step that pulls.
    time_point held_until{0};
    std::vector<table_id> tables; ///< Of its push.
    values_before values;         ///< Those of its push.
    std::vector<row_keys> rows;   ///< Those of its pull.
  };
  struct forwarded_batch {
    batch_key key;
    request_token owner;
  };
  struct open_forward {
    std::vector<forwarded_batch> batches;
    std::set<worker_id> workers;
  };
  /// Counts refusals in a row of pushes or of pulls.
  struct refusals {
    std::map<batch_id, int> of_batches;
    std::map<worker_id, std::pair<int, request_token>> of_workers; ///< And the last request then.
    std::map<worker_id, int> by_stage; ///< Those that the stage decided, not the next kv.
  };

  template <class Event>
  void run(Event event, guard_effects& effects);
  void expire(time_point now, guard_effects& effects);
  void refused(refusals& so_far, request_token token, const batch_key& key,
               std::optional<std::string>& fault);
  void take(forward_effect& effect, guard_effects& effects);
  void take(answered_effect& effect, guard_effects& effects);
  void take(failed_effect& effect, guard_effects& effects);
  bool is_late(const batch_key& key) const;
  std::optional<std::string> refusal_fault(const open_request& open, const failure& why);
  std::optional<std::string> fault_of(request& what, open_forward& forward);
  std::optional<std::string> order_fault(worker_id worker, request_token later) const;
  std::optional<std::string> value_fault(push_request& push, const open_forward& forward);
  std::optional<std::string> answer_fault(const open_request& open, const reply& what) const;
  open_batch* find(const batch_key& key, request_token owner);
  void end_forward(forward_id number, batch_state becomes);
  void forget(request_token token, const open_request& open);
  void breach(const std::string& what, guard_effects& effects);

  std::string name_;
  std::unique_ptr<stage_decider> stage_;
  stage_effects decided_;
  growing_map<open_request> open_;
  growing_map<open_forward> forwards_;
  /// Those of open_, in the order in which they came. A worker may push a batch again while a stage
  /// still has the push of an earlier generation.
  std::map<batch_key, std::vector<open_batch>> batches_;
  std::map<batch_key, request_token> pulls_; ///< Those of open_.
  /// Batches that were not forwarded yet, in the order in which they came.
  std::map<worker_id, std::vector<std::pair<request_token, batch_id>>> held_;
  refusals refused_pushes_, refused_pulls_;
  /// Batches of requests that were held for too long. A batch that came again is forwarded once,
  /// and later forwards of it are late.
  std::set<batch_key> expired_;
  std::vector<forward_id> dropped_; ///< Forwards of expired batches; they are to fail.
  request_token newest_{0};
  bool checks_values_; ///< It is a stage of the program.
  std::optional<time_point> next_tick_;
  std::optional<failure> broken_;
};

} // namespace troupe
