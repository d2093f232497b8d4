// A word of a process to its launcher. It takes the place of an exit status, because user code can
// end a process with any status.
#pragma once

#include "actors/protocol/process_name.hpp"

#include <cstdint>
#include <string>

namespace troupe {

enum class word_kind : std::uint8_t {
  works,     ///< It has done work, see restart_rules.hpp.
  dismissed, ///< The coordinator told it to end, so it ends.
  deposed,   ///< It led, and leads no more, for the reason in the text. It ends.
  hopeless,  ///< It ends, and starting it again would not help. The text is the reason.
};
constexpr auto word_kind_max = word_kind::hopeless;

struct process_word {
  process_name from;
  word_kind kind = word_kind::works;
  std::string text{};

  bool operator==(const process_word&) const = default;
};

} // namespace troupe
