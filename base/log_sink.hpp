// Declares `log_sink`, a function that receives the lines of a log. This header compiles faster
// than base/log.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace troupe {

/// How much a line matters. A fatal line is the reason for which a process ends.
enum class log_level : std::uint8_t { trace, debug, info, warn, error, fatal };

/// Takes a line for a log. Where it is a member of options, it may be null.
using log_sink = std::function<void(log_level, const std::string&)>;

} // namespace troupe
