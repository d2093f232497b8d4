// Ends a launcher's run early, with one line for the user.
#pragma once

#include "base/error.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe {

struct run_failed : std::runtime_error {
  explicit run_failed(const std::string& text, int exit_status = EXIT_FAILURE)
      : std::runtime_error{text}, status(exit_status) {}
  int status;
};

/// Returns the value; throws run_failed if there is none.
template <class T>
T required(result<T> what) {
  if (!what)
    throw run_failed{what.error().text};
  return *std::move(what);
}

inline void required(const result<void>& what) {
  if (!what)
    throw run_failed{what.error().text};
}

} // namespace troupe
