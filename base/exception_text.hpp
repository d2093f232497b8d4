// Describes any exception of a user's code as one line for a person.
#pragma once

#include "base/error.hpp"

#include <stdexcept>
#include <string>
#include <typeinfo>

namespace troupe {

/// Returns the text of the current exception. It is never empty: an exception with a blank text, or
/// a value that is no std::exception, is named by its type. Requires: runs inside a catch block.
std::string exception_text();

/// Returns the name of a type as in source code.
std::string type_text(const std::type_info& type);

/// Returns the current exception of a user's code as the failure of its job. Requires: runs inside
/// a catch block.
inline failure exception_failure() { return {errc::job_failed, exception_text()}; }

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
