#include "actors/graph/run_result.hpp"

#include "serialization/quote.hpp"
#include "storage/tensor_file.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

namespace troupe {

result<void> export_parameters(const std::filesystem::path& file, const job_spec& job,
                               std::vector<std::vector<float>> parameters) {
  std::vector<storage::tensor> tensors;
  for (std::size_t i = 0; i < job.tables.size(); ++i)
    tensors.push_back({job.tables[i].name, job.tables[i].shape, std::move(parameters[i])});
  return storage::write_tensors(file, tensors);
}

result<void> write_report(const std::filesystem::path& file, const std::string& json) {
  std::ofstream out{file};
  if (!(out << json << '\n' << std::flush))
    return {errc::io_failed, "cannot write " + file.string() + ": " + std::strerror(errno)};
  return {};
}

std::string how_to_continue(std::uint64_t checkpoint, const std::filesystem::path& directory) {
  if (checkpoint == 0)
    return "nothing had been saved";
  const auto path = printable(directory.string());
  const bool is_word = path.find_first_of(" '\"\\$`&|;<>()*?[]#~!{}") == std::string::npos;
  return "continue with --resume --checkpoint " + (is_word ? path : "'" + path + "'");
}

std::string summary(const run_statistics& statistics, time_point now) {
  const auto last = statistics.snapshot(now);
  const auto& lost = statistics.recoveries();
  const auto recovered = std::count_if(lost.begin(), lost.end(),
                                       [](const auto& x) { return x.recovered_at.has_value(); });
  std::string text;
  if (last.accuracy)
    text += fmt::format("test accuracy {:.4f} after {:.4g} of {} passes\n", *last.accuracy,
                        last.pass, last.passes);
  if (!lost.empty())
    text += fmt::format("{} of {} lost processes recovered\n", recovered, lost.size());
  return text;
}

} // namespace troupe
