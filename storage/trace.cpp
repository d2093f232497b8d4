#include "storage/trace.hpp"

#include "base/system/file.hpp"
#include "storage/detail/trace_bytes.hpp"

#include <system_error>

namespace troupe::storage {

namespace fs = std::filesystem;

bool trace_entry::same_step(const trace_entry& other) const {
  trace_entry mine = *this;
  mine.time_ns = other.time_ns;
  return mine == other;
}

std::string trace_name(const trace_header& header) {
  return "chain-" + std::to_string(header.shard.value) + "-generation-"
         + std::to_string(header.generation.value) + "-server-"
         + std::to_string(header.server.index) + "-"
         + std::to_string(header.server.incarnation.value) + detail::trace_suffix;
}

result<void> begin_trace(const fs::path& directory, const job_spec& job) {
  if (auto made = make_directory(directory); !made)
    return made;
  const auto file = directory / detail::trace_job_name;
  std::error_code problem;
  for (const auto& each : fs::directory_iterator{directory, problem})
    if (each.path() == file || each.path().extension() == detail::trace_suffix)
      return {errc::in_use,
              directory.string() + " holds the record of another run: choose another one"};
  if (problem)
    return io_failure("read", directory, problem);
  return replace_file(file, detail::bytes_of(job));
}

} // namespace troupe::storage
