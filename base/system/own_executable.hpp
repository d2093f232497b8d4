// The file of the program that runs.
#pragma once

#include <filesystem>

namespace troupe {

/// Returns a path that starts this program again: /proc/self/exe, or the file that was named where
/// a dynamic loader was started to run it or /proc is not there.
std::filesystem::path own_executable();

} // namespace troupe
