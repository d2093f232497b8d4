// Runs the job under faults: count_batches with its launchers, and reads their output.
#pragma once

#include "cli/chaos/child_process.hpp"
#include "cli/chaos/facts.hpp"
#include "cli/chaos/network.hpp"

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::chaos {

struct cluster_options {
  std::filesystem::path program;   ///< The program count_batches.
  std::filesystem::path directory; ///< Folder of this run; exists.
  std::uint32_t servers = 3;
  std::uint32_t replicas = 2;
  std::uint32_t workers = 4;
  std::uint32_t actors = 0; ///< Actors that the graph has.
  std::string sync = "asp";
  std::string graph = "plain"; ///< Value of --graph. An own store has one server.
  std::uint64_t batches = 0;
  std::uint64_t step_ms = 10; ///< Least time of a worker for a batch.
  std::uint64_t keep = 5;     ///< Number of checkpoints to keep.
};

class cluster {
public:
  /// `hosts`: gives each server a host of its own; null: all processes run on this host.
  cluster(cluster_options options, network* hosts) : options_(std::move(options)), hosts_(hosts) {}

  /// Starts all launchers. Errors: io_failed.
  result<void> start();
  /// Reads what the main launcher printed since the last call.
  void read(double now, run_facts& into);
  /// Returns the exit status of the main launcher.
  std::optional<int> ended() { return launchers_.front().ended(); }
  /// Returns nullopt if the process does not run just now.
  std::optional<pid_t> find(const process_name& who) const;
  void measure(run_facts& into) const;
  /// Cuts the line of the server's host. Requires: there are hosts. Errors: io_failed.
  result<void> cut(std::uint32_t server, fault_kind how);
  result<void> mend(std::uint32_t server, fault_kind how);
  /// Waits a moment for launchers that joined, then kills all that still run.
  void end();

  std::filesystem::path checkpoints() const { return options_.directory / "checkpoints"; }
  std::filesystem::path run_directory() const { return options_.directory / "run"; }
  std::filesystem::path report_file() const { return options_.directory / "report.json"; }
  std::filesystem::path output() const { return options_.directory / "launcher.out"; }

private:
  std::vector<std::string> words() const;
  result<void> start_host(std::uint32_t server);
  std::size_t launcher_of(std::uint32_t server) const { return hosts_ == nullptr ? 0 : 1 + server; }

  cluster_options options_;
  network* hosts_;
  std::vector<child_process> launchers_; ///< The main one, then those of the servers' hosts.
  std::size_t read_until_ = 0;
  std::string unfinished_line_;
};

} // namespace troupe::chaos
