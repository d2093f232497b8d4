// CAF's settings for a process of Troupe.
#pragma once

#include "actors/kv.hpp"

#include "caf/actor_system_config.hpp"
#include "caf/atom.hpp"

namespace troupe {

struct actor_config : caf::actor_system_config {
  /// `threads`: of actors that compute little, and of servers. With more than there are servers
  /// here, each message of a step wakes a thread that sleeps, about 25 us, where the one that sent
  /// it could have gone on with it. 0: actors run, and their clock moves, when they are told to;
  /// see simulation.hpp.
  explicit actor_config(std::size_t threads = 1) {
    add_message_types<caf::id_block::troupe>();
    // Work stealing wakes an idle thread up to 10 ms late; a shared queue wakes one at once.
    set("scheduler.policy", threads == 0 ? caf::atom("testing") : caf::atom("sharing"));
    // What computes for long (trainers, first values, storage) has threads of its own.
    set("scheduler.max-threads", threads);
  }
};

} // namespace troupe
