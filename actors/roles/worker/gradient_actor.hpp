// Computes the gradients of one worker with the user's trainer, on a thread of its own, so that the
// worker hears its coordinator while a batch takes long.
#pragma once

#include "actors/training/gradient_computer.hpp"
#include "serialization/job.hpp"

#include "caf/actor_system.hpp"
#include "caf/allowed_unsafe_message_type.hpp"
#include "caf/typed_actor.hpp"

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::keys_task)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::keys_outcome)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::gradient_task)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::gradient_outcome)

namespace troupe {

/// ~~~
/// interface gradient_actor {
///   // Computes the gradient of one batch. One-way; tasks are done in order, and each ends with a
///   // gradient_outcome to its sender, also where the trainer threw or could not even be made.
///   (gradient_task)
///   // Says which rows a batch needs. One-way; ends with a keys_outcome to its sender.
///   (keys_task)
/// }
/// ~~~
using gradient_actor = caf::typed_actor<caf::reacts_to<gradient_task>, caf::reacts_to<keys_task>>;
using gradient_receiver =
  caf::typed_actor<caf::reacts_to<gradient_outcome>, caf::reacts_to<keys_outcome>>;

/// On whose thread trainers compute.
enum class gradient_thread {
  none,            ///< The scheduler's: a test schedules all actors itself.
  own,             ///< Its own: the next gradient begins while others deal with this one.
  inline_executor, ///< Its own; the responder's step continues there until a gradient is asked for.
};

/// `keep_on_device`: gradients may stay on a device: their asker's kv is a reducer.
///
/// Lifetime:  until it is told to exit; a gradient being computed is finished first.
/// Capacity:  gradients while `pieces` of outcomes live.
gradient_actor spawn_gradient_actor(caf::actor_system& system, job_spec job, trainer_factory make,
                                    gradient_thread where, bool keep_on_device = false);

} // namespace troupe
