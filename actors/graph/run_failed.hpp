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
  explicit run_failed(const failure& why, int exit_status = EXIT_FAILURE)
      : run_failed(why.text, exit_status, why.code) {}
  int status;
  errc code;
};

/// Returns the value; throws run_failed if there is none.
template <class T>
T required(result<T> what, int exit_status = EXIT_FAILURE) {
  if (!what)
    throw run_failed{what.error(), exit_status};
  return *std::move(what);
}

inline void required(const result<void>& what, int exit_status = EXIT_FAILURE) {
  if (!what)
    throw run_failed{what.error(), exit_status};
}

} // namespace troupe
