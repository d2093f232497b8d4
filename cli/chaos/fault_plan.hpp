// Which faults a run has, in which order, to whom and for how long: drawn from a seed.
#pragma once

#include "actors/process_name.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

namespace troupe::chaos {

/// What can be done to a cluster. A stop and a cut last longer than the limit they are named after,
/// and shorter than the next one.
enum class fault_kind : std::uint8_t {
  kill_server,
  kill_worker,
  kill_coordinator,
  stop_short,   ///< Shorter than the lease of a head.
  stop_lease,   ///< Longer than that.
  stop_silence, ///< So long that others take a server's place.
  stop_death,   ///< So long that a process counts as dead.
  cut_both,     ///< A server's host hears nobody, nobody hears it.
  cut_in,       ///< It hears nobody.
  cut_out,      ///< Nobody hears it.
  full_disk,    ///< Of the checkpoints.
  flip,         ///< Of a bit in the newest checkpoint; with one replica a kill of a server follows.
};
constexpr std::size_t fault_kinds = 12;

/// "kill server", "stop longer than a lease (0.8 s)", for people.
std::string_view name_of(fault_kind kind);

/// Tells whether the fault cuts a server's line.
bool is_cut(fault_kind kind);

struct plan_options {
  std::uint64_t seed = 1;
  bool kill = false, stop = false, partition = false, full_disk = false, flip = false;
  bool long_faults = true; ///< Those beyond the limit of death too; short runs have no time.
  std::uint32_t servers = 1;
  std::uint32_t workers = 1;
};

/// The kinds that the options ask for.
std::vector<fault_kind> kinds_of(const plan_options& options);

/// What one fault of each of them takes on average, with pauses and recoveries.
std::chrono::milliseconds round_time(const plan_options& options);

struct planned_fault {
  fault_kind kind = fault_kind::kill_server;
  process_name whom;                  ///< Of flip: who is killed afterwards, if anyone.
  std::chrono::milliseconds pause{0}; ///< Between the end of the fault before and this one.
  std::chrono::milliseconds lasts{0}; ///< 0: over at once.
  std::uint64_t dice = 0;             ///< For what is not known before: which file, which bit.

  bool operator==(const planned_fault&) const = default;
};

/// An endless list, the same for the same options. Each kind comes once in every round.
class plan {
public:
  explicit plan(const plan_options& options);

  /// nullopt: the options ask for nothing.
  std::optional<planned_fault> next();

private:
  std::chrono::milliseconds between(int least_ms, int most_ms);
  std::chrono::milliseconds duration_of(fault_kind kind);
  process_name victim_of(fault_kind kind);
  process_name any(role of);

  plan_options options_;
  std::mt19937_64 dice_;
  std::vector<fault_kind> round_; ///< What is left of it; the last one comes next.
};

} // namespace troupe::chaos
