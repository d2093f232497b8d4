// Formats --help in every program of Troupe: groups of options one below the other, and lines that
// fit a terminal. Declares --version.
#pragma once

namespace CLI {
class App;
}

namespace troupe {

/// Formats the help of `app`, and of the commands and groups that are added to it later.
void format_help(CLI::App& app);

/// Declares --version, which prints "NAME (Troupe 0.1.0)" with the name of `app`.
void declare_version(CLI::App& app);

} // namespace troupe
