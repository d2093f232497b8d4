// Describes one command of the program `troupe`.
#pragma once

#include "base/error.hpp"

#include <functional>

namespace CLI {
class App;
}

namespace troupe {

struct command {
  CLI::App* words = nullptr;         ///< Its part of the command line; the app owns it.
  std::function<result<void>()> run; ///< Called after the parse if the command was given.
};

} // namespace troupe
