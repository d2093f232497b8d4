#include "actors/graph/replay/replay_run.hpp"

#include "actors/graph/replay/replay_compare.hpp"
#include "actors/graph/report/run_result.hpp"
#include "actors/graph/run_failed.hpp"
#include "actors/training/evaluation_computer.hpp"
#include "actors/training/replay.hpp"
#include "base/clock.hpp"
#include "storage/job_difference.hpp"
#include "storage/push_history.hpp"

#include "fmt/format.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

namespace {

constexpr std::chrono::seconds replay_show_interval{2};

/// Checks that the trainer is that of the run. Rates and other options come from the trace.
result<void> check_fit(const job_spec& recorded, const job_spec& mine) {
  auto expected = recorded;
  expected.name = mine.name;
  expected.samples = mine.samples;
  if (recorded.files_checksum != 0)
    expected.files_checksum = mine.files_checksum;
  expected.tables = mine.tables;
  for (auto& table : expected.tables)
    for (const auto& other : recorded.tables)
      if (other.name == table.name) {
        table.optimizer = other.optimizer;
        table.sync = other.sync;
      }
  if (fingerprint(expected) == fingerprint(recorded))
    return {};
  return {errc::wrong_job,
          "the record is of another " + storage::job_difference(recorded, expected)};
}

result<void> check_files(const run_options& options, const job_spec& job) {
  const bool is_file =
    options.compare_file && !std::filesystem::is_directory(*options.compare_file);
  if ((options.export_file || is_file) && any_sparse(job))
    return {errc::invalid_argument, "files of parameters have dense tables only: use --compare "
                                    "with the run's directory of checkpoints"};
  if (options.compare_file && access(options.compare_file->c_str(), R_OK) != 0)
    return {errc::io_failed, "cannot read " + *options.compare_file + ": " + std::strerror(errno)};
  return {};
}

result<dense_parameters> final_parameters(const replay& done, const job_spec& job) {
  pull_request everything;
  everything.latest = true;
  dense_parameters all;
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

/// Prints the quality of the final values, as a run does.
result<void> show_evaluation(const replay& done, const job_spec& job,
                             std::vector<named_evaluator> nodes) {
  if (nodes.empty())
    return {};
  evaluation_computer computer{job, std::move(nodes)};
  const auto everything = computer.question();
  if (!everything)
    return everything.error();
  const auto values = done.read(*everything);
  if (!values)
    return values.error();
  const auto made = computer.evaluate(job.epochs, *values);
  if (made.failed)
    return *made.failed;
  fmt::print("test {}\n", text_of(*made.found));
  return {};
}

/// Returns the first difference from the file or checkpoints of --compare; empty: none.
result<std::string> difference(const std::filesystem::path& from, const job_spec& job,
                               const dense_parameters& mine, replay& done) {
  return std::filesystem::is_directory(from) ? difference_from_checkpoint(from, job, done.images())
                                             : difference_from_export(from, job, mine);
}

std::vector<pure_stage> pure_stages_of(const plan& what) {
  std::vector<pure_stage> stages;
  for (const auto& part : what.path)
    if (const auto* const own = part.get<stage::of_program>())
      stages.push_back({part.name(), own->make});
  return stages;
}

/// Returns the given options that have no effect here, "--lr, --workers".
std::string idle_options(const run_options& options) {
  const std::set<std::string> used{"--replay", "--until", "--compare", "--export"};
  std::string names;
  for (const auto& name : options.given)
    if (!used.contains(name))
      names += (names.empty() ? "" : ", ") + name;
  return names;
}

result<int> replay_and_compare(const plan& what) {
  const auto& options = what.options;
  auto recorded = storage::read_push_history(*options.replay_directory);
  if (!recorded)
    return recorded.error();
  const auto job = recorded->job;
  if (auto fits = check_fit(job, what.job); !fits)
    return fits.error();
  if (auto known = check_functions(job, what.functions); !known)
    return known.error();
  if (auto fine = check_files(options, job); !fine)
    return fine.error();
  if (job.files_checksum == 0 && what.job.files_checksum != 0)
    fmt::print("the record has no checksum of the files that the program reads: the replay goes on "
               "as if they were the same\n");
  for (const auto& line : storage::option_differences(job, what.job, "the record"))
    fmt::print("{}\n", line);
  if (const auto idle = idle_options(options); !idle.empty())
    fmt::print("the replay does as the record says and leaves these options out: {}\n", idle);
  if (options.replay_seconds)
    storage::cut_after(*recorded, *options.replay_seconds);
  auto now = replay::begin(*std::move(recorded), trainer_of(what, job, 0), what.functions,
                           what.given, pure_stages_of(what));
  if (!now)
    return now.error();
  auto& again = **now;
  const auto all = again.steps_in_all();
  const auto began_at = steady_now();
  auto shown_at = began_at;
  const auto show = [&] {
    const auto present = steady_now();
    if (present - shown_at < replay_show_interval)
      return;
    shown_at = present;
    fmt::print("{} of {} steps, loss {:.4f}\n", again.steps(), all, again.loss());
    std::fflush(stdout);
  };
  if (auto ran = again.run(show); !ran)
    return ran.error();
  fmt::print("replayed {} steps of {} shards, {} gradients, in {:.1f} s; loss {:.4f}\n", all,
             job.shard_count(), again.gradients(),
             std::chrono::duration<double>(steady_now() - began_at).count(), again.loss());
  auto mine = final_parameters(again, job);
  if (!mine)
    return mine.error();
  if (auto shown = show_evaluation(again, job, what.evaluators); !shown)
    return shown.error();
  int status = EXIT_SUCCESS;
  if (options.compare_file) {
    const auto& from = *options.compare_file;
    const auto differs = difference(from, job, *mine, again);
    if (!differs)
      return differs.error();
    fmt::print("{} {}{}\n", differs->empty() ? "equal to" : "differs from", from,
               differs->empty() ? "" : ": " + *differs);
    status = differs->empty() ? EXIT_SUCCESS : EXIT_FAILURE;
  }
  if (options.export_file)
    if (auto written = export_parameters(*options.export_file, job, *std::move(mine)); !written)
      return written.error();
  return status;
}

} // namespace

int run_replay(const plan& what) {
  required(check_outputs(what.options, what.files), bad_command_line);
  required(check_writable(what.options));
  return required(replay_and_compare(what));
}

} // namespace troupe
