#include "actors/graph/options/compression_flags.hpp"

#include "base/quote.hpp"

#include "CLI/CLI.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace troupe {

namespace {

void read_compression(const std::string& text, run_options& options) {
  const auto equals = text.find('=');
  const bool names_table = equals != std::string::npos;
  const auto read = parse_compression(names_table ? text.substr(equals + 1) : text);
  if (!read)
    throw CLI::ValidationError{"--compress", read.error().text};
  const auto table = names_table ? text.substr(0, equals) : std::string{};
  if (names_table && table.empty())
    throw CLI::ValidationError{"--compress", quote(text) + " names no table before the ="};
  if (!options.codec.pushes.emplace(table, *read).second)
    throw CLI::ValidationError{"--compress", table.empty()
                                               ? "only one may be for all tables"
                                               : "table '" + table + "' is named twice"};
}

/// Returns the compression of a table: the one given for it alone, else that of all other tables.
compression compression_of(const run_options& options, const std::string& table) {
  for (const auto& name : {table, std::string{}})
    if (const auto found = options.codec.pushes.find(name); found != options.codec.pushes.end())
      return found->second;
  return {};
}

} // namespace

void declare_compression(CLI::App& group, run_options& options) {
  group.add_option_function<std::vector<std::string>>(
    "--compress",
    [&](const std::vector<std::string>& texts) {
      for (const auto& text : texts)
        read_compression(text, options);
    },
    "Send gradients of dense tables as fp16, bf16, int8 (a scale for each 256), onebit, "
    "topk:FRACTION or randomk:FRACTION (of a block's elements); TABLE=... for one table, where f32 "
    "leaves it as it is (repeatable). The residue of onebit, topk and randomk is added to the next "
    "gradient");
  group
    .add_option_function<std::string>(
      "--compress-pulls",
      [&](const std::string& text) {
        options.codec.pulls = encoding::f32;
        if (text == to_string(encoding::f32))
          return;
        const auto read = parse_pull_encoding(text);
        if (!read)
          throw CLI::ValidationError{"--compress-pulls", read.error().text};
        options.codec.pulls = *read;
      },
      "Have servers send values of dense tables as fp16, bf16 or int8; they keep them as f32")
    ->default_str("f32");
}

result<void> validate_compression(const run_options& options) {
  const std::string name = !options.codec.pushes.empty()          ? "--compress"
                           : options.codec.pulls != encoding::f32 ? "--compress-pulls"
                                                                  : "";
  const auto invalid = [&](const std::string& why) {
    return result<void>{errc::invalid_argument, why + ": leave out " + name};
  };
  if (name.empty())
    return {};
  if (options.sync.traits().one_memory)
    return invalid("--sync " + to_string(options.sync)
                   + " writes values in place and sends nothing");
  if (options.record_directory)
    return invalid("--record knows the values that were pulled, not what a worker's compression "
                   "made of them");
  if (options.replay_directory)
    return invalid("--replay computes what was recorded, and that was not compressed");
  return {};
}

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
