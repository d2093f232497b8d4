#include "actors/roles/observer/observer_actor.hpp"

#include "actors/member_port.hpp"

#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"

#include <utility>

namespace troupe {

namespace {

struct observer_shell {
  using handle = observer_handle::extend<caf::reacts_to<step_atom>>;
  using pointer = handle::stateful_pointer<observer_shell>;

  observer_shell() = default;

  void reconcile(const desired_state& what) {
    const auto* mine = port.take<job_status>(what);
    if (mine == nullptr)
      return;
    if (views && mine->view.config > view_config) {
      view_config = mine->view.config;
      self->send(views, view_atom_v, mine->view, what.listeners);
    }
    mailbox->publish({*mine, what.term, what.stop, what.failed, what.sequence});
  }

  void send_report() { port.send(mailbox->report()); }

  pointer self = nullptr;
  member_port port;
  std::shared_ptr<observer_mailbox> mailbox;
  view_sink views;
  config_id view_config;

  static inline const char* name = "observer";
};

static_assert(!std::is_constructible_v<observer_shell, caf::event_based_actor*>);

observer_shell::handle::behavior_type run_observer(observer_shell::pointer self, member_id id,
                                                   std::uint64_t job,
                                                   std::shared_ptr<observer_mailbox> mailbox,
                                                   view_sink views,
                                                   const coordinator_connector& connect) {
  auto& state = self->state;
  state.self = self;
  state.port.open(self, id, job, connect);
  state.mailbox = std::move(mailbox);
  state.views = std::move(views);
  self->send(self, step_atom_v);
  return {
    [&state](const desired_state& what) { state.reconcile(what); },
    [&state](tick_atom) { state.send_report(); },
    [self, &state](step_atom) {
      state.send_report();
      self->delayed_send(self, report_interval, step_atom_v);
    },
  };
}

} // namespace

observer_handle spawn_observer(caf::actor_system& system, member_id self, std::uint64_t job,
                               std::shared_ptr<observer_mailbox> mailbox, view_sink views,
                               coordinator_connector connect) {
  return system.spawn(run_observer, self, job, std::move(mailbox), std::move(views),
                      std::move(connect));
}

} // namespace troupe
