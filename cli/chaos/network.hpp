// Makes a network for chaos: a bridge, and for each server a host with a line that can be cut. They
// are network namespaces, which vanish with the processes in them.
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
  /// Moves this process and its children into the new network, with the address `center`.
  /// Requires: this process has one thread. Errors: io_failed where the system does not allow it.
  static result<network> make();
  static constexpr const char* center = "10.203.78.1";

  /// Returns the command line that runs `words` on the host of this server. It prints "ready" and
  /// waits until it was connected and told a line.
  std::vector<std::string> on_host(std::uint32_t server, std::vector<std::string> words) const;
  /// Connects the host to the bridge. Errors: io_failed.
  result<void> connect(std::uint32_t server, pid_t host);
  result<void> cut(std::uint32_t server, pid_t host, fault_kind how);
  result<void> mend(std::uint32_t server, pid_t host, fault_kind how);
};

/// Mounts a disk of `megabytes` at `directory`, visible only to this process and its children.
/// Requires: this process has one thread. Errors: io_failed.
result<void> mount_small_disk(const std::string& directory, unsigned megabytes);
/// Does nothing if no disk is mounted.
void unmount_small_disk(const std::string& directory);

} // namespace troupe::chaos
