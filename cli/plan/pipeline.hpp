// Predicts the time of a batch in a pipeline, its idle shares and its memory, and shows them.
#pragma once

#include "cli/plan/line_times.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::planning {

/// With the most parts and samples, a prediction takes some seconds.
constexpr std::uint32_t pipeline_parts_max = 32, pipeline_samples_max = 16'384;

struct pipeline_needs {
  std::vector<line_costs::part> parts; ///< Times for a whole batch.
  micro_schedule schedule = {};
  std::uint32_t samples = 1; ///< Of a batch.
  std::uint32_t micros = 1;  ///< Micro-batches. At most `samples`.
  /// Bytes of a batch's activations at each cut; one value: all cuts have it; none: unknown.
  std::vector<double> activation_bytes;
  double network_per_second = 0; ///< Bytes, for each link, in each direction. 0: no time.
};

/// Parses "20ms/40ms,25ms/50ms": the times of forward and backward of each part.
/// Errors: invalid_argument.
result<std::vector<line_costs::part>> parse_parts(const std::string& text);

/// Parses "256KB" or "256KB,64KB". Errors: as for parse_bytes().
result<std::vector<double>> parse_activations(const std::string& text);

/// Checks counts that depend on each other. Errors: invalid_argument, with the option at fault.
result<void> check(const pipeline_needs& needs);

struct pipeline_prediction {
  line_times line;
  double idle = 0; ///< Mean of the parts' idle shares.
};

/// Requires: check(). Errors: as of virtual_line::run().
result<pipeline_prediction> predict(const pipeline_needs& needs);

/// Names the parts and links that set the pace: the time of a batch depends on them most. Times in
/// use would not tell. With 1f1b a part waits for the way to the last part and back, and with
/// fill-drain the two directions of a link are never in use at one time.
struct pipeline_pace {
  /// "part 0" or "link 0-1". The first has the largest effect, the others at least 0.8 of it.
  std::vector<std::string> names;
  double effect = 0; ///< Of the first: growth of the batch's time / growth of its own. 0 to 1.
};

/// Requires: check(). Errors: as for predict().
result<pipeline_pace> pace_of(const pipeline_needs& needs);

/// Returns (P - 1) / (M + P - 1): the idle share if all parts need the same time and links none.
double idle_of_equal_parts(std::size_t parts, std::uint32_t micros);

/// Returns the prediction for people, with a table of other numbers of micro-batches; several
/// lines. Requires: check(). Errors: as for predict().
result<std::string> pipeline_text(const pipeline_needs& needs);

} // namespace troupe::planning
