// Defines the constants, the names and the states that the parts of the simulated world share.
#pragma once

#include "cli/sim/chain_world.hpp"

namespace troupe::sim {

inline constexpr std::uint32_t server_count = 5;
inline constexpr std::uint32_t client_count = 3;
inline constexpr std::uint32_t replica_count = 3;
/// The first chain is simulated. The other chains apply a configuration at once, and are only a
/// load.
inline constexpr std::uint32_t shard_count = 3;
inline constexpr std::uint32_t chain_coordinator_place = server_count + client_count;
inline constexpr time_point faults_end = 20s;
inline constexpr time_point quiet_end = 30s;
inline constexpr time_point silence_max = 1300ms; ///< 1.3 times the time on which leases are based.
inline constexpr time_point tick_interval = 20ms;
inline constexpr time_point server_status_interval = 100ms;
inline constexpr milliseconds seal_time = 1500ms;
inline constexpr milliseconds apart_time = 4000ms; // Ends within the quiet.
inline constexpr time_point expected_time = 1s;
inline constexpr time_point client_patience = 300ms;
inline constexpr time_point checkpoint_interval = 1s;
inline constexpr std::size_t log_max = 4; ///< Entries; above it a tail waits for its joiner.

inline const member_id coordinator_id{role::coordinator, 0, {1}};

inline member_id client_id(std::uint32_t index) { return member_of(worker_id{index}, {1}); }

/// Returns the place of a member: servers by index, then clients, then the coordinator.
inline std::uint32_t chain_place_of(const member_id& who) {
  return who.role == role::server   ? who.index
         : who.role == role::worker ? server_count + who.index
                                    : chain_coordinator_place;
}

inline std::string chain_member_name(const member_id& who) {
  const char* const kind = who.role == role::server   ? "server "
                           : who.role == role::worker ? "client "
                                                      : "coordinator ";
  return kind + std::to_string(who.index) + "." + std::to_string(who.incarnation.value);
}

inline std::string list_of(const chain_config& config) {
  std::string text = "configuration " + std::to_string(config.config.value) + ":";
  for (const member_id& each : config.members)
    text += " " + std::to_string(each.index) + "." + std::to_string(each.incarnation.value);
  if (config.joiner)
    text += " +" + std::to_string(config.joiner->index) + "."
            + std::to_string(config.joiner->incarnation.value);
  return text;
}

struct chain_world::server {
  server(member_id who, generation_id generation, std::vector<entry> values, bool complete)
      : id(who), decide(who, generation, values.size(), complete), applied(std::move(values)) {
    for (std::size_t i = 0; i < applied.size(); ++i)
      index_of_batch[applied[i].batch] = i + 1;
  }

  member_id id;
  chain decide;
  std::vector<entry> applied;                            ///< The state: entry i + 1 at i.
  std::map<std::uint64_t, std::uint64_t> index_of_batch; ///< Index in `applied` by batch.
  std::map<std::uint64_t, std::uint64_t> pending; ///< Index of entries not final yet, by batch.
  std::map<std::uint64_t, entry> log;
  std::multimap<std::uint64_t, std::uint32_t> waiting; ///< Waiting clients by entry index.
  std::vector<chain_metadata> told{shard_count};       ///< The newest records.
  std::vector<chain_status> reported;
  config_id synced_in; ///< Last configuration in which it was a synced joiner.
  bool alive = true;
  time_point paused_until{0};
  time_point back_at{0};
  time_point deaf_until{0}; ///< Until then it only renews its lease.
  double rate = 1.0;
  time_point report_at{0};
};

struct chain_world::client {
  struct open_read {
    std::uint64_t number = 0;
    std::uint64_t version_min = 0;
    time_point until{0};
    bool strict = false;
    generation_id generation_min;
  };
  std::uint32_t index = 0;
  std::uint32_t head = 0; ///< A guess.
  std::uint64_t next_batch = 0;
  generation_id generation;
  std::set<std::uint64_t> acknowledged;
  std::map<std::uint64_t, time_point> pushes; ///< When the push of a batch is to be sent again.
  std::optional<open_read> read;
  std::uint64_t reads = 0;
  std::uint64_t version = 0; ///< Newest version that it has seen.
};

} // namespace troupe::sim
