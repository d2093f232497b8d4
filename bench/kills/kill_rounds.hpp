// Processes that are killed while requests flow both ways, and what the one that stays makes of it.
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

/// Of all rounds with one kind of link and one side that is killed.
struct kill_figures {
  std::string kind;
  killed_side side = killed_side::server;
  std::size_t rounds = 0;
  endings links, requests;              ///< Of the end without actors, and of the one with.
  std::vector<double> link_us, last_us; ///< From the kill: link told; last open request failed.
  process_state before, after;          ///< Before the first round, and after the last.
  std::vector<std::string> problems;
};

/// The survivor is this process, with ends that outlive all rounds of the kind. One round of each
/// side is not counted: it fills pools and caches.
std::vector<kill_figures> kill_rounds(const link_kind& kind, const kill_plan& plan);

/// What a child of kill_rounds does, until it is killed.
[[noreturn]] void play_killed_part(const json& part);

} // namespace troupe::bench
