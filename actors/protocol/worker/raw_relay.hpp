// Stands in a stage_guard for a stage that is an actor: passes requests to the actor, and the
// actor's own requests to the next kv.
#pragma once

#include "actors/protocol/worker/stage.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/growing_map.hpp"

#include <variant>
#include <vector>

namespace troupe {

/// Names a request that the actor of a stage has sent to its next kv; grows.
using exit_token = id<struct exit_tag, std::uint64_t>;

/// The actor of a stage, and the requests that it sends.
class stage_actor_port {
public:
  virtual ~stage_actor_port() = default;
  /// Passes a request to the actor. Its outcome becomes answered_by_actor() or failed_by_actor().
  virtual void ask(request_token from, request what) = 0;
  virtual void answer(exit_token to, reply what) = 0;
  virtual void refuse(exit_token to, const failure& why) = 0;
};

/// Takes events of the actor at any time, and tells them to its guard in the next tick().
class raw_relay final : public stage_decider {
public:
  /// `actor`: must outlive this object.
  explicit raw_relay(stage_actor_port& actor) : actor_(actor) {}

  // -- events of the actor; stage_guard::poll() follows --
  void forwarded_by_actor(exit_token from, request what) {
    waiting_.push_back(forwarded{from, std::move(what)});
  }
  void answered_by_actor(request_token from, reply what) {
    waiting_.push_back(answered_effect{from, std::move(what)});
  }
  void failed_by_actor(request_token from, failure why) {
    waiting_.push_back(failed_effect{from, std::move(why)});
  }

  // -- events of the guard --
  void ask(request_token from, request what, time_point now, stage_effects& effects) override;
  void answered(forward_id number, reply what, time_point now, stage_effects& effects) override;
  void failed(forward_id number, const failure& why, time_point now,
              stage_effects& effects) override;
  void tick(time_point now, stage_effects& effects) override;

private:
  struct forwarded {
    exit_token from;
    request what;
  };

  stage_actor_port& actor_;
  std::vector<std::variant<forwarded, answered_effect, failed_effect>> waiting_;
  growing_map<exit_token> open_; ///< The actor's request behind each forward.
};

} // namespace troupe
