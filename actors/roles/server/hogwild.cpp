#include "actors/roles/server/hogwild.hpp"

#include "actors/detached.hpp"
#include "actors/member_port.hpp"
#include "actors/tables/block_store.hpp"
#include "actors/tables/initial_values.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/vector_ops.hpp"

#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace troupe {

struct shared_tables::table {
  std::vector<float> values;
  std::vector<float> state; ///< Parallel arrays of values.size() floats, one after the other.
  std::atomic<std::uint64_t> steps{0};
};

shared_tables::shared_tables(const job_spec& job, const given_values& given)
    : job_(job), pool_(std::make_shared<buffer_pool>()) {
  for (std::uint32_t i = 0; i < job_.tables.size(); ++i) {
    const auto& spec = job_.tables[i];
    auto made = std::make_unique<table>();
    made->values.resize(spec.size());
    made->state.resize(spec.size() * kernels::state_per_weight(spec.optimizer.kind));
    if (const auto found = given.find(i); found != given.end())
      made->values = *found->second;
    else
      fill_initial_values(job_.seed, spec, 0, made->values);
    tables_.push_back(std::move(made));
  }
}

shared_tables::~shared_tables() = default;

result<void> shared_tables::check(const range& where) const {
  if (where.table.value >= tables_.size())
    return {errc::shape_mismatch, "the job has no table " + std::to_string(where.table.value)};
  const auto& spec = job_.tables[where.table.value];
  // A piece must be a whole table: the optimiser state of a part would not be contiguous.
  if (where.first != 0 || where.count != spec.size())
    return {errc::shape_mismatch, "hogwild takes whole tables; '" + spec.name + "' has "
                                    + std::to_string(spec.size()) + " elements"};
  return {};
}

result<void> shared_tables::check(const std::vector<range>& ranges) const {
  for (const auto& where : ranges)
    if (auto valid = check(where); !valid)
      return valid;
  return {};
}

result<void> shared_tables::check(const push_request& what) const {
  for (const auto& x : what.pieces) {
    if (auto valid = check(x.where); !valid)
      return valid;
    if (job_.tables[x.where.table.value].frozen)
      return {errc::shape_mismatch, "a gradient of table '" + job_.tables[x.where.table.value].name
                                      + "', which is frozen"};
    if (kernels::first_non_finite({x.values.get(), x.where.count}) < x.where.count)
      return {errc::non_finite, "worker " + std::to_string(what.step.worker.value)
                                  + " pushed a gradient that is not finite: table '"
                                  + job_.tables[x.where.table.value].name + "'"};
  }
  return {};
}

result<void> shared_tables::apply(const push_request& what) {
  if (auto valid = check(what); !valid) {
    const std::lock_guard lock{mutex_};
    ++counters_.refused;
    return valid;
  }
  for (const auto& x : what.pieces) {
    auto& target = *tables_[x.where.table.value];
    const auto& spec = job_.tables[x.where.table.value].optimizer;
    auto options = options_of(spec, ++target.steps);
    options.gradient_scale = spec.clip_scale(what.gradient_norm);
    (void)kernels::optimizer_step_shared(target.values, target.state,
                                         {x.values.get(), x.where.count}, options);
  }
  const std::lock_guard lock{mutex_};
  applied_.insert(what.step.batch);
  ++counters_.applied;
  return {};
}

result<std::vector<piece>> shared_tables::read(const std::vector<range>& ranges) {
  if (auto valid = check(ranges); !valid)
    return valid.error();
  std::vector<piece> copies;
  for (const auto& where : ranges) {
    auto& source = tables_[where.table.value]->values;
    auto copy = pool_->floats(where.count);
    for (std::size_t i = 0; i < where.count; ++i)
      copy.get()[i] = std::atomic_ref{source[i]}.load(std::memory_order_relaxed);
    copies.push_back({{where.table, where.first, where.count}, std::move(copy)}); // No stamp.
  }
  const std::lock_guard lock{mutex_};
  ++counters_.pulls;
  return copies;
}

batch_set shared_tables::batches_applied() const {
  const std::lock_guard lock{mutex_};
  return applied_;
}

server_counters shared_tables::counters() const {
  const std::lock_guard lock{mutex_};
  return counters_;
}

namespace {

struct hogwild_state {
  hogwild_state() = default;

  std::shared_ptr<shared_tables> tables;

  static inline const char* name = "hogwild";
};

static_assert(!std::is_constructible_v<hogwild_state, caf::event_based_actor*>);

kv::behavior_type run_hogwild(kv::stateful_pointer<hogwild_state> self,
                              std::shared_ptr<shared_tables> tables) {
  auto& state = self->state;
  state.tables = std::move(tables);
  return {
    [&state](const request& what) -> caf::result<reply> {
      reply answer;
      if (what.pull) // Checked before the push is applied.
        if (auto valid = state.tables->check(what.pull->ranges); !valid)
          return to_caf(valid.error());
      if (what.push) {
        if (auto done = state.tables->apply(*what.push); !done)
          return to_caf(done.error());
        answer.pushed.emplace();
      }
      if (what.pull) {
        auto pieces = state.tables->read(what.pull->ranges);
        if (!pieces)
          return to_caf(pieces.error());
        answer.pulled = pull_reply{0, *std::move(pieces)};
      }
      return answer;
    },
  };
}

struct hogwild_server_state {
  using handle = member_handle::extend<caf::reacts_to<tick_atom>>;
  using pointer = handle::stateful_pointer<hogwild_server_state>;

  hogwild_server_state() = default;

  void reconcile(const desired_state& what) {
    const auto* mine = port.take<desired_server>(what);
    if (mine == nullptr)
      return;
    if (what.stop) {
      self->quit(reason_to_end(what));
      return;
    }
    const bool changed = chains != mine->chains || workers != mine->workers;
    chains = mine->chains;
    workers = mine->workers;
    if (changed)
      send_report();
  }

  void send_report() {
    server_status body;
    body.counters = tables->counters();
    for (const auto& [chain, record] : chains) {
      const auto& newest = record.proposed ? *record.proposed : record.active;
      replica_status mine;
      mine.shard = chain;
      mine.status = {newest.generation, record.active.config, newest.config, true, false};
      mine.applied = tables->batches_applied();
      mine.clocks = workers;
      for (auto& x : mine.clocks)
        x.known = true;
      mine.version = body.counters.applied;
      body.chains.push_back(std::move(mine));
    }
    port.send(std::move(body));
  }

  pointer self = nullptr;
  std::shared_ptr<shared_tables> tables;
  member_port port;
  std::vector<desired_chain> chains; ///< One chain; its generations share one memory.
  std::vector<clock_entry> workers;

  static inline const char* name = "hogwild_server";
};

static_assert(!std::is_constructible_v<hogwild_server_state, caf::event_based_actor*>);

hogwild_server_state::handle::behavior_type
run_hogwild_server(hogwild_server_state::pointer self, member_id id,
                   std::shared_ptr<shared_tables> tables, coordinator_connector connect) {
  auto& state = self->state;
  state.self = self;
  state.tables = std::move(tables);
  state.port.open(self, id, fingerprint(state.tables->job()), connect,
                  std::string{own_process_address});
  self->send(self, tick_atom_v);
  return {
    [&state](const desired_state& what) { state.reconcile(what); },
    [self, &state](tick_atom) {
      state.send_report();
      self->delayed_send(self, report_interval, tick_atom_v);
    },
  };
}

} // namespace

kv spawn_hogwild(caf::actor_system& system, std::shared_ptr<shared_tables> tables) {
  return spawn_detached(system, run_hogwild, std::move(tables));
}

member_handle spawn_hogwild_server(caf::actor_system& system, member_id self,
                                   std::shared_ptr<shared_tables> tables,
                                   coordinator_connector connect) {
  return system.spawn(run_hogwild_server, self, std::move(tables), std::move(connect));
}

} // namespace troupe
