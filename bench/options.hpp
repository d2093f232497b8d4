// Declares the options of every benchmark's command line.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace troupe::bench {

struct common_options {
  std::size_t rounds = 5;
  bool full = false; ///< Long enough for steady figures.
  bool json = false;
  std::vector<std::string> only;  ///< Names; empty: all.
  std::vector<std::size_t> sizes; ///< Bytes of a payload; empty: all.
  std::string congestion;         ///< Empty: the system's.

  bool wants(const std::string& name) const {
    return only.empty() || std::ranges::find(only, name) != only.end();
  }
};

/// Parses the command line. Returns an exit status if main() is to return at once: after --help 0,
/// after a mistake 2, with one line about it.
std::optional<int> parse(CLI::App& app, int argc, char** argv);

/// Declares the options on `app`; `names`: the values of --only.
void declare(CLI::App& app, common_options& options, const std::vector<std::string>& names);

} // namespace troupe::bench
