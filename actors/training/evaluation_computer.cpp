#include "actors/training/evaluation_computer.hpp"

#include "actors/training/touched_rows.hpp"
#include "base/exception_text.hpp"
#include "base/quote.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

constexpr std::size_t measure_name_max = 32;

/// Lists the fields of events and the keys of the report, beside which measures stand.
constexpr auto taken_names = std::to_array<std::string_view>({
  "accuracy",
  "auc",
  "bytes",
  "command",
  "counts",
  "epoch",
  "epochs",
  "event",
  "idle_seconds",
  "lines",
  "longest_pause_ms",
  "loss",
  "loss_curve",
  "nodes",
  "optimizer",
  "peak_rss_bytes",
  "pulls",
  "pushes",
  "recoveries",
  "reducers",
  "request_ms",
  "samples_per_second",
  "seconds",
  "seed",
  "servers",
  "staleness_clocks",
  "staleness_versions",
  "sync",
  "test_accuracy",
  "test_auc",
  "test_loss",
  "text",
  "time",
  "train_loss",
  "unix",
  "waiting_pulls",
  "window_wait_seconds",
  "wire_bytes",
  "workers",
});

} // namespace

result<void> check_measures(const std::vector<measure>& measures) {
  constexpr std::string_view characters = "abcdefghijklmnopqrstuvwxyz0123456789_";
  const auto wrong = [](const std::string& name, std::string_view why) {
    return result<void>{errc::invalid_argument, fmt::format("the measure {} {}", quote(name), why)};
  };
  for (const auto& each : measures) {
    const auto& name = each.name;
    if (name.empty() || name.find_first_not_of(characters) != std::string::npos)
      return wrong(name, "has a wrong name: use the characters a-z, 0-9 and _");
    if (name.size() > measure_name_max)
      return wrong(name, fmt::format("has a name of {} characters: use at most {}", name.size(),
                                     measure_name_max));
    if (std::ranges::find(taken_names, name) != taken_names.end())
      return wrong(name, "has the name of another figure of the report: rename it");
    if (std::ranges::count(measures, name, &measure::name) > 1)
      return wrong(name, "is there twice: rename one");
  }
  return {};
}

void evaluate_with(evaluator& model, evaluation_message& into) {
  const std::vector<std::span<const float>> spans(into.parameters.begin(), into.parameters.end());
  try {
    auto found = model.evaluate(spans);
    if (const auto fine = check_measures(found.measures); !fine)
      into.failed = fine.error().text;
    else
      into.found = std::move(found);
  } catch (...) {
    into.failed = exception_text();
  }
}

evaluation_computer::evaluation_computer(job_spec job, evaluator_factory make)
    : job_(std::move(job)), make_(std::move(make)) {}

result<pull_request> evaluation_computer::question() {
  pull_request everything;
  everything.latest = true;
  for (std::uint32_t i = 0; i < job_.tables.size(); ++i)
    if (!job_.tables[i].is_sparse())
      everything.ranges.push_back({{i}, 0, job_.tables[i].size()});
  try {
    if (make_ && !model_)
      model_ = make_();
    if (make_ && !model_)
      return {errc::invalid_argument, "the graph's evaluator factory made no evaluator"};
    if (model_)
      everything.rows = touched_rows(job_, [&](key_lists touched) { model_->keys(touched); });
  } catch (...) {
    return {errc::invalid_argument, exception_text()};
  }
  return everything;
}

evaluation_message evaluation_computer::evaluate(std::uint64_t number, const pull_reply& answer) {
  evaluation_message made;
  made.number = number;
  for (const auto& table : job_.tables)
    made.parameters.emplace_back(table.size());
  for (const auto& x : answer.pieces)
    std::memcpy(made.parameters[x.where.table.value].data() + x.where.first, x.values.get(),
                x.where.count * sizeof(float));
  for (const auto& x : answer.rows)
    made.parameters[x.where.table.value].assign(x.values.get(), x.values.get() + x.where.floats());
  if (model_)
    evaluate_with(*model_, made);
  return made;
}

} // namespace troupe
