#include "actors/protocol/server/replica_requests.hpp"

#include <cassert>
#include <utility>

namespace troupe {

void replica_requests::add(request_token token, std::optional<pull_request> pull) {
  open_.add(token.value, {std::move(pull), {}});
}

const pull_request& replica_requests::pull_of(request_token token) {
  return *open_.at(token.value).pull;
}

void replica_requests::acknowledged(const acknowledge_effect& what, host_effects& effects) {
  auto& open = open_.at(what.push.value);
  assert(!open.pushed);
  open.pushed = what.push_reply;
  effects.push_back(what);
  if (open.pull) {
    due_.push_back(what.push);
    return;
  }
  open_.extract(what.push.value);
  effects.push_back(reply_effect{what.push, what.push_reply});
}

void replica_requests::refused(refuse_effect what, host_effects& effects) {
  assert(open_.contains(what.request.value));
  const auto pushed = open_.extract(what.request.value)->pushed;
  if (pushed && reaction_to(what.why.code) == reaction::retry)
    effects.push_back(reply_effect{what.request, pushed});
  else
    effects.push_back(std::move(what));
}

void replica_requests::answered(answer_effect what, host_effects& effects) {
  assert(open_.contains(what.pull.value));
  auto ended = *open_.extract(what.pull.value);
  effects.push_back(
    reply_effect{what.pull, ended.pushed,
                 reading{*std::move(ended.pull), what.version, std::move(what.previous)}});
}

void replica_requests::refuse_all(const failure& why, host_effects& effects) {
  open_.erase_if([&](std::uint64_t token, const open_request&) {
    effects.push_back(refuse_effect{{token}, why});
    return true;
  });
  due_.clear();
}

request_token replica_requests::take_due() {
  const auto token = due_.front();
  assert(open_.at(token.value).pushed);
  due_.pop_front();
  return token;
}

} // namespace troupe
