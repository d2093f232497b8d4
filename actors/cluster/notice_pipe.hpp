// What a process of a job waits for or cannot do reaches the launcher's console over a pipe: its
// log is seen by nobody while it waits. One pipe for all processes of a launcher.
//
// A notice is a line, "ROLE INDEX TOPIC TEXT", in one write of at most PIPE_BUF bytes, so that
// those of several processes do not mix.
#pragma once

#include "actors/process_name.hpp"
#include "serialization/error.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe {

struct notice {
  process_name from;
  std::string topic; ///< A word; a later notice of the same topic replaces it.
  std::string text;  ///< Empty: it is over.

  bool operator==(const notice&) const = default;
};

/// Returns the line, with its newline; at most PIPE_BUF bytes.
std::string encode(const notice& what);

/// Takes lines apart that come in any pieces. What is no notice is left out.
class notice_reader {
public:
  std::vector<notice> read(std::string_view bytes);

private:
  std::string rest_; ///< A line without its end.
};

/// The launcher's end. Thread safety: none.
class notice_pipe {
public:
  /// Without descriptors to be had it brings nothing.
  notice_pipe();
  ~notice_pipe();
  notice_pipe(const notice_pipe&) = delete;
  notice_pipe& operator=(const notice_pipe&) = delete;

  /// What a process is to have; closes on exec. -1: there is none.
  int writing_end() const { return ends_[1]; }
  /// What has come since the last call.
  std::vector<notice> read();

private:
  int ends_[2] = {-1, -1};
  notice_reader lines_;
};

/// A process's end. Thread-safe.
class notice_writer {
public:
  /// `descriptor`: of notice_pipe, which from now on closes on exec; -1: notices go nowhere.
  notice_writer(int descriptor, process_name self);

  /// Never blocks: a launcher that stands still loses notices. Without a text: it is over.
  void say(const std::string& topic, const std::string& text) const;

private:
  int descriptor_;
  process_name self_;
};

} // namespace troupe
