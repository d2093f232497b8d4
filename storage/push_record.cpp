#include "storage/push_record.hpp"

#include "base/system/file.hpp"
#include "storage/detail/push_record_bytes.hpp"

#include <system_error>

namespace troupe::storage {

namespace fs = std::filesystem;

bool push_record::same_step(const push_record& other) const {
  push_record mine = *this;
  mine.time_ns = other.time_ns;
  return mine == other;
}

std::string push_record_name(const push_record_header& header) {
  return "chain-" + std::to_string(header.chain.value) + "-generation-"
         + std::to_string(header.generation.value) + "-server-"
         + std::to_string(header.server.index) + "-"
         + std::to_string(header.server.incarnation.value) + detail::push_record_suffix;
}

result<void> begin_push_record(const fs::path& directory, const job_spec& job) {
  if (auto made = detail::make_directory(directory); !made)
    return made;
  const auto file = directory / detail::push_record_job_name;
  std::error_code problem;
  for (const auto& each : fs::directory_iterator{directory, problem})
    if (each.path() == file || each.path().extension() == detail::push_record_suffix)
      return {errc::in_use,
              directory.string() + " holds the record of another run: choose another one"};
  if (problem)
    return detail::io_failure("read", directory, problem);
  return detail::replace_file(file, detail::bytes_of(job));
}

} // namespace troupe::storage
