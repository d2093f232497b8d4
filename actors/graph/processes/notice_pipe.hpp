// A pipe brings lines to the launcher: notices for its console, because no person reads the logs of
// processes meanwhile, and words in the place of exit statuses. A launcher has one pipe for all its
// processes.
//
// A line is "ROLE INDEX KIND TOPIC TEXT", in one write of at most PIPE_BUF bytes, so that lines of
// several processes do not mix.
#pragma once

#include "actors/protocol/process_name.hpp"
#include "actors/protocol/session/process_word.hpp"
#include "base/error.hpp"
#include "base/notice.hpp"

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe {

/// A notice has its process as member.
using told = std::variant<notice, process_word>;

/// Returns the line, with its newline; at most PIPE_BUF bytes. `from`: takes the place of the
/// notice's member.
std::string encode(process_name from, const notice& what);
std::string encode(const process_word& what);

/// Takes lines apart that come in any pieces. Skips lines of another shape.
class notice_reader {
public:
  std::vector<told> read(std::string_view bytes);

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
  /// Returns the lines since the last call.
  std::vector<told> read();

private:
  int ends_[2] = {-1, -1};
  notice_reader lines_;
};

/// The writing end of the pipe, in a process of the job. Thread-safe.
class notice_writer {
public:
  /// Takes the descriptor of a notice_pipe, which then closes on exec. -1: no notice is sent.
  notice_writer(int descriptor, process_name self);

  /// Writes a notice. It never blocks: notices are lost while the launcher does not read.
  void say(const notice& what) const;
  /// Writes a word unless the pipe is full. Returns whether it was written.
  bool try_to_tell(word_kind kind, const std::string& text = {}) const;
  /// Writes a word, for a process that ends. While the pipe is full it waits, for 1 s at most.
  void tell(word_kind kind, const std::string& text = {}) const;

private:
  bool send(const std::string& line) const;

  int descriptor_;
  process_name self_;
};

} // namespace troupe
