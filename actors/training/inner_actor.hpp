// Declares actors of Troupe itself that run as actors of a program do, and ask the store for more
// than the newest values.
#pragma once

#include "actors/training/own_actor.hpp"
#include "base/error.hpp"
#include "serialization/messages.hpp"

#include <cstdint>
#include <string>

namespace troupe {

/// Serves an inner_actor, on its thread.
class inner_shell {
public:
  virtual ~inner_shell() = default;
  /// Asks the store. inner_actor::answered() follows with this number.
  virtual void ask(std::uint64_t number, request what) = 0;
  /// Has inner_actor::run() called after the earlier messages of this thread.
  virtual void run_soon() = 0;
  /// Ends the member, and with it the job. It gets no further calls.
  virtual void fail(const failure& why) = 0;
};

class inner_actor : public own_actor {
public:
  /// Takes the answer to inner_shell::ask(). An error that time cures is not repeated by the shell.
  virtual void answered(std::uint64_t number, const result<reply>& what, time_point now) = 0;
  /// Does the next piece of its work, see inner_shell::run_soon().
  virtual void run() = 0;

  /// For the shell, before start(). `shell` must outlive the last call.
  void connect(inner_shell* shell) { shell_ = shell; }

protected:
  inner_shell& shell() { return *shell_; }

private:
  inner_shell* shell_ = nullptr;
};

} // namespace troupe
