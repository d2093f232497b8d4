// Tells the processes that a launcher starts their identity, on the command line.
#pragma once

#include "actors/protocol/process_name.hpp"
#include "base/error.hpp"
#include "serialization/ids.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

struct child_identity {
  member_id self;
  int inherited = -1; ///< The coordinator's listening socket.
  int notices = -1;   ///< The writing end of a notice_pipe; -1: none.
};

/// Returns the words that tell a child its identity: "--child" and a text for parse_child().
std::vector<std::string> child_arguments(const child_identity& who);
/// Parses the text behind "--child". Errors: invalid_argument.
result<child_identity> parse_child(const std::string& text);

/// Returns the file of a process's log: standard output, standard error and lines of base/log.hpp.
std::filesystem::path log_path(const std::filesystem::path& run_directory, process_name who);

} // namespace troupe
