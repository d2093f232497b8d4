// Declares the options of fields for CLI11.
#include "actors/graph/options/fields.hpp"

#include "CLI/CLI.hpp"

#include <string>
#include <utility>
#include <vector>

namespace troupe {

CLI::Option* declare(CLI::App& group, const field& row, run_options& options) {
  const auto name = row.option.substr(row.option.rfind(',') + 1);
  const auto take = [&options, name, take = row.kind.take](const std::string& word) {
    if (auto taken = take(word, options); !taken)
      throw CLI::ValidationError{name, taken.error().text};
  };
  if (row.kind.form.empty())
    return group
      .add_option(
        row.option,
        [take](const CLI::results_t& words) {
          bool is_on = false;
          if (!CLI::detail::lexical_cast(words.front(), is_on))
            return false;
          take(is_on ? "true" : "false");
          return true;
        },
        row.help)
      ->take_last()
      ->expected(0);
  auto* made = group.add_option(
    row.option,
    [take](const CLI::results_t& words) {
      for (const auto& word : words)
        take(word);
      return true;
    },
    row.help);
  made->type_name(row.kind.form);
  if (row.kind.repeats)
    made->expected(CLI::detail::expected_max_vector_size);
  if (row.traits.last_wins)
    made->take_last();
  return made->default_str(row.traits.shown ? row.traits.shown(options) : row.kind.print(options));
}

namespace {

/// Sets what a command line leaves open. A program that makes its own options has full rates.
void settle_staleness(run_options& options) {
  auto& optimizer = options.optimizer;
  // ftrl's state depends on its rate; a server function gets the staleness, and may use it itself.
  const bool may_lower =
    optimizer.kind != optimizer_kind::ftrl && optimizer.kind != optimizer_kind::user;
  if (options.sync.traits().stale_steps && may_lower && optimizer.full_rate_staleness == 0
      && !options.given.contains("--staleness-lr"))
    optimizer.full_rate_staleness = full_rate_staleness_default;
}

} // namespace

void declare(CLI::App& app, run_options& options, const field_table& table) {
  std::vector<const CLI::Option*> declared;
  for (const auto& [name, fields] : table) {
    if (name.empty())
      continue;
    auto* group = app.add_option_group(name);
    for (const auto& row : fields) {
      auto* made = declare(*group, row, options);
      for (const auto& rival : row.traits.rivals)
        made->excludes(app.get_option(rival));
      if (!row.traits.needed.empty())
        made->needs(app.get_option(row.traits.needed));
      declared.push_back(made);
    }
  }
  app.parse_complete_callback([declared = std::move(declared), &options] {
    for (const auto* option : declared)
      if (option->count() > 0)
        options.given.insert(option->get_name());
    settle_staleness(options);
  });
}

} // namespace troupe
