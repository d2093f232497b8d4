// Sets CAF's options for a process of Troupe.
#pragma once

#include "actors/kv.hpp"

#include "caf/actor_system_config.hpp"
#include "caf/atom.hpp"

namespace troupe {

struct actor_config : caf::actor_system_config {
  /// `threads`: threads for servers and for actors that compute little. With more threads than
  /// servers here, each message of a step wakes a sleeping thread, which takes about 25 us. Its
  /// sender's thread could have gone on with it. 0: the caller runs the actors and moves their
  /// clock; see simulation.hpp.
  explicit actor_config(std::size_t threads = 1) {
    add_message_types<caf::id_block::troupe>();
    // Work stealing wakes an idle thread up to 10 ms late; a shared queue wakes one at once.
    set("scheduler.policy", threads == 0 ? caf::atom("testing") : caf::atom("sharing"));
    // Long computations (trainers, first values, storage) have threads of their own.
    set("scheduler.max-threads", threads);
  }
};

} // namespace troupe
