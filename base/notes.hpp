// Takes the counts and the log lines of a program's own code. Both are in the run's report.
#pragma once

#include "base/log_sink.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// A count or a line of a program's own code: of a trainer, a stage or a keeper.
struct program_note {
  std::string name;        ///< "privacy.clipped"; of a line: "privacy: what it says".
  std::uint64_t count = 0; ///< The sum of a count, or the times that a line was written.
  bool is_line = false;

  bool operator==(const program_note&) const = default;
};
constexpr std::size_t program_notes_max = 64;       ///< Notes of one process.
constexpr std::size_t program_counts_max = 31;      ///< Counts of one process, and also lines.
constexpr std::size_t program_note_bytes_max = 800; ///< Bytes of a name.

/// The notes of one process. Any thread may call it.
class program_notes {
public:
  /// `log`: takes each line; may be null.
  explicit program_notes(log_sink log = {}) : log_(std::move(log)) {}

  void count(std::string_view node, std::string_view name, std::uint64_t number);
  void log(std::string_view node, std::string_view line);
  /// Writes a warning of Troupe to the log, which is no note.
  void warn(const std::string& line) const;
  /// Returns the notes so far, in the order of their first calls. Counts beyond program_counts_max
  /// and lines beyond as many are missing, and a note says so.
  std::vector<program_note> all() const;

private:
  void add(std::string name, std::uint64_t number, bool is_line);

  log_sink log_;
  mutable std::mutex mutex_;
  std::vector<program_note> notes_;
};

/// Takes the notes of one node or stage. It is passed to the program's code, and is valid for the
/// time of that call.
class node_notes {
public:
  node_notes() = default;
  /// Both must outlive this object. `to`: null drops all notes, as in a replay.
  node_notes(program_notes* to, std::string_view node) : to_(to), node_(node) {}

  /// Adds to a count of this name, "NODE.NAME" in the report. Capacity: program_counts_max names
  /// of a process; later ones are missing in the report.
  void count(std::string_view name, std::uint64_t number = 1) const {
    if (to_ != nullptr)
      to_->count(node_, name, number);
  }
  /// Writes a line to the log of the process. The report has the first lines of a process, and how
  /// often each was written.
  void log(std::string_view line) const {
    if (to_ != nullptr)
      to_->log(node_, line);
  }

private:
  program_notes* to_ = nullptr;
  std::string_view node_;
};

/// Takes the notes of one stage that is an actor. The actor keeps it, and calls it on any thread.
class stage_notes {
public:
  stage_notes() = default;
  /// `to`: null drops all notes.
  stage_notes(std::shared_ptr<program_notes> to, std::string stage)
      : to_(std::move(to)), stage_(std::move(stage)) {}

  /// Does node_notes::count().
  void count(std::string_view name, std::uint64_t number = 1) const {
    node_notes{to_.get(), stage_}.count(name, number);
  }
  /// Does node_notes::log().
  void log(std::string_view line) const { node_notes{to_.get(), stage_}.log(line); }

private:
  std::shared_ptr<program_notes> to_;
  std::string stage_;
};

} // namespace troupe
