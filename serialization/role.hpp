// Defines the roles of processes, and the properties of each. Code asks for the property that it
// needs; it names a role where it makes or handles a member of just that role.
#pragma once

#include "base/enumerators.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

constexpr std::uint32_t servers_max = 4096; ///< Including servers that are added later.
constexpr std::uint32_t workers_max = 65536;
constexpr std::uint32_t observers_max = 1000; ///< One for each host that joined, and commands.

/// The role of a process in a cluster. Numbers are wire format.
enum class role : std::uint8_t { coordinator = 0, server = 1, worker = 2, observer = 3 };

/// The properties of a role.
struct role_traits {
  troupe::role role;
  std::string_view name;    ///< In options, events and certificates: "observer".
  std::string_view process; ///< Of its processes, for people: "launcher".
  bool is_started = false;  ///< Launchers start its processes, also again after a death.
  bool listens = false;     ///< Others connect to its processes. Else these only connect.
  /// One of its processes leads the job at a time. Process 0 is named without its number.
  bool leads_job = false;
  /// A member has a slot, (role, index), and its death matters. Else it only follows the job.
  bool has_slots = false;
  /// A member has values of the job, so it may not be replaced because it is silent.
  bool holds_values = false;
  /// Members that report to the coordinator at a time; with slots, their indices are below it.
  std::uint32_t members_max = 0;
};

/// One row for each role, by its number.
inline constexpr std::array role_rows{
  role_traits{.role = role::coordinator,
              .name = "coordinator",
              .process = "coordinator",
              .is_started = true,
              .listens = true,
              .leads_job = true,
              .has_slots = true},
  role_traits{.role = role::server,
              .name = "server",
              .process = "server",
              .is_started = true,
              .listens = true,
              .has_slots = true,
              .holds_values = true,
              .members_max = servers_max},
  role_traits{.role = role::worker,
              .name = "worker",
              .process = "worker",
              .is_started = true,
              .has_slots = true,
              .members_max = workers_max},
  role_traits{.role = role::observer,
              .name = "observer",
              .process = "launcher",
              .members_max = observers_max},
};
static_assert(has_row_for_each<role_rows, &role_traits::role>());
inline constexpr role role_max = role_rows.back().role;

/// Requires: a role up to role_max, as all roles that are read from outside.
constexpr const role_traits& traits_of(role which) {
  return role_rows[static_cast<std::size_t>(which)];
}

/// Returns the role with this number if launchers start its processes.
std::optional<role> started_role(std::uint32_t number);
/// Returns a list such as "server or worker"; "no role" if it is empty.
std::string names_of(const std::vector<role>& roles);

} // namespace troupe
