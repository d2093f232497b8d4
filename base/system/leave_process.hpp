// Writes lines, and ends a process, while some of its threads do not return.
#pragma once

#include <string>

namespace troupe {

/// Writes a line and its newline to standard error, unless that needs waiting: no process may read
/// it. Takes no lock of the stream, which another thread may hold.
void write_without_waiting(const std::string& line);

/// Writes `line` in this way, unless it is empty, and ends the process without destructors.
/// Buffered output is written first, if that needs no waiting.
[[noreturn]] void leave_process(int status, const std::string& line = {});

} // namespace troupe
