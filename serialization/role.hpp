// Defines the roles of processes, and the properties of each. Code asks for the property that it
// needs; it names a role where it makes or handles a member of just that role.
#pragma once

#include "base/enumerators.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

constexpr std::uint32_t servers_max = 4096; ///< Including servers that are added later.
constexpr std::uint32_t workers_max = 65536;
constexpr std::uint32_t observers_max = 1000; ///< One for each host that joined, and commands.
constexpr std::uint32_t actors_max = 4096;    ///< Actors of a program, over all nodes of actors.

/// The role of a process in a cluster. Numbers are wire format.
enum class role : std::uint8_t { coordinator = 0, server = 1, worker = 2, observer = 3, actor = 4 };

/// Whether members of a role listen for others, in a job with servers. One that listens reports its
/// address, and never changes it.
enum class listening : std::uint8_t {
  never,
  when_joined, ///< If a channel of the graph leads to the member.
  always,
};

/// Roles, each the bit of its number.
using role_set = std::uint32_t;

constexpr role_set role_set_of(std::initializer_list<role> roles) {
  role_set all = 0;
  for (const role each : roles)
    all |= role_set{1} << static_cast<unsigned>(each);
  return all;
}

/// The properties of a role.
struct role_traits {
  troupe::role role;
  std::string_view name;    ///< In options, events and certificates: "observer".
  std::string_view process; ///< Of its processes, for people: "launcher".
  bool is_started = false;  ///< Launchers start its processes, also again after a death.
  listening listens = listening::never;
  role_set admits = 0; ///< Roles whose processes may connect to one of its processes.
  /// One of its processes leads the job at a time. Process 0 is named without its number.
  bool leads_job = false;
  /// A member has a slot, (role, index), and its death matters. Else it only follows the job.
  bool has_slots = false;
  /// A member has values of the job, so it may not be replaced because it is silent.
  bool holds_values = false;
  /// Members that report to the coordinator at a time; with slots, their indices are below it.
  std::uint32_t members_max = 0;

  /// Returns whether members of the other role may connect to members of this one that listen.
  constexpr bool is_reached_by(troupe::role other) const {
    return listens != listening::never && (admits & role_set_of({other})) != 0;
  }
};

/// One row for each role, by its number.
inline constexpr std::array role_rows{
  role_traits{.role = role::coordinator,
              .name = "coordinator",
              .process = "coordinator",
              .is_started = true,
              .listens = listening::always,
              .admits = role_set_of({role::server, role::worker, role::observer, role::actor}),
              .leads_job = true,
              .has_slots = true},
  role_traits{.role = role::server,
              .name = "server",
              .process = "server",
              .is_started = true,
              .listens = listening::always,
              .admits = role_set_of({role::server, role::worker, role::observer, role::actor}),
              .has_slots = true,
              .holds_values = true,
              .members_max = servers_max},
  role_traits{.role = role::worker,
              .name = "worker",
              .process = "worker",
              .is_started = true,
              .listens = listening::when_joined,
              // Senders of channels, ranks of an all-reduce, and the collector of a gossip job.
              .admits = role_set_of({role::server, role::worker, role::actor}),
              .has_slots = true,
              .members_max = workers_max},
  role_traits{.role = role::observer,
              .name = "observer",
              .process = "launcher",
              .members_max = observers_max},
  role_traits{.role = role::actor,
              .name = "actor",
              .process = "actor",
              .is_started = true,
              .listens = listening::when_joined,
              .admits = role_set_of({role::worker, role::actor}), // Senders of channels.
              .has_slots = true,
              .members_max = actors_max},
};
static_assert(has_row_for_each<role_rows, &role_traits::role>());
inline constexpr role role_max = role_rows.back().role;

/// Requires: a role up to role_max, as all roles that are read from outside.
constexpr const role_traits& traits_of(role which) {
  return role_rows[static_cast<std::size_t>(which)];
}

/// Returns whether a process of one role may connect to one of the other.
constexpr bool may_have_link(role one, role other) {
  const role_set from_one = traits_of(other).admits & role_set_of({one});
  const role_set from_other = traits_of(one).admits & role_set_of({other});
  return from_one != 0 || from_other != 0;
}

/// Returns the roles whose processes launchers start.
std::vector<role> started_roles();
/// Returns the role with this number if launchers start its processes.
std::optional<role> started_role(std::uint32_t number);
/// Returns a list such as "server or worker"; "no role" if it is empty.
std::string names_of(const std::vector<role>& roles);

} // namespace troupe
