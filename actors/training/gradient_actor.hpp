// Computes the gradients of one worker with the user's trainer, on a thread of its own, so that the
// worker hears its coordinator while a batch takes long.
#pragma once

#include "actors/training/trainer.hpp"
#include "serialization/buffer.hpp"
#include "serialization/job.hpp"
#include "serialization/messages.hpp"

#include "caf/actor_system.hpp"
#include "caf/allowed_unsafe_message_type.hpp"
#include "caf/typed_actor.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

using trainer_factory = std::function<std::unique_ptr<trainer>()>;

struct gradient_task {
  std::uint64_t number = 0; ///< Comes back with the outcome.
  batch_id batch;
  std::vector<float_ptr> parameters; ///< One array for each table: whole, or the rows of `rows`.
  std::vector<row_keys> rows;        ///< Of sparse tables; from keys_outcome.
  std::uint64_t version = 0;         ///< Of the parameters; comes back with the outcome.
};

struct gradient_outcome {
  std::uint64_t number = 0;
  std::string failed;          ///< What the trainer threw; the rest is then empty.
  bool finite = true;          ///< Every element.
  std::vector<piece> pieces;   ///< One for each dense table; none where the gradient is not finite.
  std::vector<row_piece> rows; ///< The same for sparse tables.
  float norm = 0;              ///< 0 where no table clips by it: another pass over the gradient.
  double loss = 0;             ///< Mean over the batch.
  std::uint64_t samples = 0;
  std::uint64_t base_version = 0;
};

/// Which rows of sparse tables does the batch need?
struct keys_task {
  std::uint64_t number = 0; ///< Comes back with the outcome.
  batch_id batch;
};

struct keys_outcome {
  std::uint64_t number = 0;
  std::string failed;         ///< What the trainer threw; `rows` is then empty.
  std::vector<row_keys> rows; ///< One for each sparse table.
};

} // namespace troupe

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
  none, ///< The scheduler's: a test schedules all actors itself.
  own,  ///< Its own: the next gradient begins while others deal with this one.
  lane, ///< Its own, and a lane: the asker's step goes on there, while nobody waits for a gradient.
};

/// Lifetime:  until it is told to exit; a gradient being computed is finished first.
/// Capacity:  gradients while `pieces` of outcomes live.
gradient_actor spawn_gradient_actor(caf::actor_system& system, job_spec job, trainer_factory make,
                                    gradient_thread where);

} // namespace troupe
