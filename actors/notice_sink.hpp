// How a part of a process tells a person what it waits for: see cluster/notice_pipe.
#pragma once

#include <functional>
#include <string>

namespace troupe {

/// Gets what the process waits for in one respect, its topic (a word), when that changes; an empty
/// text where it waits no longer. Thread-safe; does not block. May be empty.
using notice_sink = std::function<void(const std::string& topic, const std::string& text)>;

} // namespace troupe
