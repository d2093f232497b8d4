// Simulates a cluster of replicated chains in one thread and virtual time. The deciders of replicas
// and coordinator are the real ones, the clients are models. Network, clocks and processes fail as
// a seed says.
#pragma once

#include "actors/protocol/chain.hpp"
#include "actors/protocol/coordinator/placement.hpp"
#include "cli/sim/world.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::sim {

/// Counts the events of a history, so that a run can show that it tested something.
struct chain_tally {
  std::uint64_t events = 0, pushes = 0, reads = 0, repeats = 0;
  std::uint64_t kills = 0, pauses = 0, cuts = 0, coordinator_kills = 0;
  std::uint64_t configurations = 0, copies = 0, drains = 0, lost_chains = 0;
  std::uint64_t additions = 0, rollbacks = 0, moves = 0, deaf = 0, lasting_cuts = 0;
  std::uint64_t lost_messages = 0, doubled_messages = 0;
};

/// A push of a client, as it lies in a log.
struct entry {
  std::uint64_t batch = 0;
  bool operator==(const entry&) const = default;
};

/// One history: faults for a time, then quiet, in which everything has to come to an end.
class chain_world : public world {
public:
  using tally = chain_tally;
  static constexpr std::string_view name = "chain";
  /// All histories are of one kind.
  static constexpr std::array<std::string_view, 1> kinds{"histories"};
  static const std::vector<minimum<tally>> minima;

  /// `no_faults`: without faults.
  explicit chain_world(std::uint64_t seed, bool no_faults = false, trace_function trace = {});
  ~chain_world();

  /// Runs the history. Throws violation.
  void run();
  const tally& counted() const { return tally_; }
  static std::size_t kind() { return 0; }

private:
  struct server;
  struct client;

  // Messages.
  struct append_in_flight {
    append_message what;
    entry payload;
  };
  struct copy_request {
    config_id config;
  };
  struct copy {
    config_id config;
    std::vector<entry> applied;
  };
  struct push_in_flight {
    entry payload;
    generation_id generation;
  };
  struct push_answer {
    generation_id generation;
    std::uint64_t batch = 0;
    std::uint64_t version = 0; ///< 0: ask another server.
  };
  struct read_in_flight {
    std::uint64_t number = 0;
    std::uint64_t version_min = 0;
    bool strict = false;
  };
  struct read_answer {
    generation_id generation;
    std::uint64_t number = 0;
    std::uint64_t version = 0;
    bool refused = false;
  };
  struct status_in_flight {
    std::vector<chain_status> statuses;
    time_point stamp{0};
  };
  struct desired_in_flight {
    std::vector<chain_metadata> records;
    time_point stamp{0}; ///< Stamp of the newest report.
  };
  using message_variant =
    std::variant<append_in_flight, committed_message, joined_message, copy_request, copy,
                 push_in_flight, push_answer, read_in_flight, read_answer, status_in_flight,
                 desired_in_flight>;

  void post(const member_id& from, const member_id& to, message_variant what);
  void deliver(const member_id& from, const member_id& to, const message_variant& what);

  time_point local_time(double rate) const;
  void start_server(std::uint32_t index);
  void kill_server(std::uint32_t index);
  bool may_lose(const server& victim) const;
  std::vector<chain_status> statuses(const server& of) const;
  void tick(server& by);
  void send_report(server& by);
  void carry_out(server& by, chain_effects& effects);
  void run(server& by, const append_effect& x);
  void run(server& by, const chain_message_effect& x);
  void run(server& by, const commit_effect& x);
  void run(server& by, const truncate_effect& x);
  void run(server& by, const release_effect& x);
  void run(server& by, const request_copy_effect& x);
  void check_members(const server& tail, std::uint64_t index, const entry& what) const;
  void receive(server& by, const member_id& from, const message_variant& what);
  void keep(server& by, std::uint64_t index, const entry& what);
  void replace_values(server& by, const std::vector<entry>& values);
  void rebuild(server& by, generation_id generation, std::vector<entry> values, bool complete);
  void push(server& by, std::uint32_t pusher, const push_in_flight& what, chain_effects& effects);
  void read(server& by, const member_id& from, const read_in_flight& what);
  void reconcile(server& by, const desired_in_flight& what, chain_effects& effects);

  void start_coordinator();
  void coordinator_hear(const member_id& from, const status_in_flight& what);
  void coordinator_told_of_death(const member_id& who);
  void coordinator_decides(bool changed = false);
  void roll_back(std::uint64_t checkpoint);
  void expect(const member_id& who);
  void coordinator_tick();

  void client_tick(client& who);
  /// Takes over a new generation. Returns true if the answer is of the client's own generation.
  bool is_present(client& who, generation_id generation) const;
  void client_receive(client& who, const member_id& from, const message_variant& what);

  void write_checkpoint();
  void inject_faults();
  void heal();
  bool is_balanced() const;
  bool all_is_well() const;
  void check_end();

  std::uint64_t incarnations_ = 0;

  double kill_rate_, pause_rate_, cut_rate_, coordinator_kill_rate_, drain_rate_, rollback_rate_,
    deaf_rate_;
  bool deaths_are_seen_;               ///< A launcher sees deaths and tells the coordinator.
  std::uint64_t pushes_in_flight_max_; ///< For each client.

  std::vector<std::unique_ptr<server>> servers_;
  std::vector<std::unique_ptr<client>> clients_;
  std::unique_ptr<placement> coordinator_;
  std::vector<chain_metadata> persisted_;
  std::set<server_id> draining_;
  std::vector<std::vector<entry>> checkpoints_{{}}; ///< By number; 0: initial values.
  std::map<member_id, time_point> heard_;           ///< When a member was last heard and trusted.
  std::map<server_id, time_point> expected_until_;
  std::set<member_id> dead_; ///< Members that a launcher saw die.

  // -- the oracle --
  generation_id generation_;
  generation_id told_;              ///< Newest generation in an answer to any client.
  std::vector<entry> history_;      ///< The final entries, in order.
  std::set<std::uint64_t> batches_; ///< The batches in history_.
  std::uint64_t acknowledged_ = 0;  ///< Largest version told by a push or a strict read.
  tally tally_;
};

} // namespace troupe::sim
