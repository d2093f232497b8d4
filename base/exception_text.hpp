// Describes any exception of a user's code as one line for a person.
#pragma once

#include <stdexcept>
#include <string>

namespace troupe {

/// Returns the text of the current exception. Requires: runs inside a catch block.
std::string exception_text();

/// Returns call(). Exceptions that it throws get this title in front: std::runtime_error.
template <class Call>
auto titled(const std::string& title, Call call) {
  try {
    return call();
  } catch (...) {
    throw std::runtime_error(title + ": " + exception_text());
  }
}

} // namespace troupe
