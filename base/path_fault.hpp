// Says why a text names no file or directory.
#pragma once

#include <string>

namespace troupe {

/// Returns the fault of a text as the name of a file or directory; empty: it may name one.
inline std::string path_fault(const std::string& text) {
  return text.empty() ? "the name of the file or directory is empty" : "";
}

} // namespace troupe
