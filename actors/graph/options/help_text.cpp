#include "actors/graph/options/help_text.hpp"

#include "actors/version.hpp" // CMake makes it.

#include "CLI/CLI.hpp"

#include <cstddef>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

namespace troupe {

namespace {

constexpr std::size_t columns_max = 100;

class formatter final : public CLI::Formatter {
public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    const auto text = CLI::Formatter::make_help(app, std::move(name), mode);
    return CLI::detail::find_and_replace(text, "\n\n\n", "\n\n"); // CLI11 leaves more.
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(option->get_description());
  }

  std::string make_subcommand(const CLI::App* command) const override {
    std::ostringstream out;
    CLI::detail::format_help(out, command->get_name(), wrapped(command->get_description()),
                             get_column_width());
    return out.str();
  }

  std::string make_expanded(const CLI::App* group) const override {
    const auto is_shown = [group](const CLI::Option* option) {
      return !option->get_group().empty() && option != group->get_help_ptr();
    };
    return make_group(group->get_group(), false, group->get_options(is_shown));
  }

private:
  // Wraps a text to the right of the options' names. CLI11 indents the lines after the first.
  std::string wrapped(const std::string& text) const {
    const std::size_t width = columns_max - get_column_width();
    std::istringstream words{text};
    std::string lines;
    std::size_t length = 0; // Length of the last line.
    for (std::string word; words >> word; length += word.size()) {
      if (length > 0 && length + 1 + word.size() > width) {
        lines += '\n';
        length = 0;
      } else if (length > 0) {
        lines += ' ';
        ++length;
      }
      lines += word;
    }
    return lines;
  }
};

} // namespace

void format_help(CLI::App& app) { app.formatter(std::make_shared<formatter>()); }

void declare_version(CLI::App& app) {
  app.set_version_flag("--version", app.get_name() + " (Troupe " + troupe_version + ")",
                       "Print the version of Troupe and exit");
}

} // namespace troupe
