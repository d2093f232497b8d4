#include "actors/graph/options/compression.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

/// Returns the compression of a table: the one given for it alone, else that of all other tables.
compression compression_of(const run_options& options, const std::string& table) {
  for (const auto& name : {table, std::string{}})
    if (const auto found = options.codec.pushes.find(name); found != options.codec.pushes.end())
      return found->second;
  return {};
}

} // namespace

result<std::optional<codec_options>> compression_of(const run_options& options,
                                                    const job_spec& job) {
  const bool asked = !options.codec.pushes.empty() || options.codec.pulls != encoding::f32;
  if (asked && std::ranges::all_of(job.tables, &table_spec::is_sparse))
    return {errc::invalid_argument, "the job's tables are all sparse, and their rows are sent as "
                                    "they are: leave out --compress and --compress-pulls"};
  for (const auto& [name, how] : options.codec.pushes) {
    const auto found = std::ranges::find(job.tables, name, &table_spec::name);
    if (!name.empty() && found == job.tables.end())
      return {errc::invalid_argument, "--compress: the job has no table '" + name + "'"};
    if (!name.empty() && found->is_sparse() && how.how != encoding::f32)
      return {errc::invalid_argument, "--compress: table '" + name
                                        + "' is sparse, and its rows are sent as they are: only "
                                          "dense tables can be compressed"};
  }
  codec_options made;
  made.pulls = options.codec.pulls;
  for (const auto& table : job.tables)
    made.pushes.push_back(table.is_sparse() ? compression{} : compression_of(options, table.name));
  if (made.sends() == 0)
    return std::optional<codec_options>{};
  return std::optional{std::move(made)};
}

std::string remark_on_compression(const run_options& options, const job_spec& job) {
  const auto made = compression_of(options, job);
  if (!made || !*made || !goes_by_clocks(job) || !(*made)->keeps_residual())
    return {};
  return "--sync bsp with --compress " + names_of((*made)->sends())
         + ": what is sent depends on what a worker has not sent yet, so where batches are done "
           "again, runs may differ in bytes";
}

} // namespace troupe
