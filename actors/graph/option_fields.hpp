// Says which node or stage has each option, and finds options that a graph leaves without effect.
#pragma once

#include "actors/graph/options/options.hpp"
#include "base/error.hpp"

#include <span>
#include <string_view>

namespace troupe {

struct plan; // actors/graph/plan.hpp

/// An option and its holder.
struct option_field {
  std::string_view option; ///< The first of its names.
  std::string_view holder; ///< "servers", "checkpoints", "tables", "workers", "reduce", "compress".
  std::string_view field;  ///< The field of the holder.
  /// Returns whether the graph's holder has the value of the command line.
  bool (*held)(const run_options& asked, const plan& made);
};

/// Returns the options that fill nodes and stages. All other options are outside of the graph.
std::span<const option_field> option_fields();

/// Checks that each given option has an effect. Errors: invalid_argument.
result<void> check_effects(const run_options& asked, const plan& made);

} // namespace troupe
