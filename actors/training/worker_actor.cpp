#include "actors/training/worker_actor.hpp"

#include "actors/clock.hpp"
#include "actors/open_requests.hpp"
#include "actors/store/server_actor.hpp" // peak_rss_bytes
#include "actors/training/sampler.hpp"
#include "actors/training/work_list.hpp"
#include "kernels/flush_denormals.hpp"
#include "kernels/vector_ops.hpp"
#include "serialization/buffer.hpp"

#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"

#include <cmath>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>

namespace troupe {

namespace {

// A step waits for other workers and for servers being replaced; only a cluster that is stuck for
// good passes this.
constexpr std::chrono::minutes step_timeout{10};
// Gradients that are not finite, in a row, after which the model is taken to have diverged.
constexpr int non_finite_max = 20;

struct worker_shell {
  using handle = member::extend<caf::reacts_to<tick_atom>, caf::reacts_to<step_atom>>;
  using pointer = handle::stateful_pointer<worker_shell>;

  worker_shell() = default;

  void init(pointer owner, worker_options how, trainer_factory make, router_handle to,
            const coordinator_connector& connect) {
    self = owner;
    options = std::move(how);
    values_of = std::move(to);
    coordinator = connect(caf::actor_cast<member>(self));
    pool = std::make_shared<buffer_pool>();
    batches.emplace(options.job);
    for (std::uint32_t i = 0; i < options.job.tables.size(); ++i) {
      const auto& table = options.job.tables[i];
      all_tables.push_back({i});
      all_ranges.push_back({{i}, 0, table.size()});
      parameters.push_back(pool->floats(table.size()));
      parameter_spans.emplace_back(parameters.back().get(), table.size());
      any_bsp = any_bsp || table.sync.mode == consistency_mode::bsp;
      any_clip = any_clip || table.optimizer.clip_norm > 0.0f;
    }
    try {
      model = make();
      if (!model)
        failed = "the graph's trainer factory made no trainer";
    } catch (const std::exception& problem) {
      failed = problem.what();
    }
    self->delayed_send(self, report_interval, tick_atom_v);
    send_report();
  }

  // -- control path --

  void obey(const orders& what) {
    const auto* mine = std::get_if<worker_orders>(&what.body);
    if (mine == nullptr || std::pair{what.term, what.sequence} <= last_orders)
      return;
    last_orders = {what.term, what.sequence};
    if (what.stop) {
      self->quit();
      return;
    }
    if (mine->view.epoch > view_epoch) {
      view_epoch = mine->view.epoch;
      self->send(values_of, view_atom_v, mine->view);
    }
    if (mine->view.generation > generation) { // History was rolled back; start anew.
      generation = mine->view.generation;
      work.clear();
      ++era;
      phase = doing::nothing;
      clock = 0;
    }
    // Each time: the orders between two admissions may have been lost.
    if (mine->admitted)
      clock = std::max(clock, mine->start_clock);
    admitted = mine->admitted;
    work.set_leases(mine->leases);
    if (phase == doing::pulling && any_bsp && work.next() && *work.next() < current) {
      ++era_of_pull; // Someone waits for that one; the pull that is open can wait itself.
      phase = doing::nothing;
    }
    advance();
  }

  void tick() {
    requests.expire(now_of(*self));
    if (now_of(*self) - last_report >= report_interval)
      send_report();
    self->delayed_send(self, report_interval, tick_atom_v);
    advance(); // After an error that only time cures.
  }

  void send_report() {
    worker_report body;
    body.generation = generation;
    body.leases = work.progress();
    body.clock = clock;
    body.counters = counters;
    body.failed = failed;
    self->send(
      coordinator,
      report{options.self, fingerprint(options.job), ++sequence, peak_rss_bytes(), std::move(body)},
      caf::actor_cast<member>(self));
    last_report = now_of(*self);
  }

  void fail(std::string why) {
    failed = std::move(why);
    send_report();
  }

  // -- a step: pull, compute, push --

  void advance() {
    if (phase != doing::nothing || !admitted || !failed.empty())
      return;
    const auto limit = any_bsp ? options.job.workers : options.pushes_in_flight_max;
    const auto next = work.next();
    if (!next || work.in_flight_count() >= limit)
      return;
    current = *next;
    phase = doing::pulling;
    pull_started = now_of(*self);
    requests.send<values>(
      self, values_of,
      [this, mine = era, attempt = era_of_pull](const values& answer) {
        if (mine == era && attempt == era_of_pull)
          compute(answer);
      },
      [this, mine = era, attempt = era_of_pull](const caf::error& why) {
        if (mine != era || attempt != era_of_pull)
          return;
        phase = doing::nothing; // The next tick or orders try again.
        if (const auto reason = from_caf(why); reaction_to(reason.code) == reaction::stop)
          fail(reason.text);
      },
      pull_atom_v, query{header(), false, all_ranges});
  }

  step_header header() const {
    return {{options.self.index}, options.self.incarnation, generation, current, clock};
  }

  void compute(const values& answer) {
    counters.wait_us += static_cast<std::uint64_t>((now_of(*self) - pull_started).count() / 1000);
    base_version = answer.version;
    for (const auto& x : answer.pieces) {
      std::memcpy(parameters[x.where.table.value].get() + x.where.first, x.values.get(),
                  x.where.count * sizeof(float));
      counters.bytes_received += x.where.count * sizeof(float);
    }
    std::vector<std::shared_ptr<float>> gradients;
    std::vector<std::span<float>> gradient_spans;
    for (const auto& table : options.job.tables) {
      gradients.push_back(pool->floats(table.size()));
      gradient_spans.emplace_back(gradients.back().get(), table.size());
    }
    double loss = 0;
    try {
      const auto work_now = batches->at(current);
      current_samples = work_now.samples.size();
      const kernels::flush_denormals guard;
      loss = model->gradient(work_now, parameter_spans, gradient_spans);
    } catch (const std::exception& problem) {
      phase = doing::nothing;
      fail(problem.what());
      return;
    }
    double squares = 0; // Not finite where an element is not.
    finite = true;
    pending = {};
    for (std::uint32_t i = 0; i < gradients.size(); ++i) {
      const std::span<const float> gradient = gradient_spans[i];
      if (any_clip)
        squares += kernels::squared_norm(gradient);
      else
        finite = finite && kernels::first_non_finite(gradient) == gradient.size();
      pending.push_back({{{i}, 0, gradient_spans[i].size()}, std::move(gradients[i])});
    }
    gradient_norm = static_cast<float>(std::sqrt(squares));
    finite = finite && std::isfinite(gradient_norm);
    counters.loss_sum += std::isfinite(loss) ? loss : 0.0;
    counters.loss_count += std::isfinite(loss) ? 1 : 0;
    phase = doing::computing;
    if (options.slowness.count() > 0)
      self->delayed_send(self, options.slowness, step_atom_v);
    else
      push();
  }

  void push() {
    if (phase != doing::computing)
      return; // The history of that gradient is gone.
    if (!finite) {
      pending.clear(); // Mark the batch as done and change nothing.
      gradient_norm = 0;
      ++counters.pushes_refused;
      if (++non_finite_in_row >= non_finite_max) {
        fail("training diverged: " + std::to_string(non_finite_max)
             + " gradients in a row are not finite; a smaller --lr may help");
        return;
      }
    } else {
      non_finite_in_row = 0;
    }
    push(current, std::exchange(pending, {}), current_samples);
    ++clock;
    phase = doing::nothing;
    advance();
  }

  void push(batch_id batch, std::vector<piece> pieces, std::uint64_t samples) {
    update what{header(), all_tables, base_version, gradient_norm, std::move(pieces)};
    for (const auto& x : what.pieces)
      counters.bytes_sent += x.where.count * sizeof(float);
    work.in_flight(batch);
    ++counters.pushes_sent;
    requests.send<receipt>(
      self, values_of,
      [this, mine = era, batch, samples](const receipt&) {
        if (mine == era)
          acknowledged(batch, samples);
      },
      [this, mine = era, batch](const caf::error& why) {
        if (mine == era)
          not_applied(batch, from_caf(why));
      },
      push_atom_v, std::move(what));
  }

  void acknowledged(batch_id batch, std::uint64_t samples) {
    ++counters.pushes_acknowledged;
    counters.samples += samples;
    work.done(batch);
    if (work.take_finished())
      send_report();
    advance();
  }

  void not_applied(batch_id batch, const failure& why) {
    work.reopen(batch);
    if (reaction_to(why.code) == reaction::stop || why.code == errc::non_finite)
      fail(why.text); // Its own check lets no such gradient pass, so something is badly wrong.
    else
      advance();
  }

  enum class doing { nothing, pulling, computing };

  pointer self = nullptr;
  worker_options options;
  router_handle values_of;
  coordinator_handle coordinator;
  std::unique_ptr<trainer> model;
  std::optional<sampler> batches;
  std::shared_ptr<buffer_pool> pool;
  std::vector<table_id> all_tables;
  std::vector<range> all_ranges;
  std::vector<std::shared_ptr<float>> parameters;
  std::vector<std::span<const float>> parameter_spans;
  bool any_bsp = false;
  bool any_clip = false;

  work_list work;
  open_requests requests{step_timeout};
  doing phase = doing::nothing;
  batch_id current;
  std::uint64_t current_samples = 0;
  std::vector<piece> pending; ///< Gradients of `current`, from compute() to push().
  bool finite = true;         ///< All of them.
  float gradient_norm = 0;    ///< 0 where no table clips by it: another pass over the gradient.
  std::uint64_t base_version = 0;
  std::uint64_t clock = 0;
  int non_finite_in_row = 0;
  time_point pull_started{0};

  // Replies of an older era, or to an abandoned pull, are ignored.
  std::uint64_t era = 0;
  std::uint64_t era_of_pull = 0;

  std::pair<std::uint64_t, std::uint64_t> last_orders{0, 0}; // term, sequence
  epoch_id view_epoch;
  generation_id generation;
  bool admitted = false;
  worker_counters counters;
  std::string failed;
  std::uint64_t sequence = 0;
  time_point last_report{0};

  static inline const char* name = "worker";
};

static_assert(!std::is_constructible_v<worker_shell, caf::event_based_actor*>);

worker_shell::handle::behavior_type run_worker(worker_shell::pointer self, worker_options options,
                                               trainer_factory make, router_handle values,
                                               coordinator_connector connect) {
  self->state.init(self, std::move(options), std::move(make), std::move(values),
                   std::move(connect));
  auto& state = self->state;
  return {
    [&state](const orders& what) { state.obey(what); },
    [&state](tick_atom) { state.tick(); },
    [&state](step_atom) { state.push(); },
  };
}

} // namespace

member spawn_worker(caf::actor_system& system, worker_options options, trainer_factory make,
                    router_handle values, coordinator_connector connect) {
  if (!options.own_thread)
    return system.spawn(run_worker, std::move(options), std::move(make), std::move(values),
                        std::move(connect));
  return system.spawn<caf::detached>(run_worker, std::move(options), std::move(make),
                                     std::move(values), std::move(connect));
}

} // namespace troupe
