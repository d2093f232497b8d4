#include "actors/roles/worker/stage_actor.hpp"

#include "actors/detached.hpp"
#include "actors/roles/worker/stage_shell.hpp"

#include "caf/stateful_actor.hpp"

#include <utility>

namespace troupe {

namespace {

using stage_handle = kv::extend<caf::reacts_to<tick_atom>>;
using own_shell = stage_shell<stage_handle>;
using own_pointer = stage_handle::stateful_pointer<own_shell>;

static_assert(!std::is_constructible_v<own_shell, caf::event_based_actor*>);

stage_handle::behavior_type run_stage(own_pointer self, stage_options options,
                                      std::unique_ptr<stage_decider>& stage, kv next) {
  auto& state = self->state;
  self->set_down_handler([self](caf::down_msg&) { self->quit(); });
  state.begin(self, std::move(options), std::move(stage), std::move(next));
  return {
    [&state](request& what) { return state.ask(what); },
    [&state](tick_atom) { state.tick(); },
  };
}

} // namespace

kv spawn_stage(caf::actor_system& system, stage_options options,
               std::unique_ptr<stage_decider> stage, kv next) {
  const bool blocks = options.own_thread;
  // The function that CAF calls once must be copyable, so the stage is shared with it.
  const auto shared = std::make_shared<std::unique_ptr<stage_decider>>(std::move(stage));
  const auto begin = [shared](own_pointer self, stage_options how, kv to) {
    return run_stage(self, std::move(how), *shared, std::move(to));
  };
  if (blocks)
    return spawn_detached(system, begin, std::move(options), std::move(next));
  return system.spawn(begin, std::move(options), std::move(next));
}

} // namespace troupe
