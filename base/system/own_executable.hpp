// Finds the file of the running program.
#pragma once

#include <filesystem>

namespace troupe {

/// Returns a path that starts this program again: /proc/self/exe. If a dynamic loader runs the
/// program, or /proc is missing, returns the named file.
std::filesystem::path own_executable();

} // namespace troupe
