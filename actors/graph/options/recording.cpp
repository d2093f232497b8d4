#include "actors/graph/options/recording.hpp"

#include "base/log.hpp"
#include "storage/trace.hpp"

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace troupe {

result<void> validate_recording(const run_options& options) {
  const auto invalid = [](std::string text) {
    return result<void>{errc::invalid_argument, std::move(text)};
  };
  if (options.replay_seconds && options.compare_file)
    return invalid("--until stops within the run, and --compare needs its end: leave one out");
  if (options.replay_directory && options.mode() == run_mode::simulation)
    return invalid("--replay computes a record again, in its own order: leave out --simulate");
  if (!options.record_directory)
    return {};
  if (options.sync.traits().one_memory)
    return invalid("--sync " + to_string(options.sync)
                   + " applies in no order that could be recorded: leave out --record");
  if (options.resume || options.import_file)
    return invalid("--record begins with the initial values: leave out --resume and --import");
  return {};
}

result<void> begin_recording(const run_options& options, const job_spec& job) {
  if (!options.record_directory)
    return {};
  const auto& directory = *options.record_directory;
  if (!options.join)
    return storage::begin_trace(directory, job);
  // The main host writes the job's file there.
  std::error_code problem;
  std::filesystem::create_directories(directory, problem);
  if (problem)
    return {errc::io_failed, "cannot make " + directory + ": " + problem.message()};
  return {};
}

std::optional<record_options> recording_of(const run_options& options, const log_sink& log) {
  if (!options.record_directory)
    return std::nullopt;
  return record_options{*options.record_directory,
                        [log](const std::string& why) { log(log_level::error, why); }};
}

router_options routing_of(const run_options& options) {
  router_options how;
  how.reads = options.servers.reads;
  if (options.record_directory)
    how.read_patience = {};
  return how;
}

} // namespace troupe
