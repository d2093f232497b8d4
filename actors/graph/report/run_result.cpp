#include "actors/graph/report/run_result.hpp"

#include "base/quote.hpp"
#include "storage/tensor_file.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <utility>

namespace troupe {

result<void> export_parameters(const std::filesystem::path& file, const job_spec& job,
                               std::vector<std::vector<float>> parameters) {
  std::vector<storage::tensor> tensors;
  for (std::size_t i = 0; i < job.tables.size(); ++i)
    tensors.push_back({job.tables[i].name, job.tables[i].shape, std::move(parameters[i])});
  return storage::write_tensors(file, tensors);
}

std::string text_of_stop(std::uint64_t checkpoint, bool is_saved, const run_options& options,
                         bool exported) {
  std::string text = "stopped; ";
  if (checkpoint == 0) {
    text += "no checkpoint was written";
  } else {
    if (!is_saved)
      text += fmt::format("the last checkpoint was not written, so work after checkpoint {} is "
                          "lost; ",
                          checkpoint);
    const auto path = printable(options.checkpoint_directory.value_or(""));
    const bool is_word = path.find_first_of(" '\"\\$`&|;<>()*?[]#~!{}") == std::string::npos;
    text += "continue with --resume --checkpoint " + (is_word ? path : "'" + path + "'");
  }
  if (options.export_file && !exported)
    text += "; " + printable(*options.export_file)
            + " was not written: only a finished run exports parameters";
  return text;
}

job_event end_of_run(int status, const std::optional<failure>& reason) {
  return {event_kind::run_ended,
          {{"status", static_cast<std::uint64_t>(status)}, {"reason", reason ? reason->text : ""}}};
}

std::string text_of(const evaluation& found) {
  std::string text;
  for (const auto& each : figures_of(found))
    text += (text.empty() ? "" : ", ") + text_of(each);
  return text.empty() ? text_of(measure{"loss", found.loss}) : text;
}

std::string summary(const run_statistics& statistics) {
  const auto last = statistics.last_evaluation();
  const auto& lost = statistics.recoveries();
  const auto recovered = std::count_if(lost.begin(), lost.end(),
                                       [](const auto& x) { return x.recovered_at.has_value(); });
  std::string text;
  if (last)
    text += fmt::format("test {} after {} of {} epochs\n", text_of(last->found), last->epoch,
                        last->epochs);
  if (!lost.empty())
    text += fmt::format("{} of {} lost processes recovered\n", recovered, lost.size());
  return text;
}

} // namespace troupe
