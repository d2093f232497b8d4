#include "actors/roles/coordinator/coordinator_actor.hpp"

#include "base/clock.hpp"
#include "base/system/draw_random.hpp"

#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"

#include "fmt/format.h"

#include <deque>
#include <iterator>
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace troupe {

namespace {

// Longest delay with which the coordinator notices a deadline.
constexpr std::chrono::milliseconds tick_interval{20};
// Longest time from the decision to stop to the end of the actor. A member that missed its last
// desired state asks for it again with its next status.
constexpr std::chrono::milliseconds linger{1500};

struct coordinator_shell {
  using handle = coordinator_service::extend<caf::reacts_to<tick_atom>>;
  using pointer = handle::stateful_pointer<coordinator_shell>;

  coordinator_shell() = default;

  void init(pointer owner, coordinator_setup how, storage::coordinator_state stored,
            checkpointer files) {
    self = owner;
    setup = std::move(how);
    storage = std::move(files);
    scrubbed_at = now_of(*self);
    coordinator_effects effects;
    decide.emplace(setup.job, setup.options, std::move(stored), setup.last_checkpoint,
                   now_of(*self), effects);
    carry_out(effects);
    self->delayed_send(self, tick_interval, tick_atom_v);
  }

  void receive(const status_message& what, const member_handle& from) {
    members[what.from] = from;
    coordinator_effects effects;
    decide->receive(what, now_of(*self), effects);
    carry_out(effects);
  }

  void lost(const member_id& whom) {
    members.erase(whom);
    coordinator_effects effects;
    decide->disconnected(whom, now_of(*self), effects);
    carry_out(effects);
  }

  void tick() {
    coordinator_effects effects;
    decide->tick(now_of(*self), effects);
    carry_out(effects);
    scrub();
    look_for_work();
    if (decide->phase() == job_phase::stopped && !stopped_at)
      stopped_at = now_of(*self);
    if (stopped_at && (everyone_left() || now_of(*self) - *stopped_at > linger))
      self->quit();
    else
      self->delayed_send(self, tick_interval, tick_atom_v);
  }

  /// While the job gathers, it hears of batches that were done before its lead.
  void look_for_work() {
    const auto settled = decide->batches_settled();
    if (!setup.works || decide->phase() == job_phase::gathering)
      return settled_least.reset();
    settled_least = std::min(settled_least.value_or(settled), settled);
    if (settled > *settled_least)
      setup.works();
  }

  void scrub() {
    const auto now = now_of(*self);
    if (!storage || setup.scrub_interval == decltype(setup.scrub_interval){}
        || now - scrubbed_at < setup.scrub_interval)
      return;
    scrubbed_at = time_point::max(); // No other scrub begins meanwhile.
    const auto done = [this] { scrubbed_at = now_of(*self); };
    self->request(storage, storage_timeout, scrub_atom_v)
      .then([done](std::uint64_t) { done(); },
            [this, done](const caf::error& why) {
              done();
              coordinator_effects effects;
              decide->scrub_failed(from_caf(why), effects);
              carry_out(effects);
            });
  }

  /// Returns whether only observers are left, which stay until the coordinator ends.
  bool everyone_left() const {
    return std::all_of(members.begin(), members.end(),
                       [](const auto& entry) { return !traits_of(entry.first.role).has_slots; });
  }

  // Carries out effects in the order of the decisions. An effect may queue more effects.
  void carry_out(coordinator_effects& effects) {
    if (const auto lead = setup.store ? setup.store->check_lead() : result<void>{}; !lead)
      return stop_acting(lead.error());
    std::move(effects.begin(), effects.end(), std::back_inserter(waiting));
    if (std::exchange(carrying_out, true))
      return;
    while (!waiting.empty()) {
      auto effect = std::move(waiting.front());
      waiting.pop_front();
      std::visit([this](auto& x) { run(x); }, effect);
    }
    carrying_out = false;
  }

  /// Drops the waiting effects and ends the actor, because another coordinator leads or may lead.
  void stop_acting(const failure& why) {
    waiting.clear();
    self->quit(to_caf(why));
  }

  void log(log_level level, const std::string& text) const {
    if (setup.log)
      setup.log(level, text);
  }

  void log_new_leases(const member_id& to, const desired_worker& what) {
    auto& newest = newest_lease[to.index];
    for (const auto& lease : what.leases)
      if (lease.id > std::exchange(newest, std::max(newest, lease.id)))
        log(log_level::debug, fmt::format("lease {} for worker {}: first batch {}, count {}",
                                          lease.id, to.index, lease.first.value, lease.count));
  }

  void run(send_effect& effect) {
    if (const auto* worker = std::get_if<desired_worker>(&effect.desired_state.body))
      log_new_leases(effect.desired_state.to, *worker);
    if (auto found = members.find(effect.desired_state.to); found != members.end())
      self->send(found->second, std::move(effect.desired_state));
  }

  void run(find_checkpoint_effect& effect) {
    const auto answer = [this](const storage::checkpoint_search_result& what) {
      coordinator_effects effects;
      decide->checkpoint_found(what, now_of(*self), effects);
      carry_out(effects);
    };
    if (!storage) {
      answer({});
      return;
    }
    self->request(storage, storage_timeout, find_atom_v, setup.job, std::move(effect.unreadable))
      .then(answer, [this](const caf::error& why) {
        coordinator_effects effects;
        decide->search_failed(from_caf(why), now_of(*self), effects);
        carry_out(effects);
      });
  }

  void run(commit_checkpoint_effect& effect) {
    const auto number = effect.manifest.checkpoint;
    log(log_level::debug, fmt::format("commits checkpoint {}", number));
    const auto answer = [this, number](const result<void>& outcome) {
      coordinator_effects effects;
      decide->checkpoint_committed(number, outcome, now_of(*self), effects);
      carry_out(effects);
    };
    self->request(storage, storage_timeout, commit_atom_v, std::move(effect.manifest))
      .then([answer](std::uint64_t) { answer({}); },
            [answer](const caf::error& why) { answer(from_caf(why)); });
  }

  void run(persist_effect& effect) {
    if (!setup.store)
      return;
    // Blocks, but is short and rare (a start, a rollback, a checkpoint). Desired state that depends
    // on it must not leave before it is stored.
    auto saved = setup.store->save(effect.state);
    if (saved)
      return;
    if (saved.error().code == errc::fenced)
      return stop_acting(saved.error());
    std::erase_if(waiting, [](const auto& x) { return std::holds_alternative<send_effect>(x); });
    coordinator_effects effects;
    decide->give_up("cannot store the coordinator's state: " + saved.error().text, now_of(*self),
                    effects);
    carry_out(effects);
  }

  void run(event_effect& effect) { log(log_level::info, text_of(effect.what)); }

  pointer self = nullptr;
  coordinator_setup setup;
  checkpointer storage;
  std::optional<coordinator> decide;
  std::map<member_id, member_handle> members;
  std::map<std::uint32_t, std::uint64_t> newest_lease; ///< Of each worker, for the log.
  std::optional<std::uint64_t> settled_least;          ///< Batches, since the job last gathered.
  std::optional<time_point> stopped_at;
  time_point scrubbed_at{0};
  std::deque<coordinator_effect> waiting;
  bool carrying_out = false;

  static inline const char* name = "coordinator";
};

static_assert(!std::is_constructible_v<coordinator_shell, caf::event_based_actor*>);

coordinator_shell::handle::behavior_type run_coordinator(coordinator_shell::pointer self,
                                                         coordinator_setup setup,
                                                         storage::coordinator_state stored,
                                                         checkpointer files) {
  self->state.init(self, std::move(setup), std::move(stored), std::move(files));
  auto& state = self->state;
  return {
    [&state](const status_message& what, const member_handle& from) { state.receive(what, from); },
    [&state](lost_atom, const member_id& whom) { state.lost(whom); },
    [&state](tick_atom) { state.tick(); },
  };
}

} // namespace

result<coordinator_service> spawn_coordinator(caf::actor_system& system, coordinator_setup setup,
                                              checkpointer storage) {
  storage::coordinator_state stored;
  if (setup.store) {
    auto loaded = setup.store->load();
    if (!loaded)
      return loaded.error();
    stored = *std::move(loaded);
  }
  // Random, so that servers' state in another run's directory does not look like this run's past.
  if (stored.term == 0)
    stored.generation.value = draw_random() >> 16;
  return coordinator_service{
    system.spawn(run_coordinator, std::move(setup), std::move(stored), std::move(storage))};
}

} // namespace troupe
