#include "actors/protocol/coordinator/straggler_detector.hpp"

namespace troupe {

result<void> validate(const straggler_options& options) {
  const auto invalid = [](const char* text) {
    return result<void>{errc::invalid_argument, std::string{"straggler options: "} + text};
  };
  const auto none = std::chrono::milliseconds::zero();
  if (options.window_steps == 0 || options.window_time <= none
      || !(options.window_time_steps >= 0.0))
    return invalid("window_steps and window_time must be positive, window_time_steps at least 0");
  if (options.slow_windows == 0 || options.host_evictions == 0)
    return invalid("slow_windows and host_evictions must be positive");
  if (!(options.slow_ratio >= 1.0) || !(options.slow_deviations >= 0.0))
    return invalid("slow_ratio must be at least 1, slow_deviations at least 0");
  if (options.reporting_min < 3)
    return invalid("reporting_min must be at least 3: of two, neither is the slow one");
  if (options.silence <= none || options.first_step < options.silence)
    return invalid("silence must be positive, first_step at least as long");
  if (!(options.silence_steps >= 1.0) || !(options.stalled_ratio >= 1.0))
    return invalid("silence_steps and stuck_ratio must be at least 1");
  if (!(options.brake_rise > 1.0) || options.long_run <= none)
    return invalid("brake_rise must be above 1, long_run positive");
  for (const auto share : {options.brake_share, options.out_share})
    if (!(share >= 0.0 && share <= 1.0))
      return invalid("brake_share and out_share must be in [0, 1]");
  for (const auto time :
       {options.slow_excess, options.brake_time, options.force_interval, options.recovery,
        options.eviction_interval, options.probation, options.host_memory, options.host_hold})
    if (time < none)
      return invalid("a time is negative");
  if (options.probation_max < options.probation || options.healthy_time <= none)
    return invalid("probation_max must not be below probation, healthy_time must be positive");
  if (options.round <= none || !(options.late_ratio >= 1.0) || options.late_memory <= none)
    return invalid("round and late_memory must be positive, late_ratio at least 1");
  return {};
}

straggler_options hurried(straggler_options options, double speed) {
  for (auto* time :
       {&options.window_time, &options.silence, &options.first_step, &options.long_run,
        &options.brake_time, &options.force_interval, &options.recovery, &options.eviction_interval,
        &options.probation, &options.probation_max, &options.healthy_time, &options.host_memory,
        &options.host_hold, &options.round, &options.late_memory})
    *time = std::chrono::duration_cast<std::chrono::milliseconds>(*time / speed);
  return options;
}

} // namespace troupe
