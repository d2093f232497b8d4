#include "actors/protocol/server/state_copies.hpp"

#include <cassert>

namespace troupe {

/// Keeps the early request: it is for a configuration that is still to come.
void state_copies::begin_generation() {
  sending_.reset();
  asked_.reset();
  held_.reset();
  is_saved_ = true;
}

// -- to a joiner --

bool state_copies::send_part(const member_id& to, const copy_request& what, host_effects& effects) {
  if (sending_ != std::pair{to, what.config})
    return false;
  effects.push_back(send_copy_effect{to, what, std::nullopt});
  return true;
}

void state_copies::send(const member_id& to, const copy_request& what, copied_state fresh,
                        host_effects& effects) {
  assert(fresh.config == what.config && (!sending_ || sending_->second <= what.config));
  sending_ = {to, what.config};
  effects.push_back(send_copy_effect{to, what, std::move(fresh)});
}

void state_copies::joined(const member_id& from, config_id config, host_effects& effects) {
  if (sending_ != std::pair{from, config})
    return;
  sending_.reset();
  effects.push_back(end_copy_effect{});
}

void state_copies::supersede(config_id newest, host_effects& effects) {
  if (!sending_ || sending_->second >= newest)
    return;
  sending_.reset();
  effects.push_back(end_copy_effect{});
}

// -- from the tail --

void state_copies::ask(const request_copy_effect& what, time_point now, host_effects& effects) {
  if (asked_ == what.config && now - asked_at_ < patience_)
    return;
  assert(is_saved_);
  asked_ = what.config;
  asked_at_ = now;
  effects.push_back(ask_copy_effect{what.from, what.config});
}

void state_copies::whole(copied_state what, bool is_saved_first) {
  assert(awaits(what.config) && is_saved_);
  asked_.reset();
  held_ = std::move(what);
  is_saved_ = !is_saved_first;
}

copied_state state_copies::take() {
  assert(held_ && is_saved_);
  return *std::exchange(held_, std::nullopt);
}

} // namespace troupe
