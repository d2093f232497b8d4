// Ends a launcher's run early, with one line for the user.
#pragma once

#include "base/error.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe {

constexpr int bad_command_line = 2; ///< The exit status for a wrong option.

struct run_failed : std::runtime_error {
  explicit run_failed(const std::string& text, int exit_status = EXIT_FAILURE,
                      errc reason = errc::job_failed)
      : std::runtime_error{text}, status(exit_status), code(reason) {}
  int status;
  errc code;
};

/// Returns the value; throws run_failed if there is none.
template <class T>
T required(result<T> what, int exit_status = EXIT_FAILURE) {
  if (!what)
    throw run_failed{what.error().text, exit_status, what.error().code};
  return *std::move(what);
}

inline void required(const result<void>& what, int exit_status = EXIT_FAILURE) {
  if (!what)
    throw run_failed{what.error().text, exit_status, what.error().code};
}

} // namespace troupe
