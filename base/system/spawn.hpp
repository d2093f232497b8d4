// Starts a program as a child of this process.
#pragma once

#include "base/error.hpp"

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

struct spawn_options {
  int input = -1;          ///< Becomes the standard input; -1: nothing can be read there.
  int output = -1;         ///< Becomes the standard output.
  int error = -1;          ///< Becomes the standard error; -1: `output` does.
  std::vector<int> kept{}; ///< The program inherits these descriptors; -1 is passed over.
  bool detached = false;   ///< Begins a session, so that no terminal sends it signals.
  /// Starts it with the stop signals blocked, so that only this process ends it. The program calls
  /// survive_stop_signals() (stop_signals.hpp), which can replace the block only after the exec.
  bool stubborn = false;
};

/// Starts a program. It is killed when the calling thread ends. An `executable` without a slash is
/// looked up in PATH. `words` are its arguments, the first one its name. Returns after the exec.
/// Errors: io_failed, with the reason.
result<pid_t> spawn(const std::filesystem::path& executable, const std::vector<std::string>& words,
                    const spawn_options& how);

} // namespace troupe
