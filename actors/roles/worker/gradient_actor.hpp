// Computes the gradients of one worker with the user's trainer. Except in simulations it has a
// thread of its own, so that the worker hears its coordinator during a long batch.
#pragma once

#include "actors/kv.hpp"
#include "actors/training/gradient_computer.hpp"
#include "actors/training/port_room.hpp"
#include "serialization/job.hpp"

#include "caf/actor_system.hpp"
#include "caf/allowed_unsafe_message_type.hpp"
#include "caf/typed_actor.hpp"

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::keys_task)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::keys_outcome)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::gradient_task)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::dropped_task)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::gradient_outcome)

namespace troupe {

/// ~~~
/// interface gradient_actor {
///   // Computes the gradient of one batch. One-way; tasks are done in order. Each ends with a
///   // gradient_outcome to its sender, also if the trainer threw or could not even be made.
///   (gradient_task)
///   // Drops a gradient_task, which still ends with a gradient_outcome. One-way. A line ends it at
///   // once; a trainer computes on.
///   (dropped_task)
///   // Says which rows a batch needs. One-way; ends with a keys_outcome to its sender.
///   (keys_task)
///   // Calls the callbacks of the trainer's ports.
///   (deliver_atom)
/// }
/// ~~~
using gradient_actor = caf::typed_actor<caf::reacts_to<gradient_task>, caf::reacts_to<dropped_task>,
                                        caf::reacts_to<keys_task>, caf::reacts_to<deliver_atom>>;
using gradient_receiver =
  caf::typed_actor<caf::reacts_to<gradient_outcome>, caf::reacts_to<keys_outcome>>;

/// Thread on which a trainer computes.
enum class gradient_thread {
  none,            ///< The scheduler's threads, as in a test that schedules all actors itself.
  own,             ///< Its own thread: the next gradient begins while other actors handle this one.
  inline_executor, ///< Its own; the asker's step goes on there until the next gradient.
};

/// Spawns a gradient actor. `keep_on_device`: gradients may stay on a device, as the asker's kv is
/// a reducer. `ports`: those of the trainer; may be null.
///
/// Lifetime:  until it is told to exit; a gradient being computed is finished first.
/// Capacity:  each gradient, as long as the `pieces` of its outcome live.
gradient_actor spawn_gradient_actor(caf::actor_system& system, job_spec job, trainer_factory make,
                                    gradient_thread where, bool keep_on_device = false,
                                    std::shared_ptr<port_room> ports = {});

} // namespace troupe
