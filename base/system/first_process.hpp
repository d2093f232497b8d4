// Runs a program in a container whose process 1 it is.
#pragma once

namespace troupe {

/// Starts this program again, with the same arguments, and plays process 1 for it: sends it the
/// signals that arrive, and collects processes that end without a parent. Ends with the exit status
/// of the program, or with 128 + n if signal n ended it.
///
/// Process 1 may wait for any child, and the system ends no process 1 by a signal without a
/// handler. A program that starts children of its own has neither property.
[[noreturn]] void play_process_1(int argument_count, char** arguments);

} // namespace troupe
