// Says which node or stage has each option, and finds options that a graph leaves without effect.
#pragma once

#include "actors/graph/options/options.hpp"
#include "base/error.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

struct plan; // actors/graph/plan.hpp

/// A part of a graph that has options, such as its servers or its codec.
struct option_holder {
  /// Returns the reason why the graph has no such part for the options; nullopt if it has one.
  std::optional<std::string> (*why_missing)(const run_options& asked, const plan& made);
  /// Returns its name in messages, "the servers of model".
  std::string (*name)(const plan& made);
};

/// An option and its holder.
struct option_field {
  std::string_view option; ///< The first of its names.
  const option_holder* holder;
  /// Returns whether the graph's holder has the value of the command line.
  bool (*held)(const run_options& asked, const plan& made);
};

/// Returns the options that fill nodes and stages. All other options are outside of the graph.
std::span<const option_field> option_fields();

/// Checks that each given option has an effect. Errors: invalid_argument.
result<void> check_effects(const run_options& asked, const plan& made);

} // namespace troupe
