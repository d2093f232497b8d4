// CAF's settings for a process of Troupe.
#pragma once

#include "actors/kv.hpp"

#include "caf/actor_system_config.hpp"
#include "caf/atom.hpp"

namespace troupe {

struct actor_config : caf::actor_system_config {
  actor_config() {
    add_message_types<caf::id_block::troupe>();
    // Work stealing wakes an idle thread up to 10 ms late; a shared queue wakes one at once.
    set("scheduler.policy", caf::atom("sharing"));
    // What computes for long (workers, storage) has threads of its own.
    set("scheduler.max-threads", std::size_t{2});
  }
};

} // namespace troupe
