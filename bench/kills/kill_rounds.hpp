// Kills processes while requests flow both ways, and records the effects on the survivor.
#pragma once

#include "bench/child.hpp"
#include "bench/kills/kill_ends.hpp"
#include "bench/kills/process_state.hpp"
#include "bench/store/transport_kinds.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::bench {

/// client: the side that connects.
enum class killed_side { server, client };
const char* name_of(killed_side side);

struct kill_plan {
  std::size_t rounds = 0;
  std::uint64_t seed = 0;
  std::filesystem::path certificates;
};

/// The figures of all rounds with one kind of link and one side that is killed.
struct kill_figures {
  std::string kind;
  killed_side side = killed_side::server;
  std::size_t rounds = 0;
  endings links, requests;              ///< From the end without actors; from the end with actors.
  std::vector<double> link_us, last_us; ///< Kill to loss of link told; to last failure.
  process_state before, after;          ///< Before the first round and after the last.
  std::vector<std::string> problems;
};

/// Kills one side and then the other, `plan.rounds` times each. The survivor is this process, whose
/// ends outlive all rounds of the kind. One more round of each side is not counted: it fills pools
/// and caches.
std::vector<kill_figures> kill_rounds(const link_kind& kind, const kill_plan& plan);

/// Plays the part of a child of kill_rounds until it is killed.
[[noreturn]] void play_killed_part(const json& part);

} // namespace troupe::bench
