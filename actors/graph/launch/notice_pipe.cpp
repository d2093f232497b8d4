#include "actors/graph/launch/notice_pipe.hpp"

#include "base/quote.hpp"

#include "fmt/format.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
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

/// Takes the next word off, with the space behind it.
std::string_view take_word(std::string_view& line) {
  const auto word = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(line.size(), word.size() + 1));
  return word;
}

bool take_number(std::string_view& line, std::uint32_t& number) {
  const auto word = take_word(line);
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), number);
  return problem == std::errc{} && end == word.data() + word.size();
}

std::optional<notice> parse_notice(std::string_view line) {
  std::uint32_t kind = 0;
  notice what;
  if (!take_number(line, kind) || !take_number(line, what.from.index)
      || kind > static_cast<unsigned>(role::worker))
    return std::nullopt;
  what.from.role = static_cast<role>(kind);
  what.topic = take_word(line);
  what.text = line;
  if (what.topic.empty())
    return std::nullopt;
  return what;
}

} // namespace

std::string encode(const notice& what) {
  return fmt::format("{} {} {} {}\n", static_cast<int>(what.from.role), what.from.index,
                     what.topic.substr(0, topic_bytes_max), printable(what.text, text_max));
}

std::vector<notice> notice_reader::read(std::string_view bytes) {
  rest_ += bytes;
  std::vector<notice> all;
  std::size_t begin = 0;
  for (auto end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', begin)) {
    if (auto what = parse_notice(std::string_view{rest_}.substr(begin, end - begin)))
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

std::vector<notice> notice_pipe::read() {
  std::vector<notice> all;
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

void notice_writer::say(const std::string& topic, const std::string& text) const {
  if (descriptor_ < 0)
    return;
  const auto line = encode({self_, topic, text});
  // The launcher keeps the reading end as long as it lives, and this process ends with it.
  [[maybe_unused]] const auto written = write(descriptor_, line.data(), line.size());
}

} // namespace troupe
