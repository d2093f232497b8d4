#include "actors/graph/report/run_result.hpp"

#include "base/quote.hpp"
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

std::string text_of_stop(std::uint64_t checkpoint, const run_options& options, bool exported) {
  std::string text = "stopped; ";
  if (checkpoint == 0) {
    text += "nothing had been saved";
  } else {
    const auto path = printable(options.checkpoint_directory.value_or("").string());
    const bool is_word = path.find_first_of(" '\"\\$`&|;<>()*?[]#~!{}") == std::string::npos;
    text += "continue with --resume --checkpoint " + (is_word ? path : "'" + path + "'");
  }
  if (options.export_file && !exported)
    text += "; " + printable(options.export_file->string())
            + " was not written: only a finished run exports parameters";
  return text;
}

std::vector<std::string> lines_of_missed(const std::vector<kill_plan>& kills) {
  std::vector<std::string> lines;
  for (const auto& plan : kills)
    lines.push_back(fmt::format(
      "--kill: {} was not killed: the run ended first (planned after {:.4g} s of training)",
      to_string(plan.who), std::chrono::duration<double>(plan.after).count()));
  return lines;
}

std::string summary(const run_statistics& statistics) {
  const auto judged = statistics.last_evaluation();
  const auto& lost = statistics.recoveries();
  const auto recovered = std::count_if(lost.begin(), lost.end(),
                                       [](const auto& x) { return x.recovered_at.has_value(); });
  std::string text;
  if (judged)
    text += fmt::format("test accuracy {:.4f} after {} of {} passes\n", judged->accuracy,
                        judged->epoch, judged->epochs);
  if (!lost.empty())
    text += fmt::format("{} of {} lost processes recovered\n", recovered, lost.size());
  return text;
}

} // namespace troupe
