// Draws a run's faults from a seed: their kinds, order, victims and durations.
#pragma once

#include "actors/protocol/process_name.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

namespace troupe::chaos {

/// Kinds of faults. A stop and a cut last longer than the limit they are named after, and shorter
/// than the next limit.
enum class fault_kind : std::uint8_t {
  kill_server,
  kill_worker,
  kill_actor, ///< An actor of the program.
  kill_coordinator,
  stop_short,   ///< Shorter than the lease of a head.
  stop_lease,   ///< Longer than the lease of a head.
  stop_silence, ///< Long enough that others take a server's place.
  stop_death,   ///< Long enough that a process counts as dead.
  cut_both,     ///< A server's host neither sends nor receives.
  cut_in,       ///< A server's host does not receive.
  cut_out,      ///< A server's host does not send.
  full_disk,    ///< The checkpoints' disk is full.
  flip,         ///< A bit of the newest checkpoint flips; with one replica a server is then killed.
};
constexpr std::size_t fault_kinds = 13;

/// Returns "kill server" or "stop longer than a lease (0.8 s)", for people.
std::string_view name_of(fault_kind kind);

/// Returns true if the fault cuts a server's line.
bool is_cut(fault_kind kind);

struct plan_options {
  std::uint64_t seed = 1;
  bool kill = false, stop = false, partition = false, full_disk = false, flip = false;
  bool long_faults = true; ///< Include faults beyond the limit of death; they take long.
  std::uint32_t servers = 1;
  std::uint32_t workers = 1;
  std::uint32_t actors = 0; ///< Actors of the program.
};

/// Returns the kinds that the options ask for.
std::vector<fault_kind> kinds_of(const plan_options& options);

/// Returns the mean duration of one fault of each kind, with pauses and recoveries.
std::chrono::milliseconds round_time(const plan_options& options);

struct planned_fault {
  fault_kind kind = fault_kind::kill_server;
  process_name whom;                  ///< The victim; for `flip`, the server killed next.
  std::chrono::milliseconds pause{0}; ///< From the end of the fault before to this one.
  std::chrono::milliseconds lasts{0}; ///< 0: over at once.
  std::uint64_t dice = 0;             ///< Chooses what is not known before: the file, the bit.

  bool operator==(const planned_fault&) const = default;
};

/// An endless list of faults, the same for the same options. Each kind comes once in every round.
class fault_plan {
public:
  explicit fault_plan(const plan_options& options);

  /// Returns the next fault; nullopt: the options ask for no fault.
  std::optional<planned_fault> next();

private:
  std::chrono::milliseconds between(int least_ms, int most_ms);
  std::chrono::milliseconds duration_of(fault_kind kind);
  process_name victim_of(fault_kind kind);
  process_name any(role of);

  plan_options options_;
  std::mt19937_64 dice_;
  std::vector<fault_kind> round_; ///< Rest of the round; the last one comes next.
};

} // namespace troupe::chaos
