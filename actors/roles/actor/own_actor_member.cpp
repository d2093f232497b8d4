#include "actors/roles/actor/own_actor_member.hpp"

#include "actors/detached.hpp"
#include "actors/member_port.hpp"
#include "actors/training/evaluation_computer.hpp"
#include "actors/training/touched_rows.hpp"
#include "base/exception_text.hpp"
#include "base/user_code.hpp"

#include "caf/send.hpp"
#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace troupe {

/// Asks for values: the rows of each table, or none for the dense tables alone.
struct value_question {
  std::vector<std::vector<std::uint64_t>> keys;
};

/// Says that the program's stop() has returned.
struct body_ended {};

} // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::value_question)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::body_ended)

namespace troupe {

namespace {

constexpr std::chrono::milliseconds program_tick{10};
constexpr std::chrono::seconds stop_patience{5};
/// Time after which an actor that still runs has done work.
constexpr std::chrono::seconds proof{1};
constexpr std::chrono::minutes pull_timeout{2};

/// Runs the program's code. Messages: begin, tick, deliver, values, end.
using body_handle =
  caf::typed_actor<caf::reacts_to<step_atom>, caf::reacts_to<tick_atom>,
                   caf::reacts_to<deliver_atom>, caf::reacts_to<reply>, caf::reacts_to<end_atom>>;
using body_owner = caf::typed_actor<caf::reacts_to<failure>, caf::reacts_to<value_question>,
                                    caf::reacts_to<body_ended>>;

struct body_shell {
  using pointer = body_handle::stateful_pointer<body_shell>;

  body_shell() = default;

  void begin_program() {
    run([this] { own = options.make(*options.ports.room); });
    if (own)
      whose = options.ports.node + ":" + std::to_string(own->where().index);
    run([this] {
      own->start();
      options.ports.room->check_takes();
    });
    has_begun = true;
    deliver();
    self->delayed_send(self, program_tick, tick_atom_v);
  }

  /// Calls code of the program. An exception of it is the member's failure.
  template <class Call>
  void run(Call call) {
    if (is_over)
      return;
    try {
      const user_call here{{"actor", {}, whose}};
      call();
    } catch (...) {
      is_over = true;
      self->send(owner, exception_failure());
    }
  }

  void tick() {
    run([this] { own->tick(now_of(*self)); });
    self->delayed_send(self, program_tick, tick_atom_v);
  }

  void deliver() {
    if (has_begun)
      run([this] { options.ports.room->deliver(); });
  }

  void take(const reply& answer) {
    run([&] {
      const auto arrays = arrays_of(options.job, *answer.pulled);
      const std::vector<std::span<const float>> spans(arrays.begin(), arrays.end());
      options.ports.room->values(spans);
    });
  }

  void end_program() {
    if (has_begun)
      run([this] { own->stop(); });
    is_over = true;
    self->send(owner, body_ended{});
  }

  pointer self = nullptr;
  own_actor_options options;
  body_owner owner;
  std::unique_ptr<own_actor> own;
  std::string whose; ///< "players:1"
  bool has_begun = false;
  bool is_over = false;

  static inline const char* name = "own_actor";
};

static_assert(!std::is_constructible_v<body_shell, caf::event_based_actor*>);

body_handle::behavior_type run_body(body_shell::pointer self, own_actor_options options,
                                    body_owner owner) {
  auto& state = self->state;
  state.self = self;
  state.options = std::move(options);
  state.owner = std::move(owner);
  return {
    [&state](step_atom) { state.begin_program(); },
    [&state](tick_atom) { state.tick(); },
    [&state](deliver_atom) { state.deliver(); },
    [&state](const reply& answer) { state.take(answer); },
    [&state](end_atom) { state.end_program(); },
  };
}

struct member_shell {
  using handle = member_handle::extend<caf::reacts_to<tick_atom>>::extend_with<body_owner>;
  using pointer = handle::stateful_pointer<member_shell>;

  member_shell() = default;

  void init(pointer owner, own_actor_options how, store_client to,
            const coordinator_connector& connect) {
    self = owner;
    options = std::move(how);
    store = std::move(to);
    begun = now_of(*self);
    port.open(self, options.self, fingerprint(options.job), connect, options.ports.address);
    begin_body();
    self->delayed_send(self, report_interval, tick_atom_v);
    send_report();
  }

  void begin_body() {
    const auto me = caf::actor_cast<body_owner>(self);
    try {
      body = options.own_thread ? spawn_detached(self->system(), run_body, options, me)
                                : self->system().spawn(run_body, options, me);
    } catch (const std::system_error&) { // No thread, in a run inside another program.
      failed = failure{errc::job_failed, exception_text()};
      return;
    }
    self->attach_functor(
      [running = body] { caf::anon_send_exit(running, caf::exit_reason::user_shutdown); });
    port_surroundings around;
    around.ask = [me](std::vector<std::vector<std::uint64_t>> keys) {
      caf::anon_send(me, value_question{std::move(keys)});
    };
    around.why_no_wait = "and an actor's callbacks must not: set its take in start()";
    channels = begin_lanes(self, options.ports, body, std::move(around));
    self->send(body, step_atom_v);
  }

  // -- control path --

  void reconcile(const desired_state& what) {
    const auto* mine = port.take<desired_actor>(what);
    if (mine == nullptr)
      return;
    if (channels)
      self->send(channels, what.listeners);
    if (mine->view.config > view_config) {
      view_config = mine->view.config;
      if (store.views)
        self->send(store.views, view_atom_v, mine->view, what.listeners);
    }
    if (mine->wind_down || what.stop)
      wind_down();
    else if (winds_down) // A server lost batches, and the job trains again. Another one begins.
      return self->quit();
    if (!what.stop)
      return;
    end = reason_to_end(what);
    if (!body || has_stopped)
      self->quit(*end);
  }

  void wind_down() {
    if (std::exchange(winds_down, true) || !body)
      return;
    stop_by = now_of(*self) + stop_patience;
    self->send(body, end_atom_v);
  }

  void stopped() {
    has_stopped = true;
    send_report();
    if (end)
      self->quit(*end);
  }

  void tick() {
    const auto now = now_of(*self);
    if (end && winds_down && now >= stop_by) // The program's stop() does not return.
      return self->quit(*end);
    if (options.works && !failed && now - begun >= proof)
      options.works();
    if (port.due())
      send_report();
    if (auto again = std::exchange(unanswered, std::nullopt); again && !winds_down)
      ask(*again);
    self->delayed_send(self, report_interval, tick_atom_v);
  }

  void send_report() {
    actor_status status;
    status.counters.ports = options.ports.room->counters(options.ports.node);
    if (options.notes)
      status.counters.notes = options.notes->all();
    status.host = options.host;
    status.failed = failed;
    status.stopped = has_stopped;
    port.send(std::move(status));
  }

  void fail(const failure& why) {
    if (!failed)
      failed = why;
    send_report();
  }

  // -- values --

  void ask(value_question& what) {
    pull_request asked;
    asked.latest = true;
    for (std::uint32_t i = 0; i < options.job.tables.size(); ++i)
      if (!options.job.tables[i].is_sparse())
        asked.ranges.push_back({{i}, 0, options.job.tables[i].size()});
    asked.rows = touched_rows(options.job, [&](key_lists touched) {
      for (std::size_t i = 0; i < std::min(touched.size(), what.keys.size()); ++i)
        touched[i] = what.keys[i];
    });
    self->request(store.values, pull_timeout, request{{}, std::move(asked)})
      .then([this](const reply& answer) { self->send(body, answer); },
            [this, what](const caf::error& error) mutable {
              const auto why = from_caf(error);
              if (reaction_to(why.code) == reaction::stop)
                fail(why);
              else
                unanswered = std::move(what); // A server is being replaced; tick() asks again.
            });
  }

  pointer self = nullptr;
  own_actor_options options;
  store_client store;
  member_port port;
  body_handle body;
  listener_sink channels;
  config_id view_config;
  time_point begun{0};
  bool winds_down = false;  ///< The program's stop() was called for.
  bool has_stopped = false; ///< It has returned.
  time_point stop_by{0};
  std::optional<caf::error> end; ///< The reason with which the member is to end.
  std::optional<failure> failed;
  std::optional<value_question> unanswered; ///< A question whose request failed.

  static inline const char* name = "own_member";
};

static_assert(!std::is_constructible_v<member_shell, caf::event_based_actor*>);

member_shell::handle::behavior_type run_member(member_shell::pointer self,
                                               own_actor_options options, store_client store,
                                               const coordinator_connector& connect) {
  auto& state = self->state;
  state.init(self, std::move(options), std::move(store), connect);
  return {
    [&state](const desired_state& what) { state.reconcile(what); },
    [&state](tick_atom) { state.tick(); },
    [&state](const failure& why) { state.fail(why); },
    [&state](value_question& what) { state.ask(what); },
    [&state](body_ended) { state.stopped(); },
  };
}

} // namespace

member_handle spawn_own_actor(caf::actor_system& system, own_actor_options options,
                              store_client store, coordinator_connector connect) {
  return system.spawn(run_member, std::move(options), std::move(store), std::move(connect));
}

} // namespace troupe
