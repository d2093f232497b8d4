#include "actors/graph/options/recording.hpp"

#include "base/log.hpp"
#include "storage/trace.hpp"

#include <filesystem>
#include <string>
#include <system_error>

namespace troupe {

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

std::optional<record_options> recording_of(const run_options& options, const notice_sink& tell) {
  if (!options.record_directory)
    return std::nullopt;
  return record_options{*options.record_directory, [tell](const std::string& why) {
                          if (tell)
                            tell({log_level::error, {}, {}, why});
                        }};
}

router_options routing_of(const run_options& options) {
  router_options how;
  how.reads = options.servers.reads;
  if (options.record_directory)
    how.read_patience = {};
  return how;
}

} // namespace troupe
