// Keeps the open requests of a replica until each is answered or refused: a pull follows when its
// push is done. A plain state machine, part of a replica_host.
#pragma once

#include "actors/protocol/server/host_effects.hpp"
#include "base/growing_map.hpp"

#include <deque>
#include <optional>

namespace troupe {

/// Events: a request, and the effects of the replica that concern it. Effects: acknowledge_effect,
/// reply_effect, refuse_effect.
///
/// Invariants:
/// (1) each request ends in one reply or refusal. Held by: assert in acknowledged(), answered(),
///     refused().
/// (2) a pull that came with a push is due only when its push is done. Held by: assert in
///     take_due().
class replica_requests {
public:
  /// Adds a request. Tokens must grow.
  void add(request_token token, std::optional<pull_request> pull);
  /// Requires: the request is open, and asks for values.
  const pull_request& pull_of(request_token token);

  /// Notes that a push is done. A request without a pull ends.
  void acknowledged(const acknowledge_effect& what, host_effects& effects);
  /// Ends a request. If its push is done, it ends with a receipt where its worker is to ask for the
  /// values again, alone.
  void refused(refuse_effect what, host_effects& effects);
  /// Ends a request with values.
  void answered(answer_effect what, host_effects& effects);
  /// Refuses all open requests.
  void refuse_all(const failure& why, host_effects& effects);

  /// Returns whether a pull's push is done, and the pull was not taken yet.
  bool any_due() const { return !due_.empty(); }
  /// Requires: any_due().
  request_token take_due();

private:
  struct open_request {
    std::optional<pull_request> pull;
    std::optional<push_reply> pushed;
  };

  growing_map<open_request> open_;
  std::deque<request_token> due_; ///< Pulls whose pushes are done.
};

} // namespace troupe
