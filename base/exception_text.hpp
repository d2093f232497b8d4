// Describes any exception of a user's code as one line for a person.
#pragma once

#include <string>

namespace troupe {

/// Returns the text of the current exception. Requires: runs inside a catch block.
std::string exception_text();

} // namespace troupe
