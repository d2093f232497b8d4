// Leaves the signals that stop a program to the launcher, in the processes that it starts.
#pragma once

#include <signal.h>

#include <array>

namespace troupe {

/// The signals by which a user, a terminal or a service manager stops a program.
constexpr std::array stop_signals{SIGINT, SIGTERM, SIGHUP};

/// Returns whether this thread blocks all stop signals, as in a stubborn child (spawn.hpp).
bool blocks_stop_signals();

/// From now on stop signals have no effect on this process. They are handled and not ignored,
/// because programs that it starts would inherit that. A signal that is ignored already, as by
/// nohup, stays so. Then unblocks the stop signals.
void survive_stop_signals();

} // namespace troupe
