// Carries out a session's decisions on the members of a job, and sees the consequences. There is
// one kind for each way to run.
#pragma once

#include "actors/graph/plan.hpp"
#include "actors/graph/report/run_report.hpp"
#include "actors/protocol/session/session.hpp"
#include "actors/training/evaluation_computer.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/notice.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Lifetime: its members end with it. Thread safety: for the launcher's main thread.
class backend {
public:
  struct news {
    std::vector<session_event> events{};
    std::vector<evaluation_message> evaluated{}; ///< Results of evaluate().
  };

  backend() = default;
  virtual ~backend() = default;
  backend(const backend&) = delete;
  backend& operator=(const backend&) = delete;

  /// Completes the options of the session: its processes, their leader, the evaluations.
  virtual void describe(session_options& into) const = 0;
  /// Starts a process. Errors: io_failed.
  virtual result<process_started> start(process_name who) = 0;
  /// Returns the events since the last call.
  virtual news tick() = 0;
  /// Passes the report on, and returns the job's latest news.
  virtual std::optional<job_update> status(const observer_status& report) = 0;
  /// Evaluates the present parameters; tick() returns the result.
  virtual void evaluate(std::uint64_t epoch) = 0;
  virtual void kill(process_name who) = 0;
  /// Ends all members at once.
  virtual void end() = 0;

  /// Returns the present time of the job, on a clock that only grows.
  virtual time_point now() const { return steady_now(); }
  /// Returns the start of the run on that clock. `called`: the start by the machine's clock.
  virtual time_point begun_at(time_point called) const { return called; }
  /// Returns the time that the launcher waits for a signal between two calls of tick().
  virtual std::chrono::milliseconds pause() const { return std::chrono::milliseconds{20}; }
  /// Adds figures that only the backend knows to the report.
  virtual void complete(run_statistics&) const {}
  /// Returns lines for the user after a run with a result.
  virtual std::string summary(const run_statistics&) const { return {}; }
};

/// The parts of which a backend is made.
struct backend_setup {
  plan& what; ///< The directories of its options have names. Outlives the backend.
  const std::vector<std::string>& command; ///< The words that the launcher was started with.
  notice_sink tell;                        ///< Takes lines for the user while the backend is made.
};
/// Makes the backend of a plan. Throws run_failed.
using backend_maker = std::function<std::unique_ptr<backend>(const backend_setup&)>;

} // namespace troupe
