// Measures what else a machine does: figures beside a peer are only fair on a quiet one. The
// system's load averages are of no use here, because they still count the case before.
#pragma once

namespace CLI {
class App;
}

namespace troupe::bench {

/// Returns the number of processors that were busy, measured for a quarter of a second. Units:
/// processors; 0 if /proc/stat cannot be read.
double busy_processors();

/// Declares --any-load on `app`.
void declare_any_load(CLI::App& app, bool& any_load);

/// Throws std::runtime_error if more than 0.2 processors are busy, unless `any_load`.
void require_quiet_machine(bool any_load);

} // namespace troupe::bench
