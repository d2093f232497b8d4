// How --help looks in every program of Troupe: groups of options one below the other, and lines
// that fit a terminal.
#pragma once

namespace CLI {
class App;
}

namespace troupe {

/// Of `app`, and of the commands and groups that are added to it later.
void format_help(CLI::App& app);

} // namespace troupe
