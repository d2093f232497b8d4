// Starts the processes of a benchmark: this program again, to play one part. They end with their
// parent, and exchange lines of JSON with it.
#pragma once

#include "nlohmann/json.hpp"

#include <sys/types.h>

#include <map>
#include <string>

namespace troupe::bench {

using json = nlohmann::json;

/// One end of the line between parent and child.
class channel {
public:
  explicit channel(int descriptor) : descriptor_(descriptor) {}
  ~channel();
  channel(const channel&) = delete;
  channel& operator=(const channel&) = delete;

  void send(const json& what);
  /// Waits for the next line. Throws std::runtime_error if the other end is gone.
  json receive();
  int descriptor() const { return descriptor_; }

private:
  int descriptor_;
  std::string unread_;
};

/// Is killed with SIGKILL when it goes out of scope.
class child {
public:
  /// `part`: its task; see part_of. `environment`: variables in addition to ours.
  child(const json& part, const std::map<std::string, std::string>& environment);
  ~child();
  child(const child&) = delete;
  child& operator=(const child&) = delete;

  channel& line() { return line_; }
  pid_t pid() const { return pid_; }

private:
  struct line_ends {
    line_ends();
    int ours = -1, theirs = -1;
  };
  child(const json& part, const std::map<std::string, std::string>& environment, line_ends ends);

  pid_t pid_ = -1;
  channel line_;
};

/// Returns the task of a process that was started as a child; null in the parent.
json part_of(int argc, char** argv);
/// Returns the child's end of the line. Requires: this process is a child.
channel& parent_line();

/// Returns user and system time of a process so far, of all its threads.
double cpu_seconds(pid_t process);
/// Returns resident memory of a process with its shared pages: at its peak, and now.
double peak_megabytes(pid_t process);
double resident_megabytes(pid_t process);

double seconds_now();

} // namespace troupe::bench
