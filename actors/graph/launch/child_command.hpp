// What a launcher and the processes that it starts say to each other without a link: who the
// process is, on its command line, and why it ended, by its exit status.
#pragma once

#include "base/error.hpp"
#include "serialization/ids.hpp"

#include <string>
#include <vector>

namespace troupe {

struct child_identity {
  member_id self;
  int inherited = -1; ///< The coordinator's listening socket.
  int notices = -1;   ///< The writing end of a notice_pipe; -1: none.
};

/// The words that tell a child who it is: "--child" and what parse_child reads.
std::vector<std::string> child_arguments(const child_identity& who);
/// Errors: invalid_argument.
result<child_identity> parse_child(const std::string& text);

/// The exit status by which a child says: starting me again would not help. The last line of its
/// log says why.
constexpr int do_not_restart_status = 3;
/// By which a coordinator says: another one leads, or may lead soon. It is started again as a
/// standby. The last line of its log says why.
constexpr int deposed_status = 4;

} // namespace troupe
