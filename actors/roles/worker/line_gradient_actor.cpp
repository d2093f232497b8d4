#include "actors/roles/worker/line_gradient_actor.hpp"

#include "actors/detached.hpp"
#include "base/exception_text.hpp"

#include "caf/send.hpp"
#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"

#include <optional>
#include <utility>

namespace troupe {

namespace {

struct line_shell_state : line_shell {
  using handle = gradient_actor::extend<caf::reacts_to<step_atom>>;
  using pointer = handle::stateful_pointer<line_shell_state>;

  line_shell_state() = default;

  void init(pointer owner, line_gradient_options how) {
    self = owner;
    options = std::move(how);
    try {
      line = options.make(*this, *options.ports);
    } catch (...) {
      failed = exception_failure();
    }
    self->send(self, deliver_atom_v); // Events may have come before the ports were bound.
  }

  void compute(const gradient_task& task) {
    asker = caf::actor_cast<gradient_receiver>(self->current_sender());
    if (line)
      return guarded([&] { line->compute(task); });
    done(failed_outcome(task.number, *failed));
  }

  void drop(const dropped_task& task) {
    if (line)
      guarded([&] { line->dropped(task.number); });
  }

  void refuse(const keys_task& task) {
    self->send(caf::actor_cast<gradient_receiver>(self->current_sender()),
               keys_outcome{
                 task.number, failure{errc::invalid_argument, "a line has no sparse tables"}, {}});
  }

  void deliver() {
    if (line)
      guarded([this] { options.ports->deliver(events_between_runs); });
  }

  void run() {
    guarded([this] { line->run(); });
  }

  template <class Call>
  void guarded(Call call) {
    try {
      call();
    } catch (...) {
      fail(exception_failure());
    }
  }

  // -- the line --

  void ask(std::uint64_t, request) override {} // The worker asks for the first part.
  void run_soon() override {
    if (options.slowness)
      self->delayed_send(self, options.slowness(), step_atom_v);
    else
      self->send(self, step_atom_v);
  }
  void done(gradient_outcome what) override { self->send(asker, std::move(what)); }
  void fail(const failure& why) override { options.ports->stop_with(why); }
  void say(const std::string& text) override {
    if (options.log)
      options.log(log_level::info, text);
  }

  /// Most parcels between two computations.
  static constexpr std::size_t events_between_runs = 16;

  pointer self = nullptr;
  line_gradient_options options;
  gradient_receiver asker;
  std::unique_ptr<line_part> line;
  std::optional<failure> failed; ///< Set if there is no line.

  static inline const char* name = "line_gradient";
};

static_assert(!std::is_constructible_v<line_shell_state, caf::event_based_actor*>);

line_shell_state::handle::behavior_type run_line_gradients(line_shell_state::pointer self,
                                                           line_gradient_options options) {
  auto& state = self->state;
  state.init(self, std::move(options));
  return {
    [&state](const gradient_task& task) { state.compute(task); },
    [&state](const dropped_task& task) { state.drop(task); },
    [&state](const keys_task& task) { state.refuse(task); },
    [&state](deliver_atom) { state.deliver(); },
    [&state](step_atom) { state.run(); },
  };
}

} // namespace

gradient_actor spawn_line_gradient_actor(caf::actor_system& system, line_gradient_options options,
                                         gradient_thread where) {
  if (where == gradient_thread::none)
    return system.spawn(run_line_gradients, std::move(options));
  return spawn_detached(system, run_line_gradients, std::move(options));
}

} // namespace troupe
