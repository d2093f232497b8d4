// Declares a stage: code on the way of requests from workers to a store. A stage is a plain state
// machine: it has no threads and no clock of its own.
#pragma once

#include "actors/protocol/request_token.hpp"
#include "base/clock.hpp"
#include "base/growing_map.hpp"
#include "serialization/push_pull.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

/// Names one request that a stage sends to the next kv; grows.
using forward_id = id<struct forward_tag, std::uint64_t>;

// -- effects --
struct forward_effect {
  forward_id number;
  request what;
};
/// Add to the count of this name; the report has it as "STAGE.NAME".
struct count_effect {
  std::string name;
  std::uint64_t count = 0;
};
/// Write a line to the log of the process.
struct log_effect {
  std::string line;
};

using stage_effect =
  std::variant<forward_effect, answered_effect, failed_effect, count_effect, log_effect>;

/// Collects the decisions of a stage.
class stage_effects {
public:
  /// Sends a request to the next kv. One answered() or failed() with this number follows.
  forward_id forward(request what) {
    const forward_id number{next_++};
    list.push_back(forward_effect{number, std::move(what)});
    return number;
  }
  /// Answers a request. If it has a push, the batches must have been forwarded and applied.
  void answer(request_token to, reply what) {
    list.push_back(answered_effect{to, std::move(what)});
  }
  /// Refuses a request. The batches of a push are then given to a worker again.
  void refuse(request_token to, failure why) { list.push_back(failed_effect{to, std::move(why)}); }
  /// Adds to a count, which the report has as "STAGE.NAME".
  void count(std::string name, std::uint64_t count = 1) {
    list.push_back(count_effect{std::move(name), count});
  }
  /// Writes a line to the log of the process.
  void log(std::string line) { list.push_back(log_effect{std::move(line)}); }

  std::vector<stage_effect> list; ///< In the order of the calls. Taken by the caller of the stage.

private:
  std::uint64_t next_ = 1;
};

/// The contract of a stage, which stage_guard checks:
/// (1) the batches of its forwards are those of the requests that it holds, each once. A batch may
///     be forwarded again only after the forward that had it has failed.
/// (2) the pushes of a worker are forwarded in the order in which they came, and before later pulls
///     of this worker.
/// (3) a request with a push is answered after its batches were applied, and each request once.
/// (4) no request is held for longer than 10 s without a forward under way. Otherwise it is refused
///     as timed_out, and the third time in a row, for a batch or for a worker, ends the job.
/// (5) values that the stage makes are finite. The guard sets push_request::gradient_norm to their
///     norm, unless it is 0.
/// (6) it does not refuse 1,000 pushes or 1,000 pulls of a worker in a row by itself.
/// Values are borrowed: a stage makes new ones instead of changing them.
class stage_decider {
public:
  virtual ~stage_decider() = default;
  /// Takes a request of a worker. `from` names it; later requests have larger tokens.
  virtual void ask(request_token from, request what, time_point now, stage_effects& effects) = 0;
  /// Takes the answer to forward `number`.
  virtual void answered(forward_id number, reply what, time_point now, stage_effects& effects) = 0;
  /// Takes the failure of forward `number`. Its batches may be forwarded again.
  virtual void failed(forward_id number, const failure& why, time_point now,
                      stage_effects& effects) = 0;
  /// Is called at the time of next_tick().
  virtual void tick(time_point /*now*/, stage_effects& /*effects*/) {}
  /// Returns the time at which to call tick(); nullopt: never.
  virtual std::optional<time_point> next_tick() const { return std::nullopt; }
};

/// Passes each request on, and each answer back. Override the functions that change them.
class pass_through : public stage_decider {
public:
  /// Changes a request before it is forwarded. May throw: the job then stops with the text.
  virtual void outgoing(request& /*what*/, stage_effects& /*effects*/) {}
  /// Changes an answer before it is passed back. May throw.
  virtual void incoming(reply& /*what*/, stage_effects& /*effects*/) {}

  void ask(request_token from, request what, time_point, stage_effects& effects) override {
    outgoing(what, effects);
    open_.add(effects.forward(std::move(what)).value, from);
  }
  void answered(forward_id number, reply what, time_point, stage_effects& effects) override {
    incoming(what, effects);
    effects.answer(*open_.extract(number.value), std::move(what));
  }
  void failed(forward_id number, const failure& why, time_point, stage_effects& effects) override {
    effects.refuse(*open_.extract(number.value), why);
  }

private:
  growing_map<request_token> open_; ///< The request behind each forward.
};

} // namespace troupe
