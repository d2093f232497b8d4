// A whole cluster in one thread and virtual time around a real coordinator: servers host real
// replicas, of which each applies batches to a sum; workers are models of a few lines. Messages are
// lost, repeated and overtaken, processes die. Everything is a function of the seed.
#pragma once

#include "actors/cluster/coordinator.hpp"
#include "actors/store/replica.hpp"

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
  std::uint32_t replicas = 1;
  std::uint32_t added = 0; ///< Servers that come after a second.
  std::uint32_t workers = 3;
  std::uint32_t backup_workers = 0;
  std::uint32_t slow_workers = 0; ///< Judged, 20 times as hastily as others.
  std::uint64_t batches_per_pass = 100;
  std::uint64_t passes = 2;
  std::uint32_t lease_batches = 8;
  std::uint64_t checkpoint_clocks = 0;
  double loss = 0.05; ///< Of a report, orders, or an acknowledgement.
  double repetition = 0.05;
  int delay_ms_max = 40;     ///< Messages overtake each other.
  double kill_rate = 2.0;    ///< Deaths a second, of any process, while kills_until lasts.
  double long_absence = 0.1; ///< Of a server: it comes back when others have its chains.
  milliseconds kills_until{4000};
  bool resume_after = false; ///< At the end of the kills everything dies at once, and is resumed.
};

/// What really happened, so that a test can see that it tested something.
struct tally {
  std::uint64_t worker_kills = 0, server_kills = 0, coordinator_kills = 0, stalls = 0;
  std::uint64_t restores = 0, rotten = 0, rollbacks_to_zero = 0, commits = 0, repeats = 0,
                resumes = 0;
  std::uint64_t rejoined = 0, failovers = 0, moves = 0, copies = 0;
  std::uint64_t backups = 0, evictions = 0, shared = 0;

  void add(const tally& other);
};

struct violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void require(bool holds, const std::string& what) {
  if (!holds)
    throw violation(what);
}

/// What a replica keeps of its values: which batches, and a sum that each may enter once.
struct content {
  batch_set marks;
  std::uint64_t sum = 0;

  void apply(batch_id batch) {
    require(!marks.contains(batch), "batch " + std::to_string(batch.value) + " was applied twice");
    marks.insert(batch);
    sum += fingerprint_of(batch);
  }
  static std::uint64_t fingerprint_of(batch_id batch) {
    return (batch.value + 1) * 0x9e3779b97f4a7c15ull;
  }
};

/// The state of one replica at some time.
struct replica_image {
  content values;
  std::vector<shard_partition> partitions;
};

/// What a server does for one chain.
struct model_replica {
  struct open_request {
    member_id worker;
    batch_id batch;
    bool is_push = false;
    std::uint64_t clock = 0;
  };
  chain_record record;
  server_orders orders;
  generation_id generation, job_generation;
  std::optional<time_point> loaded_at;
  std::optional<replica> decider;
  content values;
  std::map<request_token, open_request> requests;
  std::uint64_t next_token = 1, cut = 0;
  checkpoint_part part;
  std::uint64_t checkpoint_failed = 0, unreadable = 0;
  std::optional<std::pair<time_point, replica_image>> writing;
  std::uint64_t writing_number = 0;

  chain_status status() const;
  chain_report describe(chain_id chain) const;
};

struct model_server {
  member_id id;
  std::uint64_t sequence = 0;
  std::pair<std::uint64_t, std::uint64_t> last_orders{0, 0};
  std::map<chain_id, model_replica> replicas;
  time_point report_at{0};
  std::vector<chain_status> told; ///< In the last report.

  std::vector<chain_status> statuses() const;
  report describe(std::uint64_t job, time_point now);
};

struct model_worker {
  struct flight {
    std::uint64_t clock = 0;
    std::set<chain_id> acknowledged;
    time_point retry{0};
  };
  struct pull {
    batch_id batch;
    std::uint64_t clock = 0;
    std::set<chain_id> answered;
    time_point retry{0};
  };
  member_id id;
  int step_ms = 10;
  std::uint64_t sequence = 0, clock = 0;
  std::pair<std::uint64_t, std::uint64_t> last_orders{0, 0};
  generation_id generation;
  view seen;
  bool admitted = false, stalled_once = false, unbound_once = false;
  std::uint64_t computed = 0;
  time_point waited{0};
  std::map<std::uint64_t, std::pair<lease, std::set<std::uint64_t>>> leases; ///< With what is done.
  std::map<std::uint64_t, flight> flights;
  std::optional<pull> pulling;
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
  /// The whole state in one piece.
  struct copy {
    epoch_id epoch;
    std::uint64_t index = 0;
    std::uint64_t clock_max = 0;
    replica_image image;
  };
  struct peer_letter {
    member_id to;
    chain_id chain;
    member_id from;
    std::variant<entry_message, committed_message, joined_message, copy_request, copy_part, copy>
      what;
    peer_letter(member_id to_, chain_id chain_, member_id from_, decltype(peer_message::what) x)
        : to(to_), chain(chain_), from(from_) {
      std::visit([this](auto& y) { what = std::move(y); }, x);
    }
    peer_letter(member_id to_, chain_id chain_, member_id from_, copy x)
        : to(to_), chain(chain_), from(from_), what(std::move(x)) {}
  };
  using mail = std::variant<report, orders, peer_letter>;
  struct letter {
    time_point at;
    std::uint64_t order;
    mail what;
  };
  struct snapshot {
    std::map<chain_id, replica_image> parts;
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

  void post(mail what);
  void deliver();
  void deliver(const report& what);
  void deliver(const orders& what);
  void deliver(const peer_letter& what);
  void answer_storage();
  void answer_search(const storage_answer& call, coordinator_effects& effects);
  void answer_commit(const storage_answer& call, coordinator_effects& effects);
  void respawn();
  void carry_out(coordinator_effects& effects);
  void persist(const storage::coordinator_state& state);
  void check_begin(const chain_record& before) const;
  void watch(const orders& what);
  void watch(const server_orders& what);
  bool may_share() const { return options_.slow_workers + options_.backup_workers > 0; }
  void start_coordinator(bool resume);
  void start_server(std::uint32_t index);
  void start_worker(std::uint32_t index);
  void misfortune();
  void everything_dies();
  void kill_worker(std::uint32_t index);
  void kill_server(std::uint32_t index);
  void mourn(const member_id& who);

  // -- servers --
  using hosted = std::pair<const chain_id, model_replica>;
  void obey(model_server& server, const orders& what);
  void obey(model_server& server, hosted& at, const chain_record& record,
            const server_orders& what);
  void obey_checkpoint(model_server& server, hosted& at);
  void begin_generation(model_server& server, hosted& at, const chain_config& newest);
  void end_loading(model_server& server, hosted& at);
  void begin(model_server& server, hosted& at, const replica_image& image);
  void act(model_server& server);
  template <class Event>
  void decide(model_server& server, hosted& at, Event event);
  void run(model_server& server, hosted& at, step_effect& effect, replica_effects& more);
  void run(model_server& server, hosted& at, acknowledge_effect& effect, replica_effects& more);
  void run(model_server& server, hosted& at, refuse_effect& effect, replica_effects& more);
  void run(model_server& server, hosted& at, answer_effect& effect, replica_effects& more);
  void run(model_server& server, hosted& at, cut_effect& effect, replica_effects& more);
  void run(model_server& server, hosted& at, peer_effect& effect, replica_effects& more);
  void run(model_server& server, hosted& at, request_copy_effect& effect, replica_effects& more);
  void run(model_server&, hosted&, write_effect&, replica_effects&) {}
  void run(model_server&, hosted&, take_back_effect&, replica_effects&) {}
  void take(model_server& server, hosted& at, const peer_letter& what);
  bool is_rotten(std::uint64_t checkpoint);
  void send_copy(model_server& server, hosted& at, const member_id& to, copy what);
  void check_clocks(const hosted& at) const;
  void check_replicas() const;

  // -- workers --
  void obey(model_worker& worker, const orders& what);
  void act(model_worker& worker);
  void act_observer();
  void send_pushes(model_worker& worker);
  void send_pulls(model_worker& worker);
  void request(model_worker& worker, chain_id chain, bool is_push, batch_id batch,
               std::uint64_t clock);
  model_worker* find_worker(const member_id& who);
  bool serves(const member_id& who) const;
  std::uint64_t clocks_of(const batch_set& marks) const;
  void check_staleness(std::uint64_t reader_clock) const;
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
  /// With what generations of chains began, and in which of the job.
  std::map<std::pair<chain_id, generation_id>, std::pair<generation_id, batch_set>> begun_;
  tally tally_;
  std::vector<std::string> log_;
};

} // namespace troupe::model
