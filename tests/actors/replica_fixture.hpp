// A replica with the simplest values: the list of the steps that were taken on them.
#pragma once

#include "actors/protocol/server/replica.hpp"
#include "tests/actors/shard_fixture.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::test {

/// Marks a gradient as not finite when it is its base version.
constexpr std::uint64_t bad_base = 666;

inline member_id server(std::uint32_t index, std::uint64_t incarnation = 1) {
  return {role::server, index, {incarnation}};
}

/// The state of a replica on its way to a joiner.
struct state_copy {
  config_id config;
  std::uint64_t index = 0;
  std::uint64_t clock_max = 0;
  std::vector<shard_partition> partitions;
  std::vector<std::string> steps;
};
/// A joiner's request for the state.
struct copy_request_of {
  config_id config;
};

struct sent_message {
  member_id from;
  member_id to;
  std::variant<decltype(replica_message::what), copy_request_of, state_copy> what;
};

struct replica_node {
  replica_node(const job_spec& of, member_id who, bool starts_generation,
               replica_options options = {})
      : job(of), self(who),
        decide(job, self, {1}, {1},
               starts_generation ? fresh(job, {0, 1}) : std::vector<shard_partition>{}, options) {}

  template <class Event>
  void event(Event what) {
    replica_effects effects;
    what(effects);
    for (std::size_t i = 0; i < effects.size(); ++i) {
      auto effect = std::move(effects[i]);
      std::visit([&](auto& x) { run(x, effects); }, effect);
    }
  }

  void reconcile(const chain_metadata& record) {
    event([&](auto& effects) { decide.reconcile(record, now, effects); });
  }
  void list(const std::vector<clock_entry>& workers) {
    event([&](auto& effects) { decide.set_workers(workers, now, effects); });
  }
  void tick() {
    event([&](auto& effects) { decide.tick(now, effects); });
  }
  void push(std::uint64_t token, std::shared_ptr<const push_request> what) {
    event([&](auto& effects) { decide.push({token}, std::move(what), now, effects); });
  }
  void pull(std::uint64_t token, const step_header& step, bool latest = true) {
    read(token, pull_request{.step = step, .latest = latest, .ranges = {}});
  }
  /// Pulls from table 0.
  void read(std::uint64_t token, pull_request what) {
    what.ranges = {{{0}, 0, 0}};
    event([&](auto& effects) { decide.pull({token}, what, now, effects); });
  }

  void receive(const sent_message& what) {
    event([&](replica_effects& effects) {
      if (const auto* message = std::get_if<decltype(replica_message::what)>(&what.what))
        std::visit([&](const auto& x) { take(what.from, x, effects); }, *message);
      else if (const auto* wanted = std::get_if<copy_request_of>(&what.what))
        copy_to(what.from, wanted->config);
      else
        install(std::get<state_copy>(what.what), effects);
    });
  }

  template <class Message>
  void take(const member_id& from, const Message& x, replica_effects& effects) {
    if constexpr (requires { decide.receive(from, x, now, effects); })
      decide.receive(from, x, now, effects);
  }

  void copy_to(const member_id& to, config_id config) {
    if (const auto index = decide.copy_for(to, config)) {
      const auto& state = *decide.state();
      sent.push_back(
        {self, to, state_copy{config, *index, state.pull_clock_max(), state.partitions(), steps}});
    }
  }

  void install(const state_copy& x, replica_effects& effects) {
    if (decide.install(x.config, x.index, x.clock_max, x.partitions, now, effects))
      steps = x.steps;
  }

  void run(step_effect& effect, replica_effects& more) {
    std::string step = "to" + text_of(effect.what.tables) + ":";
    bool is_finite = true;
    std::size_t batches = 0;
    for (const auto& push : effect.pushes) {
      step += " " + std::to_string(push->step.batch.value);
      batches += push->steps().size();
      is_finite = is_finite && push->base_version != bad_base;
    }
    CHECK(batches == effect.what.pushes);
    steps.push_back(is_finite ? step : "not " + step);
    if (is_finite)
      decide.applied(now, more);
    else
      decide.discarded({errc::non_finite, "nan"}, now, more);
  }
  void run(replica_send_effect& effect, replica_effects&) {
    sent.push_back({self, effect.to, std::move(effect.what)});
  }
  void run(write_effect& effect, replica_effects&) {
    told.push_back((effect.entry ? "write " : "take back from ") + std::to_string(effect.index));
  }
  void run(request_copy_effect& effect, replica_effects&) {
    sent.push_back({self, effect.from, copy_request_of{effect.config}});
  }
  template <class Effect>
  void run(Effect& effect, replica_effects&) {
    told.push_back(text_of(shard_effect{effect}));
    if (on_told)
      on_told(effect);
  }

  job_spec job;
  member_id self;
  time_point now{0};
  replica decide;
  std::vector<std::string> steps; ///< The values: a list of steps.
  std::deque<sent_message> sent;
  lines told; ///< Effects for the clients.
  std::function<void(const shard_effect&)> on_told;
};

inline std::shared_ptr<const push_request> gradient_of(const job_spec& job, std::uint32_t worker,
                                                       std::uint64_t batch, std::uint64_t clock,
                                                       std::uint64_t base_version = 0) {
  auto what = std::make_shared<push_request>();
  what->step = {{worker}, first_start(worker), {1}, {batch}, clock};
  for (std::uint32_t i = 0; i < job.tables.size(); ++i)
    what->tables.push_back({i});
  what->base_version = base_version;
  return what;
}

inline chain_config config_of(std::uint64_t config, std::vector<member_id> members,
                              std::optional<member_id> joiner = std::nullopt) {
  return {{config}, {1}, std::move(members), joiner};
}

} // namespace troupe::test
