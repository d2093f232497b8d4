#include "base/log.hpp"

#include "base/quote.hpp"
#include "base/system/descriptor.hpp"

#include "fmt/format.h"
#include "spdlog/pattern_formatter.h"
#include "spdlog/sinks/base_sink.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <utility>

namespace troupe {

namespace {

constexpr std::array<std::string_view, 6> level_names{"trace", "debug", "info",
                                                      "warn",  "error", "fatal"};
static_assert(static_cast<int>(log_level::fatal) == SPDLOG_LEVEL_CRITICAL);

constexpr const char* line_pattern = "%Y-%m-%dT%H:%M:%S.%e %v";
/// Most characters of a text. Texts of others are quoted where they are read.
constexpr std::size_t text_max = 16 << 10;
constexpr std::string_view time_form = "0000-00-00T00:00:00.000 ";

/// Returns what follows the time: spdlog's own words for levels differ.
std::string behind_time(log_level level, std::string_view member, std::string_view text) {
  return fmt::format("{} {}: {}", level_names.at(static_cast<std::size_t>(level)), member,
                     printable(text, text_max));
}

/// spdlog's own rotating sink writes to a null FILE once it could not open a file again, as on a
/// full disk. This one keeps the old file until the new one can be opened.
class limited_file final : public spdlog::sinks::base_sink<std::mutex> {
public:
  explicit limited_file(log_options options) : options_(std::move(options)) {
    set_pattern_(line_pattern);
  }

private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (!file_)
      open();
    make_room(line.size());
    if (line_is_cut_)
      write("\n");
    write({line.data(), line.size()});
  }
  void flush_() override {
    if (file_)
      make_room(0);
  }

  /// Begins a new file if this one, with `more` bytes, would be too large.
  void make_room(std::size_t more) {
    struct stat now {};
    if (fstat(file_.get(), &now) == 0 && now.st_size > 0
        && static_cast<std::uint64_t>(now.st_size) + more > options_.bytes_max)
      begin_anew();
  }

  void write(std::string_view rest) {
    while (!rest.empty()) {
      const auto written = ::write(file_.get(), rest.data(), rest.size());
      if (written < 0 && errno != EINTR)
        throw spdlog::spdlog_ex("cannot write its log", errno);
      rest.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
      line_is_cut_ = !rest.empty() && (line_is_cut_ || written > 0);
    }
  }

  void open() {
    constexpr int how = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK;
    descriptor opened{::open(options_.file.c_str(), how, 0644)};
    if (!opened && file_)
      return;
    if (!opened)
      throw spdlog::spdlog_ex("cannot open its log", errno);
    file_ = std::move(opened);
    line_is_cut_ = false;
    if (!options_.takes_output)
      return;
    for (const int output : {STDOUT_FILENO, STDERR_FILENO})
      dup2(file_.get(), output);
  }

  void begin_anew() {
    auto moved = options_.file;
    moved += ".1";
    std::error_code failed;
    std::filesystem::rename(options_.file, moved, failed);
    if (!failed || failed == std::errc::no_such_file_or_directory) // Someone may have removed it.
      open();
  }

  log_options options_;
  descriptor file_;
  bool line_is_cut_ = false; ///< A full disk took only the beginning of the last line.
};

} // namespace

result<log_level> parse_log_level(std::string_view text) {
  if (text == "off")
    return log_level::fatal;
  const auto last = level_names.end() - 1;
  const auto found = std::find(level_names.begin(), last, text);
  if (found == last)
    return {errc::invalid_argument,
            "the log level is trace, debug, info, warn, error or off, not " + quote(text)};
  return static_cast<log_level>(found - level_names.begin());
}

std::string to_string(log_level level) {
  return level == log_level::fatal ? "off"
                                   : std::string{level_names.at(static_cast<std::size_t>(level))};
}

std::string log_line(log_level level, std::string_view member, std::string_view text) {
  const auto content = behind_time(level, member, text);
  spdlog::memory_buf_t line;
  spdlog::pattern_formatter{line_pattern}.format({"", {}, content}, line);
  return fmt::to_string(line);
}

std::optional<log_level> level_of_line(std::string_view line) {
  const auto fits = [](char wanted, char is) {
    return wanted == '0' ? '0' <= is && is <= '9' : wanted == is;
  };
  if (line.size() < time_form.size()
      || !std::equal(time_form.begin(), time_form.end(), line.begin(), fits))
    return std::nullopt;
  const auto rest = line.substr(time_form.size());
  const auto found = std::ranges::find(level_names, rest.substr(0, rest.find(' ')));
  if (found == level_names.end() || rest.find(": ") == rest.npos)
    return std::nullopt;
  return static_cast<log_level>(found - level_names.begin());
}

std::string text_of_line(const std::string& line) {
  return level_of_line(line) ? line.substr(line.find(": ", time_form.size()) + 2) : line;
}

log_file::log_file(log_options options)
    : options_(options), sink_(std::make_shared<limited_file>(std::move(options))) {}

result<void> log_file::write(log_level level, std::string_view text) const {
  if (level < options_.least)
    return {};
  const auto content = behind_time(level, options_.member, text);
  try {
    sink_->log({"", static_cast<spdlog::level::level_enum>(level), content});
  } catch (const spdlog::spdlog_ex& why) {
    return {errc::io_failed, why.what()};
  }
  return {};
}

void log_file::keep_to_size() const { sink_->flush(); }

} // namespace troupe
