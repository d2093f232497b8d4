#include "actors/graph/processes/notice_pipe.hpp"

#include "base/number_from.hpp"
#include "base/quote.hpp"

#include "fmt/format.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <optional>

namespace troupe {

namespace {

/// Most characters of a text; the longest have four bytes.
constexpr std::size_t text_max = 900;
constexpr std::size_t topic_bytes_max = 100;
static_assert(4 * text_max + topic_bytes_max + 100 < PIPE_BUF);
/// Most reads in one call, so that a process that always writes does not hold up the launcher.
constexpr int reads_max = 16;
/// The word in the place of a topic, for a line without one.
constexpr std::string_view no_topic = "-";
/// Attempts to write a line into a full pipe, each after a wait of `room_wait_ms` at most.
constexpr int attempts_max = 10;
constexpr int room_wait_ms = 100;

/// Takes the next word off, with the space behind it.
std::string_view take_word(std::string_view& line) {
  const auto word = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(line.size(), word.size() + 1));
  return word;
}

/// Returns the line of a kind: 0 for a notice, else the kind of the word plus 1.
std::string line_of(process_name from, int kind, std::string_view topic, const std::string& text) {
  return fmt::format("{} {} {} {} {}\n", static_cast<int>(from.role), from.index, kind,
                     topic.empty() ? no_topic : topic.substr(0, topic_bytes_max),
                     printable(text, text_max));
}

std::optional<told> parse_line(std::string_view line) {
  const auto take_number = [&] { return number_from<std::uint32_t>(take_word(line)); };
  const auto as = take_number();
  const auto index = take_number();
  const auto kind = take_number();
  const auto topic = take_word(line);
  if (!as || !started_role(*as) || !index || !kind
      || *kind > static_cast<unsigned>(word_kind_max) + 1 || topic.empty())
    return std::nullopt;
  const process_name from{*started_role(*as), *index};
  if (*kind > 0)
    return process_word{from, static_cast<word_kind>(*kind - 1), std::string{line}};
  return notice{log_level::warn, topic == no_topic ? "" : std::string{topic}, to_string(from),
                std::string{line}};
}

} // namespace

std::string encode(process_name from, const notice& what) {
  return line_of(from, 0, what.topic, what.text);
}

std::string encode(const process_word& what) {
  return line_of(what.from, static_cast<int>(what.kind) + 1, {}, what.text);
}

std::vector<told> notice_reader::read(std::string_view bytes) {
  rest_ += bytes;
  std::vector<told> all;
  std::size_t begin = 0;
  for (auto end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', begin)) {
    if (auto what = parse_line(std::string_view{rest_}.substr(begin, end - begin)))
      all.push_back(*std::move(what));
    begin = end + 1;
  }
  rest_.erase(0, begin);
  if (rest_.size() > PIPE_BUF) // No notice_writer wrote this line.
    rest_.clear();
  return all;
}

notice_pipe::notice_pipe() {
  if (pipe2(ends_, O_CLOEXEC | O_NONBLOCK) != 0)
    ends_[0] = ends_[1] = -1;
}

notice_pipe::~notice_pipe() {
  for (const int end : ends_)
    if (end >= 0)
      close(end);
}

std::vector<told> notice_pipe::read() {
  std::vector<told> all;
  if (ends_[0] < 0)
    return all;
  std::array<char, PIPE_BUF> bytes{};
  for (int i = 0; i < reads_max; ++i) {
    const auto got = ::read(ends_[0], bytes.data(), bytes.size());
    if (got <= 0)
      break;
    auto some = lines_.read({bytes.data(), static_cast<std::size_t>(got)});
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

notice_writer::notice_writer(int descriptor, process_name self)
    : descriptor_(descriptor), self_(self) {
  if (descriptor_ >= 0)
    fcntl(descriptor_, F_SETFD, FD_CLOEXEC);
}

bool notice_writer::send(const std::string& line) const {
  // The launcher keeps the reading end as long as it lives, and this process ends with it.
  return descriptor_ < 0 || write(descriptor_, line.data(), line.size()) > 0;
}

void notice_writer::say(const notice& what) const { (void)send(encode(self_, what)); }

bool notice_writer::try_to_tell(word_kind kind, const std::string& text) const {
  return send(encode(process_word{self_, kind, text}));
}

void notice_writer::tell(word_kind kind, const std::string& text) const {
  for (int i = 0; i < attempts_max && !try_to_tell(kind, text); ++i) {
    pollfd room{descriptor_, POLLOUT, 0};
    poll(&room, 1, room_wait_ms);
  }
}

} // namespace troupe
