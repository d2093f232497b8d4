// A line for a person from one member of a run, and what processes tell their launcher.
#pragma once

#include "actors/protocol/process_name.hpp"

#include <cstdint>
#include <string>

namespace troupe {

enum class notice_kind : std::uint8_t {
  waits,     ///< It waits, for the reason in the text. Empty: the wait is over.
  works,     ///< It has done work, see restart_rules.hpp.
  dismissed, ///< The coordinator told it to end, so it ends.
  deposed,   ///< It led, and leads no more, for the reason in the text. It ends.
  hopeless,  ///< It ends, and starting it again would not help. The text is the reason.
};
constexpr auto notice_kind_max = notice_kind::hopeless;

struct notice {
  process_name from;
  notice_kind kind = notice_kind::waits;
  std::string topic{}; ///< Of `waits`: a word; a later notice of the same topic replaces it.
  std::string text{};

  bool operator==(const notice&) const = default;
};

} // namespace troupe
