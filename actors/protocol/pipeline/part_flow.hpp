// Decides what one part of a pipeline does next: pull, compute, send, push. A plain state machine:
// lanes, words of the neighbouring parts, results and times in, effects out. It knows no values.
#pragma once

#include "actors/protocol/pipeline/micro_order.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "serialization/ids.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

namespace troupe {

/// Describes a batch that passes through a line, as its pushes name it.
struct part_step {
  batch_id batch;
  std::uint64_t clock = 0;
  generation_id generation;
  std::uint32_t micros = 1; ///< Micro-batches of the batch.

  bool operator==(const part_step&) const = default;
};

/// Names an attempt, or a meeting of two parts. Numbers begin at 1 and grow with each of them.
struct part_attempt {
  std::uint64_t incarnation = 0; ///< That of the first part, or of the upper part of a meeting.
  std::uint64_t number = 0;

  bool operator==(const part_attempt&) const = default;
};

/// The head of a parcel between two neighbouring parts.
struct part_word {
  enum class kind : std::uint8_t {
    greet,    ///< Down. Begins a meeting. The part below drops its attempt, and says how it is.
    begin,    ///< Down. Begins an attempt with `step`, and ends any earlier one.
    forward,  ///< Down. Brings the activations of a micro-batch.
    backward, ///< Up. Brings the gradient of a micro-batch's input.
    applied,  ///< Up. All parts from here down have applied the batch, whose loss is `loss`.
    ready,    ///< Up. The line from here down is whole, and this part has no attempt.
    broken,   ///< Up. The line from here down is not whole, and this part has no attempt.
    drop,     ///< Down. Ends the attempt, which is not to be done.
  };
  kind what = kind::greet;
  std::uint32_t micro = 0; ///< Of forward and backward: which micro-batch.
  part_attempt of;         ///< Of greet, ready and broken: the meeting; else the attempt.
  part_step step = {};     ///< Of begin.
  double loss = 0;         ///< Of applied.

  bool operator==(const part_word&) const = default;
};
static_assert(std::is_trivially_copyable_v<part_word>);

/// Returns the enumerator's own name.
const char* to_string(part_word::kind which);

/// Names a neighbour of a part.
enum class part_side : std::uint8_t { above, below };

/// Carries out what a flow decides. Called within calls of the flow; must not call it.
class part_effects {
public:
  virtual ~part_effects() = default;
  /// Sends a word on the lane to a neighbour. `forward` and `backward` go with what the computation
  /// yielded that is being reported.
  virtual void send(part_side to, const part_word& what) = 0;
  /// Keeps the activations that came with the word in hand, as the input of a micro-batch.
  virtual void keep_input(std::uint32_t micro) = 0;
  /// Keeps the gradient that came with the word in hand, for the computation of its micro-batch.
  virtual void keep_gradient(std::uint32_t micro) = 0;
  /// Pulls this part's tables for a step. pulled() or failed() follows. Later parts only.
  virtual void pull(const part_attempt& of, const part_step& step) = 0;
  /// Computes a micro-batch forward, and keeps its input. The input of the first part is a stretch
  /// of the batch. computed_forward() follows.
  virtual void compute_forward(std::uint32_t micro) = 0;
  /// Computes a micro-batch backward, adds the gradient to the sum, and forgets the input.
  /// computed_backward() follows.
  virtual void compute_backward(std::uint32_t micro) = 0;
  /// Pushes the sum under the line's header, as partial. pushed() or failed() follows. Later parts
  /// only.
  virtual void push(const part_attempt& of, const part_step& step) = 0;
  /// Gives the sum to the worker, with the loss: all later parts have applied the batch. The
  /// attempt has ended. First part only.
  virtual void done(double loss) = 0;
  /// Forgets inputs, gradients, values and the sum: the attempt has ended. A computation that is
  /// under way is reported all the same, but its result is not used. A push may still be applied.
  virtual void drop(const part_attempt& which) = 0;
  /// Says a line to a person. First part only.
  virtual void say(const std::string& line) = 0;
};

/// Describes the part of a flow.
struct part_setup {
  std::uint32_t part = 0;
  std::uint32_t parts = 1; ///< Of the line.
  micro_schedule schedule = {};
  std::uint64_t incarnation = 0; ///< Of this part's process; differs for each start, and is not 0.
};

/// The pause before a failed pull or push is tried again.
constexpr std::chrono::milliseconds part_retry_pause{100};

/// Says what a later part does when its pull or its push has failed.
enum class part_reaction : std::uint8_t {
  try_again,
  wait, ///< The worker has been replaced, so servers refuse each further request. `begin`, `drop`
        ///< or a loss ends the attempt.
  end_job,
};
part_reaction part_reaction_to(errc code);

/// Micro-batches are computed forward in their order, and backward in their order. `micro_order`
/// says which of the two comes first.
///
/// Two neighbours have a lane in each direction, and a lane may be lost at one end alone. A part
/// that is joined with the part below greets it, with the number of a new meeting. The part below
/// says `ready` or `broken`, with that number, and says so again after each loss of its own and
/// each change. So `ready` means: begin anew. Any `lost`, `ready` or `broken` ends an attempt that
/// still needs that neighbour. A part that ends an attempt before it is done says `drop` to
/// the part below, if it still needs that part. The first part begins an attempt when the line is
/// whole.
///
/// Words of an earlier attempt may come from below after the next one has begun. So words count if
/// they name the present attempt.
///
/// Errors: heard() fails for a word that cannot be. The link's owner closes the lane.
/// Determinism: the same calls give the same effects.
/// Capacity: inputs that this part keeps, from the begin of their forward to the end of their
/// backward: at most kept_max(). Received inputs with these: as many as the part above keeps at
/// most. There are at most as many gradients as kept inputs.
/// Invariants:
/// (1) a part keeps at most kept_max() inputs. Held by: assert in compute(); check_kept() in
///     cli/sim/pipeline/pipeline_checks.cpp.
/// (2) a sum that is pushed has each micro-batch once, in order, of one attempt and one version of
///     values. Held by: check_sum() in cli/sim/pipeline/pipeline_checks.cpp.
/// (3) done() comes when all later parts have applied the batch. Held by: check_done() in
///     cli/sim/pipeline/pipeline_checks.cpp.
/// (4) no word is sent to a neighbour that is not joined. Held by: assert in send().
/// (5) one computation at a time. Held by: assert in begin_forward(), begin_backward().
class part_flow {
public:
  explicit part_flow(const part_setup& setup);

  // -- lanes --
  /// Both lanes of a neighbour are joined. Call lost() between two calls.
  void joined(part_side side, part_effects& out);
  /// A lane of a neighbour is lost. The other lane may be joined or not.
  void lost(part_side side, part_effects& out);
  /// A neighbour's word came, perhaps before joined().
  result<void> heard(part_side from, const part_word& what, part_effects& out);

  // -- the worker, to the first part --
  /// The worker has values and a batch. Requires: done() or dropped() ended the step before.
  void began(const part_step& step, part_effects& out);
  /// The worker does not want the gradient of its step any more. No effect without a step.
  void dropped(part_effects& out);

  // -- results; ignored for an attempt that has ended --
  void pulled(const part_attempt& of, part_effects& out);
  void computed_forward(part_effects& out);
  /// `loss`: of the last part, this micro-batch's share in the loss of the batch.
  void computed_backward(double loss, part_effects& out);
  /// The tables of this part have the batch: the push was applied, or is a duplicate.
  void pushed(const part_attempt& of, part_effects& out);
  /// The pull or the push that is under way has failed. Requires: part_reaction_to(why) is not
  /// `end_job`.
  void failed(const part_attempt& of, errc why, time_point now);
  /// Tries again what failed. Call it at least each 20 ms.
  void tick(time_point now, part_effects& out);

  // -- state --
  bool is_first() const { return setup_.part == 0; }
  bool is_last() const { return setup_.part + 1 == setup_.parts; }
  /// Returns whether all later parts are there.
  bool is_whole() const { return is_last() || (below_.is_joined && below_.is_ready); }
  /// Returns the attempt; null: there is none.
  const part_attempt* present() const { return open_ ? &open_->name : nullptr; }
  /// Returns the bound of kept inputs for a batch.
  std::uint32_t kept_max(std::uint32_t micros) const;

private:
  /// The neighbour above, as this part knows it.
  struct above_state {
    bool is_joined = false;
    part_attempt meeting;     ///< As it greeted last; number 0: never.
    std::optional<bool> told; ///< The last `ready` (true) or `broken`; nullopt: say it anew.
  };
  struct below_state {
    bool is_joined = false;
    bool is_ready = false;
    std::uint64_t meeting = 0;
  };
  struct attempt {
    part_attempt name;
    part_step step;
    bool has_values = false;
    std::uint32_t received = 0, forwards = 0;   ///< Inputs that came; computed ones.
    std::uint32_t gradients = 0, backwards = 0; ///< Gradients that came; computed ones.
    bool below_has_applied = false, is_pushing = false, has_applied = false;
    double loss = 0;
    std::optional<time_point> retry_at = {}; ///< Of a failed pull or push.
  };
  struct computation {
    part_attempt of;
    bool is_forward = false;
  };

  result<void> heard_above(const part_word& what, part_effects& out);
  result<void> heard_below(const part_word& what, part_effects& out);
  void begin(const part_attempt& name, const part_step& step, part_effects& out);
  void end_attempt(part_effects& out);
  void go_on(part_effects& out);
  void compute(part_effects& out);
  void begin_forward(part_effects& out);
  void begin_backward(part_effects& out);
  void finish(part_effects& out);
  void tell_above(part_effects& out);
  void send(part_side to, const part_word& what, part_effects& out) const;
  bool is_present(const part_attempt& which) const { return open_ && open_->name == which; }
  bool needs_below() const { return open_ && !is_last() && !open_->below_has_applied; }
  /// Returns whether the result of the computation that has ended counts.
  bool take_computation(bool is_forward);
  failure cannot_be(part_side from, const part_word& what, const std::string& why) const;

  const part_setup setup_;
  above_state above_;
  below_state below_;
  std::optional<part_step> step_; ///< Of the worker.
  std::uint64_t attempts_ = 0;    ///< That this first part began.
  std::optional<attempt> open_;
  std::optional<computation> computing_; ///< Perhaps of an attempt that has ended.
};

} // namespace troupe
