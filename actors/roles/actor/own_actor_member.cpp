#include "actors/roles/actor/own_actor_member.hpp"

#include "actors/detached.hpp"
#include "actors/member_port.hpp"
#include "actors/protocol/actor/actor_life.hpp"
#include "actors/training/evaluation_computer.hpp"
#include "actors/training/inner_actor.hpp"
#include "actors/training/touched_rows.hpp"
#include "base/exception_text.hpp"
#include "base/user_code.hpp"
#include "serialization/payload.hpp"

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

/// A request of an inner_actor.
struct inner_question {
  std::uint64_t number = 0;
  request what;
};

/// The answer to an inner_question.
struct inner_answer {
  std::uint64_t number = 0;
  std::optional<failure> failed; ///< Null: it was answered.
  reply what;
};

/// Asks for inner_actor::run().
struct inner_run {};

/// Says that the program's stop() has returned.
struct body_ended {};

} // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::value_question)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::inner_question)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::inner_answer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::inner_run)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::body_ended)

namespace troupe {

namespace {

constexpr std::chrono::milliseconds program_tick{10};
/// Most events before a tick, values or stop() that are due.
constexpr std::size_t events_between_ticks = 16;
/// Longer than a router needs to reach the successor of a server. A question that fails is asked
/// again.
constexpr std::chrono::minutes pull_timeout{2};

/// Runs the program's code. Messages: begin, tick, deliver, values, answers, runs, end.
using body_handle = caf::typed_actor<caf::reacts_to<step_atom>, caf::reacts_to<tick_atom>,
                                     caf::reacts_to<deliver_atom>, caf::reacts_to<reply>,
                                     caf::reacts_to<inner_answer>, caf::reacts_to<inner_run>,
                                     caf::reacts_to<end_atom>>;
using body_owner = caf::typed_actor<caf::reacts_to<failure>, caf::reacts_to<value_question>,
                                    caf::reacts_to<inner_question>, caf::reacts_to<body_ended>>;

struct body_shell : inner_shell {
  using pointer = body_handle::stateful_pointer<body_shell>;

  body_shell() = default;

  void begin_program() {
    run([this] { own = options.make(*options.ports.room); });
    inner = dynamic_cast<inner_actor*>(own.get());
    if (inner != nullptr)
      inner->connect(this);
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
      auto why = exception_failure();
      if (!whose.empty())
        why.text = whose + ": " + why.text;
      self->send(owner, std::move(why));
    }
  }

  void tick() {
    run([this] { own->tick(now_of(*self)); });
    self->delayed_send(self, program_tick, tick_atom_v);
  }

  void deliver() {
    if (has_begun)
      run([this] { options.ports.room->deliver(events_between_ticks); });
  }

  void take(const reply& answer) {
    run([&] {
      const auto arrays = arrays_of(options.job, *answer.pulled);
      const std::vector<std::span<const float>> spans(arrays.begin(), arrays.end());
      options.ports.room->values(spans);
    });
  }

  // -- an inner actor --

  void ask(std::uint64_t number, request what) override {
    self->send(owner, inner_question{number, std::move(what)});
  }
  void run_soon() override {
    if (options.slowness)
      self->delayed_send(self, options.slowness(), inner_run{});
    else
      self->send(self, inner_run{});
  }
  void fail(const failure& why) override {
    is_over = true;
    self->send(owner, why);
  }

  void take(const inner_answer& answer) {
    run([&] {
      const auto what = answer.failed ? result<reply>{*answer.failed} : result<reply>{answer.what};
      inner->answered(answer.number, what, now_of(*self));
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
  inner_actor* inner = nullptr; ///< Null: it is of the program.
  std::string whose;            ///< "players:1"
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
    [&state](const inner_answer& answer) { state.take(answer); },
    [&state](inner_run) { state.run([&state] { state.inner->run(); }); },
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
    port.open(self, options.self, fingerprint(options.job), connect, options.ports.address);
    const auto begun = begin_body();
    life.emplace(now_of(*self), static_cast<bool>(begun));
    if (!begun)
      run(life->failed(begun.error()));
    self->delayed_send(self, report_interval, tick_atom_v);
    send_report();
  }

  /// Errors: job_failed (no thread, in a run inside another program).
  result<void> begin_body() {
    const auto me = caf::actor_cast<body_owner>(self);
    try {
      body = options.own_thread ? spawn_detached(self->system(), run_body, options, me)
                                : self->system().spawn(run_body, options, me);
    } catch (const std::system_error&) {
      return {errc::job_failed, exception_text()};
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
    return {};
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
    if (what.stop)
      end = reason_to_end(what);
    run(life->desired(mine->wind_down, what.stop, now_of(*self)));
  }

  /// Carries out what was decided.
  void run(const actor_steps& steps) {
    if (steps.calls_stop)
      self->send(body, end_atom_v);
    if (steps.asks_again && unanswered)
      ask(*unanswered);
    if (steps.has_worked && options.works)
      options.works();
    if (steps.reports)
      send_report();
    if (steps.ends)
      self->quit(end ? *end : caf::error{});
  }

  void tick() {
    run(life->tick(now_of(*self)));
    if (port.due())
      send_report();
    self->delayed_send(self, report_interval, tick_atom_v);
  }

  void send_report() {
    actor_status status;
    status.counters.ports = options.ports.room->counters(options.ports.node);
    if (options.notes)
      status.counters.notes = options.notes->all();
    status.counters.requests = requests;
    if (options.traffic) {
      const request_traffic traffic = options.traffic();
      status.counters.requests.wire_bytes_sent = traffic.sent_bytes;
      status.counters.requests.wire_bytes_received = traffic.received_bytes;
    }
    status.host = options.host;
    status.failed = life->failure_told();
    status.stopped = life->has_stopped();
    port.send(std::move(status));
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
              unanswered = std::move(what);
              run(life->question_failed(from_caf(error)));
            });
  }

  /// Asks for an inner actor, which repeats a question by itself.
  void ask(inner_question& what) {
    const auto number = what.number;
    const auto& push = what.what.push;
    const bool pushes = push.has_value(), has_values = push && !push->pieces.empty();
    if (push) {
      ++requests.pushes_sent;
      requests.bytes_sent += payload_bytes(*push);
    }
    self->request(store.values, pull_timeout, std::move(what.what))
      .then(
        [this, number, pushes, has_values, asked_at = now_of(*self)](const reply& answer) {
          requests.request_times.add(time_class(now_of(*self) - asked_at));
          requests.pushes_acknowledged += pushes ? 1 : 0;
          requests.pushes_refused += pushes && !has_values ? 1 : 0;
          if (answer.pulled)
            requests.bytes_received += payload_bytes(*answer.pulled);
          self->send(body, inner_answer{number, {}, answer});
        },
        [this, number](const caf::error& error) {
          self->send(body, inner_answer{number, from_caf(error), {}});
        });
  }

  pointer self = nullptr;
  own_actor_options options;
  store_client store;
  member_port port;
  body_handle body;
  listener_sink channels;
  config_id view_config;
  std::optional<actor_life> life;
  std::optional<caf::error> end;            ///< The reason with which the member is to end.
  std::optional<value_question> unanswered; ///< A question whose request failed.
  worker_counters requests;                 ///< Of an inner actor.

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
    [&state](const failure& why) { state.run(state.life->failed(why)); },
    [&state](value_question& what) { state.ask(what); },
    [&state](inner_question& what) { state.ask(what); },
    [&state](body_ended) { state.run(state.life->stopped()); },
  };
}

} // namespace

member_handle spawn_own_actor(caf::actor_system& system, own_actor_options options,
                              store_client store, coordinator_connector connect) {
  return system.spawn(run_member, std::move(options), std::move(store), std::move(connect));
}

} // namespace troupe
