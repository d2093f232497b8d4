#include "actors/roles/worker/worker_actor.hpp"

#include "actors/member_port.hpp"
#include "actors/open_requests.hpp"
#include "actors/training/cached_values.hpp"
#include "actors/training/divergence.hpp"
#include "base/clock.hpp"
#include "base/exception_text.hpp"
#include "serialization/payload.hpp"

#include "caf/send.hpp"
#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

namespace troupe {

namespace {

// A step waits for other workers and for servers being replaced. Only a cluster that is stalled for
// good exceeds this.
constexpr std::chrono::minutes step_timeout{10};
// Gradients in a row that cannot be read from their device, after which the device counts as lost.
constexpr int lost_max = 20;

/// Returns the trainer's thread. If values are pulled ahead, the next gradient begins at once.
gradient_thread gradient_thread_of(const worker_options& options) {
  if (!options.own_thread)
    return gradient_thread::none;
  return options.step_planner.ahead_max > 0 ? gradient_thread::own
                                            : gradient_thread::inline_executor;
}

struct worker_shell {
  using handle = member_handle::extend<caf::reacts_to<tick_atom>, caf::reacts_to<step_atom>,
                                       caf::reacts_to<gradient_outcome>,
                                       caf::reacts_to<keys_outcome>, caf::reacts_to<failure>>;
  using pointer = handle::stateful_pointer<worker_shell>;

  worker_shell() = default;

  void init(pointer owner, worker_options how, trainer_factory make, store_client to,
            const coordinator_connector& connect) {
    self = owner;
    options = std::move(how);
    store = std::move(to);
    port.open(self, options.self, fingerprint(options.job), connect, options.ports.address);
    steps.emplace(options.job, options.step_planner);
    own_tables = options.tables;
    for (std::uint32_t i = 0; options.tables.empty() && i < options.job.tables.size(); ++i)
      own_tables.push_back({i});
    idle_since = now_of(*self);
    nothing_held = empty_cache(options.job, options.tables);
    held = nothing_held;
    is_sparse = any_sparse(options.job);
    has_frozen = any_frozen(options.job);
    begins_alone =
      has_frozen && options.step_planner.ahead_max > 0 && !has_waiting_pulls(options.job);
    begin_gradients(std::move(make));
    // The coordinator scans all workers for each status, so a thousand workers report less often.
    constexpr std::uint32_t workers_at_full_rate = 256;
    port.report_every(report_interval * std::max(1u, options.job.workers / workers_at_full_rate));
    self->delayed_send(self, report_interval, tick_atom_v);
    send_report();
  }

  void begin_gradients(trainer_factory make) {
    try {
      const auto where = gradient_thread_of(options);
      gradients = options.gradients
                    ? options.gradients(self->system(), where)
                    : spawn_gradient_actor(self->system(), options.job, std::move(make), where,
                                           options.keep_on_device, options.ports.room);
    } catch (const std::system_error&) { // No thread, in a run inside another program.
      failed = failure{errc::job_failed, exception_text()};
      return;
    }
    self->attach_functor(
      [computing = gradients] { caf::anon_send_exit(computing, caf::exit_reason::user_shutdown); });
    if (options.ports.room)
      begin_channels();
  }

  void begin_channels() {
    port_surroundings around;
    around.whose = "worker " + std::to_string(options.self.index);
    if (!options.own_thread)
      around.why_no_wait = "which virtual time cannot: use --threads";
    channels = begin_lanes(self, options.ports, gradients, std::move(around));
  }

  // -- control path --

  void reconcile(const desired_state& what) {
    const auto* mine = port.take<desired_worker>(what);
    if (mine == nullptr)
      return;
    if (what.stop) {
      self->quit(reason_to_end(what));
      return;
    }
    if (channels)
      self->send(channels, what.listeners);
    if (store.lanes)
      self->send(store.lanes, what.listeners);
    if (mine->view.config > view_config) {
      view_config = mine->view.config;
      if (store.views)
        self->send(store.views, view_atom_v, mine->view, what.listeners);
    }
    const auto generation = steps->generation();
    steps->reconcile(*mine);
    for (const auto number : steps->take_dropped())
      self->send(gradients, dropped_task{number});
    if (has_frozen && steps->generation() != generation) { // Frozen values are pulled again.
      held = nothing_held;
      first_pull.reset();
    }
    advance();
  }

  void tick() {
    requests.expire(now_of(*self));
    if (port.due())
      send_report();
    self->delayed_send(self, report_interval, tick_atom_v);
    advance(); // Retries after an error that only time cures.
  }

  void send_report() {
    worker_status body;
    body.generation = steps->generation();
    body.leases = steps->progress();
    body.clock = steps->clock();
    body.counters = counters;
    if (computing == 0)
      body.counters.wait_us += idle_us();
    if (options.window_wait)
      body.counters.window_wait_us =
        static_cast<std::uint64_t>(options.window_wait().count() / 1000);
    if (options.traffic) {
      const request_traffic traffic = options.traffic();
      body.counters.wire_bytes_sent = traffic.sent_bytes;
      body.counters.wire_bytes_received = traffic.received_bytes;
    }
    if (options.moved) {
      const request_traffic moved = options.moved();
      body.counters.bytes_sent = moved.sent_bytes;
      body.counters.bytes_received = moved.received_bytes;
    }
    if (options.reduced)
      options.reduced(body.counters);
    if (options.ports.room) {
      body.counters.ports = options.ports.room->counters(options.ports.node);
      body.counters.channel_wait_us += channel_wait_us();
    }
    if (options.notes)
      body.counters.notes = options.notes->all();
    body.host = options.host;
    body.failed = failed;
    port.send(std::move(body));
  }

  std::uint64_t idle_us() const {
    return static_cast<std::uint64_t>((now_of(*self) - idle_since).count() / 1000);
  }

  /// Returns the time that the trainer has waited for parcels since the worker had a batch to
  /// compute. The time before is a part of `wait_us`.
  std::uint64_t channel_wait_us() const {
    const auto waited =
      computing > 0 ? options.ports.room->waited() - waited_before : time_point{0};
    return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(waited).count());
  }

  void fail(failure why) {
    failed = std::move(why);
    send_report();
  }

  // -- a step: pull, compute, push --

  void advance() {
    if (failed)
      return;
    while (!first_pull) {
      const auto step = steps->next_pull();
      if (!step)
        break;
      if (begins_alone && lacks_frozen(options.job, *held))
        first_pull = step->number; // Pulls ahead need not bring the frozen tables too.
      prepare({}, *step);
    }
    while (const auto step = steps->next_compute())
      compute(*step);
  }

  step_header header(const training_step& step) const {
    return {
      {options.self.index}, options.self.incarnation, step.generation, step.batch, step.clock};
  }

  struct done_step {
    training_step step;
    gradient_outcome outcome;
  };

  /// Sends a request once the rows that the next step needs are known.
  void prepare(std::optional<done_step> done, const std::optional<training_step>& next) {
    if (!is_sparse || !next)
      return ask(std::move(done), next, {});
    self->send(gradients, keys_task{next->number, next->batch});
    prepared.emplace(next->number, open_question{std::move(done), *next});
  }

  void named(keys_outcome& what) {
    auto found = prepared.extract(what.number);
    if (!found)
      return;
    if (what.failed)
      return fail(*what.failed);
    auto& [done, next] = found.mapped();
    ask(std::move(done), next, std::move(what.rows));
  }

  /// Sends one request: the push of a step, the pull for another step, or both.
  void ask(std::optional<done_step> done, const std::optional<training_step>& next,
           std::vector<row_keys> rows) {
    request what;
    std::optional<training_step> pushed;
    std::uint64_t samples = 0;
    if (done) {
      auto& [step, outcome] = *done;
      pushed = step;
      samples = outcome.samples;
      what.push = push_request{header(step),
                               own_tables,
                               outcome.base_version,
                               outcome.norm,
                               std::move(outcome.pieces),
                               std::move(outcome.rows)};
      what.push->on_device = std::move(outcome.on_device);
      counters.bytes_sent += payload_bytes(*what.push);
      ++counters.pushes_sent;
    }
    const auto known = held;
    if (next)
      what.pull = pull_request{header(*next), false, known->ranges, rows, options.delta_pulls};
    requests.send<reply>(
      self, store.values,
      [this, pushed, samples, next, known, rows = std::move(rows),
       asked_at = now_of(*self)](const reply& answer) {
        counters.request_times.add(time_class(now_of(*self) - asked_at));
        if (pushed)
          acknowledged(*pushed, samples);
        if (next)
          arrived(*next, known, rows, *answer.pulled);
        advance();
      },
      [this, pushed, next](const caf::error& error) {
        const auto why = from_caf(error);
        if (next) {
          steps->pull_failed(next->number); // The next advance() tries again.
          end_first_pull(*next);
        }
        if (pushed)
          not_applied(*pushed, why);
        else if (reaction_to(why.code) == reaction::stop)
          fail(why);
      },
      std::move(what));
  }

  void end_first_pull(const training_step& step) {
    if (first_pull == step.number)
      first_pull.reset();
  }

  /// Handles pulled values. `known`: the values that the pull request named.
  void arrived(const training_step& step, const cached_ptr& known,
               const std::vector<row_keys>& rows, const pull_reply& answer) {
    end_first_pull(step);
    if (!steps->pulled(step.number))
      return;
    counters.bytes_received += payload_bytes(answer);
    // Done here, as the trainer's thread may still be busy with an earlier step.
    auto whole = hold(options.job, *known, answer, pool);
    if (!whole)
      return fail(whole.error());
    if (options.delta_pulls)
      held = *whole;
    else if (has_frozen)
      held = frozen_cache(options.job, **whole);
    std::vector<float_ptr> all = (*whole)->tables;
    for (const auto& x : answer.rows) // Not copied, as no code writes to them.
      all[x.where.table.value] = x.values;
    value_identity identity;
    if (options.keep_on_device && answer.unchanged.empty())
      for (const auto& x : answer.pieces)
        identity.add(x.values);
    pulled.insert_or_assign(step.number,
                            arrival{std::move(all), rows, answer.version, std::move(identity)});
  }

  void compute(const training_step& step) {
    auto found = pulled.find(step.number);
    if (computing++ == 0) {
      counters.wait_us += idle_us();
      if (options.ports.room)
        waited_before = options.ports.room->waited();
    }
    self->send(gradients,
               gradient_task{step.number, step.batch, std::move(found->second.parameters),
                             std::move(found->second.rows), found->second.version,
                             std::move(found->second.identity), step.generation, step.clock});
    pulled.erase(pulled.begin(), std::next(found)); // Older entries belong to dropped steps.
  }

  void computed(gradient_outcome& what) {
    computed_steps.push_back(std::move(what));
    if (!options.slowness)
      finish_step();
    else if (computed_steps.size() == 1)
      self->delayed_send(self, options.slowness(), step_atom_v);
  }

  void finish_step() {
    if (options.ports.room && computing == 1)
      counters.channel_wait_us += channel_wait_us();
    --computing;
    idle_since = now_of(*self);
    auto done = std::move(computed_steps.front());
    computed_steps.pop_front();
    if (!computed_steps.empty())
      self->delayed_send(self, options.slowness(), step_atom_v);
    const auto step = steps->computed(done.number);
    if (!done.failed) {
      ++counters.batches_computed;
      counters.samples_computed += done.samples;
    }
    if (!step)
      return advance(); // The gradient is of no use any more.
    if (done.failed)
      return fail(*done.failed);
    counters.loss_sum += std::isfinite(done.loss) ? done.loss : 0.0;
    counters.loss_count += std::isfinite(done.loss) ? 1 : 0;
    if (!done.finite) // The batch counts as done and changes no values.
      ++counters.pushes_refused;
    if (diverging.after(done.finite))
      return fail({errc::job_failed, divergence::text()});
    prepare(done_step{*step, std::move(done)}, steps->next_pull_with(*step));
    advance();
  }

  void acknowledged(const training_step& step, std::uint64_t samples) {
    if (!steps->acknowledged(step))
      return;
    ++counters.pushes_acknowledged;
    counters.samples += samples;
    if (options.works)
      options.works();
    lost_in_row = 0;
    if (steps->take_finished())
      send_report();
  }

  void not_applied(const training_step& step, const failure& why) {
    if (!steps->not_applied(step))
      return;
    const bool was_lost = why.code == errc::device_failed;
    if (was_lost && ++lost_in_row == lost_max)
      fail({why.code, std::to_string(lost_max)
                        + " gradients in a row cannot be had from their device: " + why.text});
    else if (!was_lost && (reaction_to(why.code) == reaction::stop || why.code == errc::non_finite))
      fail(why); // The worker's own check lets no such gradient pass: a grave fault.
    else
      advance();
  }

  struct arrival {
    std::vector<float_ptr> parameters;
    std::vector<row_keys> rows;
    std::uint64_t version = 0;
    value_identity identity; ///< The dense tables' memory, if the reducer shared it.
  };

  /// A request that waits for the keys of the rows to pull.
  struct open_question {
    std::optional<done_step> done;
    training_step next;
  };

  pointer self = nullptr;
  worker_options options;
  store_client store;
  member_port port;
  gradient_actor gradients;
  listener_sink channels;           ///< Null: its trainer has no ports.
  std::vector<table_id> own_tables; ///< That it pulls and pushes.
  cached_ptr nothing_held;
  cached_ptr held;        ///< The last pull's values: frozen tables, and with delta pulls all.
  bool is_sparse = false; ///< Whether any table is.
  bool has_frozen = false;
  /// Whether other pulls wait for the one that brings frozen tables. Only asp pulls ahead. In bsp
  /// that pull may wait for a batch of this worker, whose values it pulls meanwhile.
  bool begins_alone = false;
  std::optional<std::uint64_t> first_pull; ///< Number of the step of that pull, while it is open.
  buffer_pool pool;

  std::optional<step_planner> steps;
  open_requests requests{step_timeout};
  std::map<std::uint64_t, arrival> pulled;         ///< By number of the step to compute.
  std::map<std::uint64_t, open_question> prepared; ///< By number of the step to pull for.
  std::deque<gradient_outcome> computed_steps;     ///< More than one only if steps are slowed.
  std::size_t computing = 0;                       ///< Gradients being computed.
  time_point idle_since{0}; ///< End of the last gradient; before the first, the start.
  std::chrono::microseconds waited_before{0}; ///< For parcels, when it began to compute.
  divergence diverging;
  int lost_in_row = 0;

  config_id view_config;
  worker_counters counters;
  std::optional<failure> failed;

  static inline const char* name = "worker";
};

static_assert(!std::is_constructible_v<worker_shell, caf::event_based_actor*>);

worker_shell::handle::behavior_type run_worker(worker_shell::pointer self, worker_options options,
                                               trainer_factory make, store_client store,
                                               coordinator_connector connect) {
  self->state.init(self, std::move(options), std::move(make), std::move(store), std::move(connect));
  auto& state = self->state;
  return {
    [&state](const desired_state& what) { state.reconcile(what); },
    [&state](tick_atom) { state.tick(); },
    [&state](step_atom) { state.finish_step(); },
    [&state](gradient_outcome& what) { state.computed(what); },
    [&state](keys_outcome& what) { state.named(what); },
    [&state](const failure& why) { state.fail(why); },
  };
}

} // namespace

member_handle spawn_worker(caf::actor_system& system, worker_options options, trainer_factory make,
                           store_client store, coordinator_connector connect) {
  return system.spawn(run_worker, std::move(options), std::move(make), std::move(store),
                      std::move(connect));
}

} // namespace troupe
