// Runs the command line of the program `troupe`.
#pragma once

namespace troupe {

/// Runs the command that the arguments name. Returns the exit status: 0 done; 1 failed; 2 a bad
/// command line. An error is one line on standard error.
int run_commands(int argc, char** argv);

} // namespace troupe
