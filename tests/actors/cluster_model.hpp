// A whole cluster in one thread and virtual time around a real coordinator: servers and workers are
// models of a few lines, messages are lost, repeated and overtaken, processes die. Everything is a
// function of the seed.
#pragma once

#include "actors/cluster/coordinator.hpp"
#include "actors/store/clock_table.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace troupe::model {

using std::chrono::milliseconds;

struct world_options {
  consistency sync;
  std::uint32_t servers = 2;
  std::uint32_t workers = 3;
  std::uint64_t batches_per_pass = 100;
  std::uint64_t passes = 2;
  std::uint32_t lease_batches = 8;
  std::uint64_t checkpoint_clocks = 0;
  double loss = 0.05; ///< Of a report, orders, or an acknowledgement.
  double repetition = 0.05;
  int delay_ms_max = 40;  ///< Messages overtake each other.
  double kill_rate = 2.0; ///< Deaths a second, of any process, while kills_until lasts.
  milliseconds kills_until{4000};
  bool resume_after = false; ///< At the end of the kills everything dies at once, and is resumed.
};

/// What really happened, so that a test can see that it tested something.
struct tally {
  std::uint64_t worker_kills = 0, server_kills = 0, coordinator_kills = 0, stalls = 0;
  std::uint64_t restores = 0, rotten = 0, rollbacks_to_zero = 0, commits = 0, repeats = 0,
                resumes = 0;
  std::uint64_t rejoined = 0;
};

struct violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void require(bool holds, const std::string& what) {
  if (!holds)
    throw violation(what);
}

/// What a model server keeps of its values: which batches, and a sum that each may enter once.
struct content {
  batch_set marks;
  std::uint64_t sum = 0;

  void apply(batch_id batch) {
    marks.insert(batch);
    sum += fingerprint_of(batch);
  }
  static std::uint64_t fingerprint_of(batch_id batch) {
    return (batch.value + 1) * 0x9e3779b97f4a7c15ull;
  }
};

class world;

struct model_server {
  member_id id;
  std::uint64_t assignment = 0, wanted = 0, sequence = 0, asked = 0, cut_clock = 0;
  std::pair<std::uint64_t, std::uint64_t> last_orders{0, 0};
  generation_id generation;
  std::optional<content> values;
  std::set<std::uint64_t> slots; ///< bsp: pushed, not applied.
  clock_table clocks;
  std::vector<clock_entry> workers;
  std::uint64_t pull_clock_max = 0;
  std::uint64_t cutting = 0; ///< bsp: the cut that waits for cut_clock.
  checkpoint_part part;
  std::uint64_t checkpoint_failed = 0, unreadable = 0;
  std::optional<std::pair<time_point, server_orders>> loading;
  std::optional<std::pair<time_point, content>> writing;
  std::uint64_t writing_number = 0;
  time_point report_at{0};

  report describe(std::uint64_t job);
};

struct model_worker {
  struct flight {
    std::uint64_t clock = 0;
    std::set<std::uint32_t> acknowledged;
    time_point retry{0};
  };
  member_id id;
  int step_ms = 10;
  std::uint64_t sequence = 0, clock = 0;
  std::pair<std::uint64_t, std::uint64_t> last_orders{0, 0};
  generation_id generation;
  view seen;
  bool admitted = false, stalled_once = false;
  std::map<std::uint64_t, std::pair<lease, std::set<std::uint64_t>>> leases; ///< With what is done.
  std::map<std::uint64_t, flight> flights;
  std::optional<std::pair<batch_id, time_point>> computing;
  time_point report_at{0}, stalled_until{0};

  report describe(std::uint64_t job);
  std::optional<batch_id> next_open() const;
  bool has_open(batch_id batch) const;
};

class world {
public:
  world(world_options options, std::uint64_t seed);

  /// Until the job has stopped. Throws violation. Returns the virtual time it took.
  milliseconds run(milliseconds limit);
  const tally& counted() const { return tally_; }
  const std::vector<std::string>& log() const { return log_; }
  /// The present state in words, for a failed seed.
  std::string describe() const;

private:
  struct letter {
    time_point at;
    std::uint64_t order;
    std::variant<report, orders> what;
  };
  struct snapshot {
    std::map<std::uint32_t, content> parts;
    bool committed = false;
    std::uint64_t clock = 0;
  };
  struct storage_answer {
    time_point at;
    std::uint64_t term;
    bool find = false; ///< Else a commit.
    std::vector<std::uint64_t> unreadable;
    std::uint64_t number = 0;
    bool good = true;
  };

  // -- chance --
  bool chance(double p) { return std::uniform_real_distribution<>(0, 1)(random_) < p; }
  int pick(int low, int high) { return std::uniform_int_distribution<>(low, high)(random_); }
  incarnation_id next_incarnation() { return {++incarnations_}; }

  void post(std::variant<report, orders> what);
  void deliver();
  void carry_out(coordinator_effects& effects);
  void watch(const orders& what);
  void start_coordinator(bool resume);
  void start_server(std::uint32_t index);
  void start_worker(std::uint32_t index);
  void misfortune();
  void everything_dies();
  void kill_worker(std::uint32_t index);
  void kill_server(std::uint32_t index);
  void mourn(const member_id& who);

  void obey(model_server& server, const orders& what);
  void obey(model_worker& worker, const orders& what);
  void act(model_server& server);
  void act(model_worker& worker);
  void act_observer();
  void cut(model_server& server, std::uint64_t number);
  bool is_rotten(std::uint64_t checkpoint);
  void apply_slots(model_server& server);
  bool push(model_server& server, const model_worker& worker, batch_id batch, std::uint64_t clock);
  bool pull(model_server& server, const model_worker& worker, batch_id batch);
  model_server* reach(const model_worker& worker, std::uint32_t index);
  std::uint64_t clocks_of(const batch_set& marks) const;
  void check_staleness(const model_worker& reader) const;
  void check_finished();

  world_options options_;
  job_spec job_;
  std::uint64_t fingerprint_ = 0;
  std::mt19937_64 random_;
  time_point now_{0};
  std::uint64_t incarnations_ = 100, letters_ = 0, term_ = 0;
  std::vector<letter> mail_;
  std::vector<storage_answer> calls_;
  std::unique_ptr<coordinator> coordinator_;
  std::optional<time_point> coordinator_back_at_;
  bool resume_next_ = false, resumed_ = false;
  storage::coordinator_state persisted_;
  std::map<std::uint64_t, snapshot> checkpoints_;
  std::set<std::uint64_t> rotten_; ///< No server can read them.
  std::map<std::uint32_t, model_server> servers_;
  std::map<std::uint32_t, model_worker> workers_;
  std::map<member_id, time_point> respawns_;
  member_id observer_;
  std::uint64_t observer_sequence_ = 0;
  std::vector<death> deaths_;
  job_phase phase_seen_ = job_phase::gathering;
  bool told_to_stop_ = false;
  time_point observer_report_at_{0};
  std::map<std::uint64_t, std::pair<lease, member_id>> leases_seen_;
  std::map<member_id, std::vector<lease>> leases_now_;
  std::map<generation_id, std::map<std::uint32_t, batch_set>> generations_;
  tally tally_;
  std::vector<std::string> log_;
};

} // namespace troupe::model
