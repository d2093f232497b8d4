// Explains command lines that CLI11 cannot parse.
#pragma once

#include "base/near_name.hpp"
#include "base/path_fault.hpp"
#include "base/quote.hpp"

#include "CLI/CLI.hpp"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Returns "; did you mean 'NAME'?" if one of `names` is near to `word`, else an empty text.
inline std::string proposal(std::string_view word, std::span<const std::string> names) {
  const auto near = near_name(word, names);
  return near.empty() ? "" : "; did you mean " + quote(near) + "?";
}

/// Refuses `--name=`, for which CLI11 takes the next word as the value. Throws
/// CLI::ArgumentMismatch.
inline void require_values(std::span<char* const> words) {
  for (const std::string_view word : words)
    if (word.starts_with("--") && word.find('=') == word.size() - 1)
      throw CLI::ArgumentMismatch{std::string{word} + " has no value"};
}

/// Refuses an empty word that is no value of an option of `app`, which has options only: CLI11
/// takes it for the name of a group, for ever. Throws CLI::ArgumentMismatch.
inline void refuse_empty_words(const CLI::App& app, std::span<char* const> words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto* before = app.get_option_no_throw(words[i - 1]);
    const bool is_value = before != nullptr && before->get_items_expected_max() > 0;
    if (*words[i] == '\0' && !is_value)
      throw CLI::ArgumentMismatch{"an argument is empty"};
  }
}

/// Returns the options of `app` and of its groups that its help names, each with its dashes.
inline std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options())
    if (!option->get_group().empty()) // Others are internal.
      for (const auto& name : option->get_lnames())
        names.push_back("--" + name);
  for (const auto* group : app.get_subcommands([](const CLI::App*) { return true; }))
    if (group->get_name().empty())
      std::ranges::copy(option_names(*group), std::back_inserter(names));
  return names;
}

/// Returns "--name is given 2 times: give it once" for an option of `app` or of its groups that
/// occurs more often than it may; else an empty text.
inline std::string repeated_option(const CLI::App& app) {
  for (const auto* option : app.get_options()) {
    const auto times = option->count();
    if (option->get_items_expected_max() == 1 && times > 1
        && option->get_multi_option_policy() == CLI::MultiOptionPolicy::Throw)
      return option->get_name() + " is given " + std::to_string(times) + " times: give it once";
  }
  for (const auto* group : app.get_subcommands([](const CLI::App*) { return true; }))
    if (group->get_name().empty())
      if (auto found = repeated_option(*group); !found.empty())
        return found;
  return {};
}

/// Returns the fault of a command line that `app`, a program or a command, did not parse. For
/// an unknown option it proposes one with a similar name.
inline std::string problem_text(const CLI::App& app, const CLI::ParseError& problem) {
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&problem) != nullptr)
    if (auto repeated = repeated_option(app); !repeated.empty())
      return repeated;
  const auto unknown = app.remaining(true);
  if (unknown.empty() || dynamic_cast<const CLI::ExtrasError*>(&problem) == nullptr)
    return with_short_words(problem.what());
  const auto option = std::ranges::find_if(
    unknown, [](const auto& word) { return word.size() > 1 && word.starts_with('-'); });
  if (option == unknown.end())
    return "unexpected argument " + quote(unknown.front());
  const auto word = option->substr(0, option->find('='));
  return "no option " + quote(word) + proposal(word, option_names(app));
}

} // namespace troupe
