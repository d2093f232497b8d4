// Writes lines, and ends a process, while some of its threads do not return.
#pragma once

#include <chrono>
#include <string>

namespace troupe {

/// Writes a line and its newline to standard error, unless that needs waiting: no process may read
/// it. Takes no lock of the stream, which another thread may hold.
void write_without_waiting(const std::string& line);

/// Writes `line` in this way, unless it is empty, and ends the process without destructors.
/// Buffered output is written first, if that needs no waiting.
[[noreturn]] void leave_process(int status, const std::string& line = {});

/// Handlers of exit() write profiles and the like, so they get a long time.
constexpr std::chrono::seconds exit_handlers_max{30};

/// From now on exit() ends the process after this time, with a line and its status, if handlers
/// that exist already do not return. A handler of a library may wait for a thread that spins.
void limit_exit_handlers(std::chrono::milliseconds most);

} // namespace troupe
