#include "actors/graph/report/progress.hpp"

#include "actors/protocol/process_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include <sys/ioctl.h>
#include <unistd.h>

namespace troupe {

namespace {

constexpr std::size_t bar_width_max = 40;
constexpr std::size_t bar_width_min = 10;
/// Size of a terminal that does not tell its own.
constexpr unsigned columns_default = 80;
constexpr unsigned rows_default = 24;
/// Pause between two lines without a terminal.
constexpr std::chrono::seconds line_pause{1};
/// Events kept for a redraw, more than a screen shows.
constexpr std::size_t events_kept = 200;

constexpr std::string_view plain = "";
constexpr std::string_view bold = "\x1b[1m";
constexpr std::string_view dim = "\x1b[2m";
constexpr std::string_view red = "\x1b[31m";
constexpr std::string_view green = "\x1b[32m";
constexpr std::string_view yellow = "\x1b[33m";
constexpr std::string_view plain_again = "\x1b[0m";
constexpr std::string_view wrapping_off = "\x1b[?7l";
constexpr std::string_view wrapping_on = "\x1b[?7h";

/// A text of ASCII, and the escape sequence for its look.
struct span_of_line {
  std::string text;
  std::string_view look = plain;
};
using line_spans = std::vector<span_of_line>;

std::string assemble(const line_spans& spans, std::size_t columns, bool color) {
  std::string line;
  std::size_t left = columns;
  for (const auto& [text, look] : spans) {
    const std::string_view shown = std::string_view{text}.substr(0, left);
    left -= shown.size();
    if (color && !look.empty() && !shown.empty())
      line.append(look).append(shown).append(plain_again);
    else
      line.append(shown);
  }
  return line;
}

const char* name_of(job_phase phase) {
  switch (phase) {
  case job_phase::gathering: return "gathering";
  case job_phase::training: return "training";
  case job_phase::finishing: return "finishing";
  case job_phase::finished: return "finished";
  case job_phase::stopped: return "stopped";
  }
  return "unknown";
}

span_of_line state_of(const process_progress& process) {
  if (process.dead)
    return {"dead", red};
  switch (process.state) {
  case member_state::absent: return {"absent", red};
  case member_state::joining: return {"joining", yellow};
  case member_state::restoring: return {"restoring", yellow};
  case member_state::active: return {"active", green};
  case member_state::finished: return {"finished", dim};
  case member_state::evicted: return {"evicted", red};
  }
  return {"unknown", red};
}

double fraction_done(const progress_snapshot& x) {
  if (x.batches == 0)
    return 0.0;
  return std::min(1.0, static_cast<double>(x.batches_done) / static_cast<double>(x.batches));
}

std::string time_text(std::chrono::nanoseconds elapsed) {
  const double seconds = std::chrono::duration<double>(elapsed).count();
  if (seconds < 100.0)
    return fmt::format("{:.1f} s", seconds);
  const auto full = static_cast<std::uint64_t>(seconds);
  if (full < 3600)
    return fmt::format("{}:{:02}", full / 60, full % 60);
  return fmt::format("{}:{:02}:{:02}", full / 3600, full / 60 % 60, full % 60);
}

/// Returns "812", "81.2k" or "3.40M".
std::string count_text(double x) {
  if (x < 10e3)
    return fmt::format("{:.0f}", x);
  if (x < 1e6)
    return fmt::format("{:.1f}k", x / 1e3);
  return fmt::format("{:.2f}M", x / 1e6);
}

std::string megabytes_text(double bytes) { return fmt::format("{:.1f} MB/s", bytes / 1e6); }

bool is_away(const process_progress& process) {
  return process.dead || process.state == member_state::absent;
}

bool is_loading(const process_progress& process) {
  return process.state == member_state::joining || process.state == member_state::restoring;
}

/// Returns "waiting for worker 2, server 3", or for "server 1 (restoring)" if none is away.
std::string missing_text(const progress_snapshot& x) {
  if (x.processes.empty())
    return "waiting for the coordinator";
  std::vector<std::string> names;
  for (const auto& process : missing_processes(x))
    names.push_back(spoken_name(process)
                    + (is_away(process) ? "" : " (" + state_of(process).text + ")"));
  return names.empty() ? "all are there" : "waiting for " + list_of(names);
}

std::vector<std::string> figures(const progress_snapshot& x) {
  std::vector<std::string> all;
  if (x.phase == job_phase::gathering) // Rates mean nothing yet.
    return {missing_text(x)};
  all.push_back(fmt::format("epoch {:.2f}/{}", x.epoch, x.epochs));
  if (x.loss)
    all.push_back(fmt::format("loss {:.4f}", *x.loss));
  for (const auto& each : x.measures)
    all.push_back(text_of(each));
  all.push_back(count_text(x.samples_per_second) + " samples/s");
  all.push_back(megabytes_text(x.bytes_per_second));
  all.push_back(fmt::format("staleness {:.1f} (max {})", x.staleness_mean, x.staleness_max));
  if (x.checkpoint > 0)
    all.push_back(fmt::format("checkpoint {}", x.checkpoint));
  return all;
}

std::string bar_line(const progress_snapshot& x, std::size_t columns, bool color) {
  const double done = fraction_done(x);
  const std::string before = fmt::format("{:<10}", name_of(x.phase));
  // The share is rounded down, so that 100 % means all.
  const std::string after =
    fmt::format(" {:3} %  {}", static_cast<int>(done * 100.0), time_text(x.elapsed));
  const std::size_t taken = before.size() + after.size() + 2;
  const std::size_t width =
    std::clamp(columns > taken ? columns - taken : 0, bar_width_min, bar_width_max);
  const auto filled = static_cast<std::size_t>(done * static_cast<double>(width));
  std::string bar(filled, '=');
  if (filled < width)
    bar += '>';
  bar.resize(width, ' ');
  return assemble({{before, bold}, {"[" + bar + "]", green}, {after, plain}}, columns, color);
}

/// Returns what stands beside the role and the number.
const std::string& second_name(const process_progress& x) {
  return x.name_in_options.empty() ? x.node : x.name_in_options;
}

std::string process_line(const process_progress& x, std::size_t name_width, std::size_t node_width,
                         std::size_t columns, bool color) {
  span_of_line state = state_of(x);
  state.text = fmt::format("{:<9}", state.text);
  std::string rest = fmt::format("  {:<16}{:>12}", x.detail, megabytes_text(x.bytes_per_second));
  if (x.rss_bytes > 0)
    rest += fmt::format("{:>9.0f} MB", static_cast<double>(x.rss_bytes) / 1e6);
  line_spans spans{{fmt::format("  {:<{}}  ", x.name, name_width), plain}};
  if (node_width > 0)
    spans.push_back({fmt::format("{:<{}}  ", second_name(x), node_width), dim});
  spans.push_back(state);
  spans.push_back({rest, plain});
  if (x.starts > 1)
    spans.push_back({fmt::format("  restarts {}", x.starts - 1), yellow});
  return assemble(spans, columns, color);
}

std::string without_controls(std::string text) {
  std::replace_if(
    text.begin(), text.end(),
    [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return text;
}

} // namespace

std::vector<measure> figures_of(const evaluation& found) {
  auto all = found.measures;
  if (found.accuracy)
    all.insert(all.begin(), {"accuracy", *found.accuracy});
  return all;
}

std::string text_of(const measure& what) {
  const bool is_long = std::abs(what.value) >= 1e6;
  return is_long ? fmt::format("{} {:.4g}", what.name, what.value)
                 : fmt::format("{} {:.4f}", what.name, what.value);
}

std::string spoken_name(const process_progress& process) {
  auto name = process.name;
  std::ranges::replace(name, '-', ' ');
  if (!process.name_in_options.empty())
    name += fmt::format(" ({})", process.name_in_options);
  return process.is_coordinator ? "the coordinator" : name;
}

std::vector<process_progress> missing_processes(const progress_snapshot& snapshot) {
  std::vector<process_progress> missing;
  std::ranges::copy_if(snapshot.processes, std::back_inserter(missing), is_away);
  if (missing.empty())
    std::ranges::copy_if(snapshot.processes, std::back_inserter(missing), is_loading);
  const auto first = std::ranges::find_if(missing, &process_progress::is_coordinator);
  if (first != missing.end())
    missing.erase(std::remove_if(std::next(first), missing.end(),
                                 [](const auto& each) { return each.is_coordinator; }),
                  missing.end());
  return missing;
}

std::vector<std::string> render(const progress_snapshot& snapshot, unsigned columns, bool color) {
  std::vector<std::string> lines{bar_line(snapshot, columns, color)};
  std::string line;
  for (const std::string& figure : figures(snapshot)) {
    if (!line.empty() && line.size() + 2 + figure.size() > columns) {
      lines.push_back(assemble({{line, plain}}, columns, color));
      line.clear();
    }
    line += (line.empty() ? "" : "  ") + figure;
  }
  lines.push_back(assemble({{line, plain}}, columns, color));
  std::size_t name_width = 0, node_width = 0;
  for (const process_progress& process : snapshot.processes) {
    name_width = std::max(name_width, process.name.size());
    node_width = std::max(node_width, second_name(process).size());
  }
  for (const process_progress& process : snapshot.processes)
    lines.push_back(process_line(process, name_width, node_width, columns, color));
  return lines;
}

namespace {

struct member_counts {
  std::uint64_t active = 0, all = 0;
};

member_counts count_members(const progress_snapshot& snapshot) {
  member_counts counts;
  for (const auto& x : snapshot.processes) {
    if (x.is_coordinator) // The snapshot has only dead ones.
      continue;
    ++counts.all;
    const bool works = x.state == member_state::active || x.state == member_state::finished;
    counts.active += works && !x.dead ? 1 : 0;
  }
  return counts;
}

} // namespace

std::string render_line(const progress_snapshot& snapshot) {
  std::string line = fmt::format("{} {} {:.0f} %", time_text(snapshot.elapsed),
                                 name_of(snapshot.phase), 100.0 * fraction_done(snapshot));
  for (const std::string& figure : figures(snapshot))
    line += ", " + figure;
  const auto [active, all] = count_members(snapshot);
  return line + fmt::format(", active members {}/{}", active, all);
}

job_event event_of(const progress_snapshot& snapshot) {
  const auto [active, all] = count_members(snapshot);
  job_event made{event_kind::progress,
                 {{"phase", std::string{name_of(snapshot.phase)}},
                  {"done", fraction_done(snapshot)},
                  {"epoch", snapshot.epoch},
                  {"rate", snapshot.samples_per_second},
                  {"checkpoint", snapshot.checkpoint},
                  {"active", active},
                  {"members", all}}};
  if (snapshot.loss)
    made.fields.push_back({"loss", *snapshot.loss});
  return made;
}

progress_display::progress_display(std::FILE* out, bool terminal, bool color)
    : out_(out), terminal_(terminal), color_(color) {}

bool progress_display::is_terminal(std::FILE* out) {
  const char* const kind = std::getenv("TERM");
  return isatty(fileno(out)) == 1 && kind != nullptr && *kind != '\0'
         && std::string_view{kind} != "dumb";
}

bool progress_display::wants_color() {
  const char* const no = std::getenv("NO_COLOR");
  return no == nullptr || *no == '\0';
}

void progress_display::event(const std::string& text, std::chrono::nanoseconds elapsed) {
  std::string line = fmt::format("[{:>8}] {}", time_text(elapsed), without_controls(text));
  if (!terminal_) {
    write(line + "\n");
    return;
  }
  const screen_size now = size();
  std::string screen = go_to_block(now) + line + "\x1b[K\n";
  screen += draw_block(now);
  write(screen);
  events_.push_back(std::move(line));
  if (events_.size() > events_kept)
    events_.pop_front();
}

void progress_display::show(const progress_snapshot& snapshot) {
  if (terminal_) {
    const screen_size now = size();
    std::string text = go_to_block(now);
    last_ = snapshot;
    text += draw_block(now);
    write(text);
    return;
  }
  const bool is_due = !line_at_ || snapshot.elapsed >= *line_at_ + line_pause;
  if (!is_due && line_phase_ == snapshot.phase)
    return;
  line_at_ = snapshot.elapsed;
  line_phase_ = snapshot.phase;
  write(render_line(snapshot) + "\n");
}

void progress_display::finish() {
  last_.reset();
  drawn_rows_ = 0;
}

progress_display::screen_size progress_display::size() const {
  winsize seen{};
  if (ioctl(fileno(out_), TIOCGWINSZ, &seen) != 0 || seen.ws_col == 0 || seen.ws_row == 0)
    return {columns_default, rows_default};
  return {seen.ws_col, seen.ws_row};
}

/// Puts the cursor where the block begins. The new block overwrites the old one, to avoid flicker.
/// A screen of another size may have cut or wrapped the old block, or scrolled. Its place is then
/// unknown, so everything is painted again.
std::string progress_display::go_to_block(screen_size now) const {
  if (drawn_rows_ == 0)
    return "";
  if (now == drawn_size_)
    return fmt::format("\x1b[{}A\r", drawn_rows_);
  std::size_t rows_left = now.rows - std::min<std::size_t>(now.rows, drawn_rows_ + 2);
  auto first = events_.end();
  while (first != events_.begin()) {
    const std::size_t rows = std::prev(first)->size() / now.columns + 1;
    if (rows > rows_left)
      break;
    rows_left -= rows;
    --first;
  }
  std::string text = "\x1b[H\x1b[2J";
  for (; first != events_.end(); ++first)
    text += *first + "\n";
  return text;
}

/// Draws the block. Each line clears the rest of its row; the end of a longer old block is cleared.
std::string progress_display::draw_block(screen_size now) {
  drawn_rows_ = 0;
  drawn_size_ = now;
  if (!last_)
    return "\x1b[J";
  // One column stays free, as terminals differ in the cursor's place behind a full line.
  const unsigned columns = std::max(2u, now.columns) - 1;
  std::vector<std::string> lines = render(*last_, columns, color_);
  // The cursor could not return to the begin of a block that is higher than the screen.
  const std::size_t rows = std::max(2u, now.rows - 1);
  if (lines.size() > rows) {
    const std::size_t hidden = lines.size() - rows + 1;
    lines.resize(rows - 1);
    lines.push_back(fmt::format("  and {} more", hidden).substr(0, columns));
  }
  drawn_rows_ = lines.size();
  // A screen that became narrower a moment ago must cut lines, not wrap them.
  std::string text{wrapping_off};
  for (const std::string& line : lines)
    text += line + "\x1b[K\n";
  return text.append("\x1b[J").append(wrapping_on);
}

void progress_display::write(const std::string& text) const {
  std::fwrite(text.data(), 1, text.size(), out_);
  std::fflush(out_);
}

} // namespace troupe
