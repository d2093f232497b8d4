#include "actors/roles/worker/gradient_actor.hpp"

#include "actors/detached.hpp"
#include "actors/inline_executor.hpp"
#include "base/exception_text.hpp"

#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"

#include <optional>
#include <utility>

namespace troupe {

namespace {

/// Most turns of other actors between two gradients; they carry out this worker's step.
constexpr std::size_t turns_max = 16;

struct gradient_state {
  gradient_state() = default;

  std::optional<gradient_computer> computer;
  std::optional<inline_executor> own_executor;
  std::shared_ptr<port_room> ports;

  static inline const char* name = "gradient";
};

static_assert(!std::is_constructible_v<gradient_state, caf::event_based_actor*>);

void deliver(port_room& ports) {
  try {
    ports.deliver();
  } catch (...) {
    ports.stop_with(exception_failure());
  }
}

template <class Outcome>
void answer(gradient_actor::stateful_pointer<gradient_state> self, Outcome outcome) {
  const auto responder = caf::actor_cast<gradient_receiver>(self->current_sender());
  auto& inline_executor = self->state.own_executor;
  if (!inline_executor) {
    self->send(responder, std::move(outcome));
    return;
  }
  inline_executor->send(responder, std::move(outcome));
  inline_executor->run();
}

gradient_actor::behavior_type
run_gradient_actor(gradient_actor::stateful_pointer<gradient_state> self, job_spec job,
                   const trainer_factory& make, gradient_thread where, bool keep_on_device,
                   std::shared_ptr<port_room> ports) {
  auto& state = self->state;
  state.ports = std::move(ports);
  state.computer.emplace(std::move(job), make, keep_on_device);
  if (where == gradient_thread::inline_executor)
    state.own_executor.emplace(self->system(), turns_max);
  return {
    [self, &state](const gradient_task& task) { answer(self, state.computer->compute(task)); },
    [](const dropped_task&) {}, // The trainer has no way to stop.
    [self, &state](const keys_task& task) { answer(self, state.computer->keys(task)); },
    [&state](deliver_atom) {
      if (state.ports)
        deliver(*state.ports);
    },
  };
}

} // namespace

gradient_actor spawn_gradient_actor(caf::actor_system& system, job_spec job, trainer_factory make,
                                    gradient_thread where, bool keep_on_device,
                                    std::shared_ptr<port_room> ports) {
  if (where == gradient_thread::none)
    return system.spawn(run_gradient_actor, std::move(job), std::move(make), where, keep_on_device,
                        std::move(ports));
  return spawn_detached(system, run_gradient_actor, std::move(job), std::move(make), where,
                        keep_on_device, std::move(ports));
}

} // namespace troupe
