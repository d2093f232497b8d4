#include "actors/graph/replay_run.hpp"

#include "actors/clock.hpp"
#include "actors/graph/job_of_graph.hpp"
#include "actors/graph/run_result.hpp"
#include "actors/training/replay.hpp"
#include "storage/push_history.hpp"
#include "storage/tensor_file.hpp"

#include "fmt/format.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace troupe {

namespace {

constexpr std::chrono::seconds show_interval{2};

using parameters = std::vector<std::vector<float>>;

/// The trainer has to be that of the run; rates and the like are the record's.
result<void> check_fit(const job_spec& recorded, const job_spec& mine) {
  bool fits = recorded.name == mine.name && recorded.samples == mine.samples
              && recorded.tables.size() == mine.tables.size();
  for (std::size_t i = 0; fits && i < mine.tables.size(); ++i) {
    const auto& x = recorded.tables[i];
    const auto& y = mine.tables[i];
    fits = x.name == y.name && x.shape == y.shape && x.kind == y.kind && x.width == y.width;
  }
  if (fits)
    return {};
  return {errc::wrong_job, "the record is of '" + recorded.name
                             + "' with other data or another model than this command line's ('"
                             + mine.name + "')"};
}

result<void> check_files(const run_options& options, const job_spec& job) {
  if ((options.export_file || options.compare_file) && any_sparse(job))
    return {errc::invalid_argument, "--export and --compare know dense tables only"};
  return check_outputs(options);
}

result<parameters> final_parameters(const replay& done, const job_spec& job) {
  query everything;
  everything.latest = true;
  parameters all;
  for (std::uint32_t i = 0; i < job.tables.size(); ++i) {
    all.emplace_back(job.tables[i].size());
    if (!job.tables[i].is_sparse())
      everything.ranges.push_back({{i}, 0, job.tables[i].size()});
  }
  const auto found = done.read(everything);
  if (!found)
    return found.error();
  for (const auto& x : found->pieces)
    std::memcpy(all[x.where.table.value].data() + x.where.first, x.values.get(),
                x.where.count * sizeof(float));
  return all;
}

/// Empty where they are equal, byte for byte.
result<std::string> difference(const std::filesystem::path& file, const job_spec& job,
                               const parameters& mine) {
  const auto theirs = storage::read_tensors(file);
  if (!theirs)
    return theirs.error();
  if (theirs->size() != mine.size())
    return fmt::format("{} has {} tables, not {}", file.string(), theirs->size(), mine.size());
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const auto& name = job.tables[i].name;
    const auto& x = (*theirs)[i];
    if (x.name != name || x.values.size() != mine[i].size())
      return fmt::format("{} has other tables: '{}'", file.string(), x.name);
    for (std::size_t k = 0; k < mine[i].size(); ++k)
      if (std::memcmp(&x.values[k], &mine[i][k], sizeof(float)) != 0)
        return fmt::format("table '{}' differs first in element {}: {} in {}, {} here", name, k,
                           x.values[k], file.string(), mine[i][k]);
  }
  return std::string{};
}

result<int> replay_and_compare(const std::string& name, const run_options& options,
                               const graph& described) {
  auto recorded = storage::read_push_history(*options.replay_directory);
  if (!recorded)
    return recorded.error();
  const auto job = recorded->job;
  if (auto fits = check_fit(job, make_job(name, described, options)); !fits)
    return fits.error();
  if (auto fine = check_files(options, job); !fine)
    return fine.error();
  auto now = replay::begin(*std::move(recorded), described.make_trainer());
  if (!now)
    return now.error();
  auto& again = **now;
  const auto all = again.steps_in_all();
  const auto began_at = steady_now();
  auto shown_at = began_at;
  const auto show = [&] {
    const auto present = steady_now();
    if (present - shown_at < show_interval)
      return;
    shown_at = present;
    fmt::print("{} of {} steps, loss {:.4f}\n", again.steps(), all, again.loss());
    std::fflush(stdout);
  };
  if (auto ran = again.run(show); !ran)
    return ran.error();
  fmt::print(
    "replayed {} steps of {} chains, {} gradients of {} batches, in {:.1f} s; loss {:.4f}\n", all,
    job.chain_count(), again.gradients(), job.batches(),
    std::chrono::duration<double>(steady_now() - began_at).count(), again.loss());
  auto mine = final_parameters(again, job);
  if (!mine)
    return mine.error();
  int status = EXIT_SUCCESS;
  if (options.compare_file) {
    const auto differs = difference(*options.compare_file, job, *mine);
    if (!differs)
      return differs.error();
    fmt::print("{}\n", differs->empty() ? "equal to " + options.compare_file->string() : *differs);
    status = differs->empty() ? EXIT_SUCCESS : EXIT_FAILURE;
  }
  if (options.export_file)
    if (auto written = export_parameters(*options.export_file, job, *std::move(mine)); !written)
      return written.error();
  return status;
}

} // namespace

int run_replay(const std::string& name, const run_options& options, const graph& described) {
  const auto status = replay_and_compare(name, options, described);
  if (status)
    return *status;
  fmt::print(stderr, "{}: {}\n", name, status.error().text);
  return EXIT_FAILURE;
}

} // namespace troupe
