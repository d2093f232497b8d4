// What a user's code threw, whatever that is, as one line for a person.
#pragma once

#include <string>

namespace troupe {

/// Requires: it runs inside a catch block.
std::string exception_text();

} // namespace troupe
