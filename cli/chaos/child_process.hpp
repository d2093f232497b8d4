// Runs a process that chaos starts itself: a launcher, or a tool of the system.
#pragma once

#include "base/error.hpp"
#include "base/system/descriptor.hpp"

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::chaos {

/// Is killed with SIGKILL when it goes out of scope and when chaos itself is killed.
class child_process {
public:
  /// Starts the process. Both outputs go to `output`; tell() writes its input. Errors: io_failed.
  static result<child_process> start(const std::vector<std::string>& words,
                                     const std::filesystem::path& output);
  child_process(child_process&& other) noexcept;
  child_process& operator=(child_process&&) = delete;
  ~child_process();

  pid_t pid() const { return pid_; }
  /// Returns the exit status, or 128 + signal; nullopt: it still runs.
  std::optional<int> ended();
  void tell(const std::string& line);
  void kill();

private:
  child_process(pid_t pid, descriptor input) : pid_(pid), input_(std::move(input)) {}

  pid_t pid_;
  descriptor input_;
  std::optional<int> status_;
};

/// Runs a tool of the system to its end. Errors: io_failed, with the tool's output.
result<void> run_tool(const std::vector<std::string>& words);

} // namespace troupe::chaos
