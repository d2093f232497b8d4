#include "actors/training/evaluators.hpp"

#include "actors/training/touched_rows.hpp"
#include "base/exception_text.hpp"
#include "base/quote.hpp"
#include "base/user_code.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <stdexcept>
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
  "channel_wait_seconds",
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
  "ports",
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

/// Calls `call`, which is marked as code of the program. Exceptions that it throws name the node,
/// unless it is the only one.
template <class Call>
auto named(const std::string& node, bool is_only, Call call) {
  const user_call here{{"evaluator", node}};
  return is_only ? call() : titled(node, call);
}

/// Copies the rows of `wanted` out of `values`, the rows of `all`. Both have ascending keys, and
/// `all` has those of `wanted`.
std::vector<float> rows_of(std::span<const std::uint64_t> wanted,
                           std::span<const std::uint64_t> all, std::span<const float> values) {
  const auto width = values.size() / all.size();
  std::vector<float> found;
  found.reserve(wanted.size() * width);
  auto at = all.begin();
  for (const auto key : wanted) {
    at = std::lower_bound(at, all.end(), key);
    const auto row = values.subspan(static_cast<std::size_t>(at - all.begin()) * width, width);
    found.insert(found.end(), row.begin(), row.end());
  }
  return found;
}

/// Adds the figures of the evaluator `node` to the measures of the first one.
void add_measures(const std::string& node, const evaluation& found, evaluation& into) {
  const auto add = [&](std::string_view name, double value) {
    into.measures.push_back({fmt::format("{}.{}", node, name), value});
  };
  if (!found.accuracy && found.measures.empty())
    add("loss", found.loss);
  if (found.accuracy)
    add("accuracy", *found.accuracy);
  if (found.auc)
    add("auc", *found.auc);
  for (const auto& each : found.measures)
    add(each.name, each.value);
  if (!found.note.empty())
    into.note += (into.note.empty() ? "" : "; ") + node + ": " + found.note;
}

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

void evaluators::make() {
  for (auto i = made_.size(); i < nodes_.size(); ++i)
    named(nodes_[i].name, nodes_.size() == 1, [&] {
      auto fresh = nodes_[i].make();
      if (!fresh)
        throw std::runtime_error("the graph's evaluator factory made no evaluator");
      made_.push_back(std::move(fresh));
    });
}

std::vector<row_keys> evaluators::rows(const job_spec& job) {
  make();
  needed_.clear();
  for (std::size_t i = 0; i < made_.size(); ++i)
    named(nodes_[i].name, made_.size() == 1, [&] {
      needed_.push_back(touched_rows(job, [&](key_lists touched) { made_[i]->keys(touched); }));
    });
  all_ = touched_rows(job, [&](key_lists touched) {
    for (const auto& rows : needed_)
      for (const auto& x : rows)
        touched[x.table.value].insert(touched[x.table.value].end(), x.span().begin(),
                                      x.span().end());
  });
  return all_;
}

evaluation evaluators::evaluate(const_tensors parameters) {
  make();
  evaluation all;
  for (std::size_t i = 0; i < made_.size(); ++i) {
    std::vector<std::span<const float>> own(parameters.begin(), parameters.end());
    std::vector<std::vector<float>> parts(all_.size());
    for (std::size_t t = 0; t < all_.size(); ++t)
      if (const auto& wanted = needed_[i][t]; wanted.count < all_[t].count) {
        auto& values = own[wanted.table.value];
        parts[t] = rows_of(wanted.span(), all_[t].span(), values);
        values = parts[t];
      }
    named(nodes_[i].name, made_.size() == 1, [&] {
      auto found = made_[i]->evaluate(own);
      if (const auto fine = check_measures(found.measures); !fine)
        throw std::runtime_error(fine.error().text);
      if (i == 0)
        all = std::move(found);
      else
        add_measures(nodes_[i].name, found, all);
    });
  }
  return all;
}

} // namespace troupe
