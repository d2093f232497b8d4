// Runs a graph inside a program or a test of the user's own, without a command line.
#pragma once

#include "actors/graph/graph.hpp"
#include "actors/graph/options/options.hpp"
#include "actors/tables/server_functions.hpp"
#include "actors/training/trainer.hpp"
#include "base/error.hpp"
#include "base/log_sink.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// How run() runs a graph.
struct settings {
  std::string name = "graph"; ///< Name of the job.
  /// The fields of a command line, such as epochs, batch_samples and seed. `asked_mode`: threads
  /// (the default) or simulation. Files that are named are written.
  run_options options = {};
  server_functions functions = {}; ///< The server functions that tables name.
  log_sink log = {};               ///< Takes the lines that a program would show; may be empty.
};

/// The result of a run.
struct report {
  double seconds = 0;       ///< From start to end; in a simulation by the virtual clock.
  std::uint64_t epochs = 0; ///< Epochs that are done.
  /// The evaluation at the end; nullopt: the graph has no evaluator.
  std::optional<evaluation> last = {};
  /// Counts of trainers, push functions, stages and keepers, as "NODE.name".
  std::map<std::string, std::uint64_t> counts = {};
  std::map<std::string, std::vector<float>> values = {}; ///< The dense tables at the end, by name.
  std::string json = {};                                 ///< The text of --report.
};

/// Runs a graph to its end, with threads of this process or in virtual time. It prints nothing and
/// handles no signals: they do to the process what they do without a run. It returns only when each
/// call of a trainer or another part of the graph has returned. Thread-safe: runs may overlap.
/// Errors: invalid_argument (wrong wiring or options; also an all_reduce store, run_mode::processes
/// and a replay; nothing was started), job_failed (such as an exception of a trainer, or a thread
/// that the system refuses, in one line), io_failed (a file that the options name).
result<report> run(const graph& described, const settings& how = {});

} // namespace troupe
