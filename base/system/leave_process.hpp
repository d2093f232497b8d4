// Ends a process while some of its threads do not return.
#pragma once

#include <string>

namespace troupe {

/// Writes `line` and its newline to standard error, unless it is empty, and ends the process
/// without destructors. Buffered output is written first, if that needs no waiting: another thread
/// may hold the stream, or no process may read it.
[[noreturn]] void leave_process(int status, const std::string& line = {});

} // namespace troupe
