// Tells the user why a part of a process waits; see graph/processes/notice_pipe.hpp.
#pragma once

#include <functional>
#include <string>

namespace troupe {

/// Takes the reason for a wait when it changes, under a topic (a word); an empty text ends it.
/// Thread-safe; does not block. May be empty.
using notice_sink = std::function<void(const std::string& topic, const std::string& text)>;

} // namespace troupe
