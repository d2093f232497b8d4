// Runs whole jobs in one process, with an observer that takes their final parameters.
#pragma once

#include "actors/graph/options/options.hpp"
#include "actors/kv.hpp"
#include "actors/roles/worker/router_actor.hpp"
#include "serialization/job.hpp"

#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <future>
#include <string>
#include <utility>
#include <vector>

namespace troupe::test {

struct run_result {
  std::vector<std::vector<float>> parameters;
  std::optional<failure> failed;
  std::uint64_t batches_done = 0;
};

/// An observer that fetches the parameters of the finished job, then lets the job end.
struct watcher_state {
  watcher_state() = default;
  run_result found;
  std::promise<run_result>* end = nullptr;
  bool asked = false;
  bool told = false;
  observer_status mine;
  coordinator_handle coordinator;
  std::uint64_t sequence = 0;
};
using watcher = member_handle::extend<caf::reacts_to<tick_atom>>;

inline watcher::behavior_type run_watcher(watcher::stateful_pointer<watcher_state> self,
                                          job_spec job, store_client store,
                                          coordinator_connector connect,
                                          std::promise<run_result>* end) {
  auto& state = self->state;
  state.end = end;
  state.coordinator = connect(caf::actor_cast<member_handle>(self));
  self->send(self, tick_atom_v);
  const auto fetch = [=, &state] {
    pull_request everything;
    everything.latest = true;
    for (std::uint32_t i = 0; i < job.tables.size(); ++i) {
      everything.ranges.push_back({{i}, 0, job.tables[i].size()});
      state.found.parameters.emplace_back(job.tables[i].size());
    }
    self->request(store.values, std::chrono::seconds{10}, request{{}, std::move(everything)})
      .then(
        [&state](const reply& answer) {
          for (const auto& x : answer.pulled->pieces)
            std::copy_n(x.values.get(), x.where.count,
                        state.found.parameters[x.where.table.value].begin()
                          + static_cast<std::ptrdiff_t>(x.where.first));
          state.mine.done = true;
        },
        [&state](const caf::error& why) { state.mine.failed = from_caf(why); });
  };
  return {
    [=, &state](const desired_state& what) {
      const auto* news = std::get_if<job_status>(&what.body);
      if (news == nullptr || state.told)
        return;
      if (store.views)
        self->send(store.views, view_atom_v, news->view, what.listeners);
      state.found.batches_done = news->batches_done;
      if (news->phase == job_phase::finished && !std::exchange(state.asked, true))
        fetch();
      if (what.stop) {
        state.told = true;
        state.found.failed = what.failed;
        state.end->set_value(std::move(state.found));
        self->quit();
      }
    },
    [=, &state](tick_atom) {
      self->send(
        state.coordinator,
        status_message{{role::observer, 0, {1}}, fingerprint(job), ++state.sequence, 0, state.mine},
        caf::actor_cast<member_handle>(self));
      self->delayed_send(self, std::chrono::milliseconds{20}, tick_atom_v);
    },
  };
}

inline run_options options_of(const consistency& sync) {
  run_options options;
  options.asked_mode = run_mode::threads;
  options.sync = sync;
  options.workers.count = 2;
  options.servers.count = 2;
  options.batch_samples = 4;
  options.epochs = 5;
  options.partitions = 8;
  options.optimizer.learning_rate = 0.5f;
  return options;
}

} // namespace troupe::test
