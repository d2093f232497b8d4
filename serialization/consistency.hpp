// Defines the consistency of a table, and for each mode what follows from it. Code asks for the
// property that it needs, not for the mode.
#pragma once

#include "base/enumerators.hpp"
#include "base/error.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

constexpr std::uint32_t staleness_clocks_max = 1'000'000;

/// How far workers may drift apart on one table. Numbers are wire format.
enum class consistency_mode : std::uint8_t { bsp = 0, ssp = 1, asp = 2, hogwild = 3 };

/// The properties of a mode.
struct mode_traits {
  consistency_mode mode;
  std::string_view name;
  /// The name is followed by ":S", the value of consistency::staleness_clocks. Else that is 0.
  bool has_slack = false;
  /// An update is a whole clock: the mean of the gradients of all its slots. A pull waits for the
  /// clock before its own. Servers roll back together, to the end of a clock.
  bool clock_updates = false;
  /// A pull waits until no worker is more than consistency::staleness_clocks behind. Only the head
  /// of a chain knows that, so no other replica answers pulls.
  bool bounded_lead = false;
  /// Servers may take steps with gradients of older values than their newest, at a lower rate.
  bool stale_steps = false;
  /// All workers write in place to the memory of their process. Nothing is sent, put in order or
  /// recognised as a duplicate.
  bool one_memory = false;

  /// Returns whether a pull may wait for other workers, so that none may be sent ahead.
  constexpr bool pulls_wait() const { return clock_updates || bounded_lead; }
};

/// One row for each mode, by its number.
inline constexpr std::array mode_rows{
  mode_traits{.mode = consistency_mode::bsp, .name = "bsp", .clock_updates = true},
  mode_traits{.mode = consistency_mode::ssp,
              .name = "ssp",
              .has_slack = true,
              .bounded_lead = true,
              .stale_steps = true},
  mode_traits{.mode = consistency_mode::asp, .name = "asp", .stale_steps = true},
  mode_traits{.mode = consistency_mode::hogwild, .name = "hogwild", .one_memory = true},
};
static_assert(has_row_for_each<mode_rows, &mode_traits::mode>());
inline constexpr consistency_mode consistency_mode_max = mode_rows.back().mode;

/// The row of numbers that name no mode, which validate() refuses.
inline constexpr mode_traits unknown_mode{.mode = {}, .name = "unknown"};

struct consistency {
  consistency_mode mode = consistency_mode::asp;
  /// Clocks that a worker may run ahead of the slowest worker. 0 is lock step.
  std::uint32_t staleness_clocks = 0;

  constexpr const mode_traits& traits() const {
    const auto row = static_cast<std::size_t>(mode);
    return row < mode_rows.size() ? mode_rows[row] : unknown_mode;
  }
  bool operator==(const consistency&) const = default;
};

/// Returns "bsp", "ssp:3", "asp", "hogwild".
std::string to_string(const consistency& x);
result<consistency> parse_consistency(const std::string& text);
/// Returns "bsp, ssp:S, asp or hogwild". `note` follows each ":S". `has_servers`: without the modes
/// of one memory.
std::string mode_choices(std::string_view note = {}, bool has_servers = false);

} // namespace troupe
