// Shows the progress of a run: one block of lines that is redrawn in place, with events scrolling
// by above it. If the output is not a terminal, it prints the events and a plain line now and then.
#pragma once

#include "actors/training/trainer.hpp"
#include "serialization/messages.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// One process of the job, as its line shows it.
struct process_progress {
  std::string name; ///< "server-0".
  member_state state = member_state::absent;
  bool dead = false;             ///< It died, and no newer incarnation has come yet.
  std::uint32_t starts = 1;      ///< Incarnations so far.
  std::string detail;            ///< "clock 1204", "version 5310".
  double bytes_per_second = 0.0; ///< Values and parcels sent and received, uncompressed.
  std::uint64_t rss_bytes = 0;   ///< Peak resident memory.
  bool is_coordinator = false;
  std::string node = {};            ///< The node of the graph; empty: it has none.
  std::string name_in_options = {}; ///< "line:2"; only of a pipeline's processes.

  bool operator==(const process_progress&) const = default;
};

struct progress_snapshot {
  std::chrono::nanoseconds elapsed{0};
  job_phase phase = job_phase::gathering;
  std::uint64_t batches_done = 0;
  std::uint64_t batches = 0;
  double epoch = 0.0; ///< Passes done, with a fraction.
  std::uint64_t epochs = 0;
  std::optional<double> loss;    ///< Recent mean training loss.
  std::vector<measure> measures; ///< figures_of() the last evaluation.
  double samples_per_second = 0.0;
  double bytes_per_second = 0.0; ///< All workers' requests on links; else values and parcels.
  double staleness_mean = 0.0;   ///< In versions.
  std::uint64_t staleness_max = 0;
  std::uint64_t checkpoint = 0; ///< Newest committed checkpoint; 0: none.
  std::vector<process_progress> processes;

  bool operator==(const progress_snapshot&) const = default;
};

/// Returns the accuracy, if there is one, and the measures.
std::vector<measure> figures_of(const evaluation& found);
/// Returns "rmse 0.9384".
std::string text_of(const measure& what);

/// Returns "server 3" for "server-3", and one name for all coordinators. A process of a pipeline
/// has both names: "actor 1 (line:2)".
std::string spoken_name(const process_progress& process);

/// Returns the members that are away, in the order of the snapshot; if there are none, the members
/// that load. Several coordinators count as one.
std::vector<process_progress> missing_processes(const progress_snapshot& snapshot);

/// Returns the lines of the block: a bar, the figures, one line for each process. No line is wider
/// than `columns` (escape sequences of `color` take no column).
std::vector<std::string> render(const progress_snapshot& snapshot, unsigned columns, bool color);
/// Returns the snapshot in one line, without processes and colour. Members that have finished their
/// work count as active; coordinators do not count.
std::string render_line(const progress_snapshot& snapshot);
/// Returns the figures of render_line() as an event.
job_event event_of(const progress_snapshot& snapshot);

/// Writes progress to one stream. Thread safety: for one thread. Each update is a single write,
/// which restores the terminal's settings, so that a killed program leaves them intact.
class progress_display {
public:
  /// `terminal`: redraw with ANSI sequences, in colours if `color` is true as well.
  progress_display(std::FILE* out, bool terminal, bool color = true);
  /// Returns whether `out` is a terminal with ANSI sequences; false if TERM is "dumb" or missing.
  static bool is_terminal(std::FILE* out);
  /// Returns false if the environment has a NO_COLOR that is not empty (no-color.org).
  static bool wants_color();

  /// Writes one line with its time. Control characters are replaced.
  void event(const std::string& text, std::chrono::nanoseconds elapsed);
  /// Shows a snapshot: in a terminal at once, else in at most one line per second (by
  /// snapshot.elapsed) and one line for each new phase.
  void show(const progress_snapshot& snapshot);
  /// Leaves the last block on the screen; later output begins below it.
  void finish();

private:
  struct screen_size {
    unsigned columns = 0;
    unsigned rows = 0;
    bool operator==(const screen_size&) const = default;
  };

  screen_size size() const;
  std::string go_to_block(screen_size now) const;
  std::string draw_block(screen_size now);
  void write(const std::string& text) const;

  std::FILE* out_;
  bool terminal_;
  bool color_;
  std::optional<progress_snapshot> last_;
  std::size_t drawn_rows_ = 0;     ///< Rows of the block on the screen.
  screen_size drawn_size_;         ///< Size of the screen when the block was drawn.
  std::deque<std::string> events_; ///< The last events, for a redraw at another screen size.
  std::optional<std::chrono::nanoseconds> line_at_;
  std::optional<job_phase> line_phase_;
};

} // namespace troupe
