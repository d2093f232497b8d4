// A pipe brings notices to the launcher. Some are for its console: each process of a job tells why
// it waits, because no person reads its log meanwhile. The others take the place of exit statuses,
// because user code can end a process with any status. A launcher has one pipe for all its
// processes.
//
// A notice is a line, "ROLE INDEX KIND TOPIC TEXT", in one write of at most PIPE_BUF bytes, so that
// notices of several processes do not mix.
#pragma once

#include "actors/protocol/process_name.hpp"
#include "actors/protocol/session/notice.hpp"
#include "base/error.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Returns the line, with its newline; at most PIPE_BUF bytes.
std::string encode(const notice& what);

/// Takes lines apart that come in any pieces. Skips lines that are no notices.
class notice_reader {
public:
  std::vector<notice> read(std::string_view bytes);

private:
  std::string rest_; ///< The beginning of an incomplete line.
};

/// The launcher's end of the pipe. Thread safety: none.
class notice_pipe {
public:
  /// Makes the pipe. If the process may open no more files, there is none.
  notice_pipe();
  ~notice_pipe();
  notice_pipe(const notice_pipe&) = delete;
  notice_pipe& operator=(const notice_pipe&) = delete;

  /// Returns the descriptor that a process writes to, which closes on exec; -1: there is no pipe.
  int writing_end() const { return ends_[1]; }
  /// Returns the notices that have come since the last call.
  std::vector<notice> read();

private:
  int ends_[2] = {-1, -1};
  notice_reader lines_;
};

/// The writing end of the pipe, in a process of the job. Thread-safe.
class notice_writer {
public:
  /// Takes the descriptor of a notice_pipe, which then closes on exec. -1: no notice is sent.
  notice_writer(int descriptor, process_name self);

  /// Writes a notice; an empty text says that the wait is over. It never blocks: notices are lost
  /// while the launcher does not read.
  void say(const std::string& topic, const std::string& text) const;
  /// Writes a notice of another kind unless the pipe is full. Returns whether it was written.
  bool try_to_tell(notice_kind kind, const std::string& text = {}) const;
  /// Writes a notice of another kind, for a process that ends. While the pipe is full it waits, for
  /// 1 s at most.
  void tell(notice_kind kind, const std::string& text = {}) const;

private:
  bool send(const notice& what) const;

  int descriptor_;
  process_name self_;
};

} // namespace troupe
