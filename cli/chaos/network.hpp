// A network of chaos' own: a bridge, and for each server a host with a line to it that can be cut.
// Network namespaces; they vanish with the processes in them.
#pragma once

#include "base/error.hpp"
#include "cli/chaos/fault_plan.hpp"

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::chaos {

class network {
public:
  /// From here on this process and its children are in the new network, with the address `center`.
  /// Requires: this process has one thread. Errors: io_failed where the system does not allow it.
  static result<network> make();
  static constexpr const char* center = "10.203.78.1";

  /// The command line that runs `words` on the host of this server. It says "ready" in a line, and
  /// goes on when it was connected and told a line.
  std::vector<std::string> on_host(std::uint32_t server, std::vector<std::string> words) const;
  /// Errors: io_failed.
  result<void> connect(std::uint32_t server, pid_t host);
  result<void> cut(std::uint32_t server, pid_t host, fault_kind how);
  result<void> mend(std::uint32_t server, pid_t host, fault_kind how);
};

/// From here on this process and its children see a disk of `megabytes` at `directory`, and nobody
/// else does. Requires: this process has one thread. Errors: io_failed.
result<void> mount_small_disk(const std::string& directory, unsigned megabytes);
/// Nothing where none is there.
void unmount_small_disk(const std::string& directory);

} // namespace troupe::chaos
