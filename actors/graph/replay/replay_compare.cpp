#include "actors/graph/replay/replay_compare.hpp"

#include "base/quote.hpp"
#include "serialization/layout.hpp"
#include "storage/checkpoint_directory.hpp"
#include "storage/checkpoint_reader.hpp"
#include "storage/tensor_file.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

namespace troupe {

namespace {

template <class Number>
std::optional<std::size_t> first_difference(std::span<const Number> x, std::span<const Number> y) {
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
    if (std::memcmp(&x[i], &y[i], sizeof(Number)) != 0)
      return i;
  if (x.size() != y.size())
    return std::min(x.size(), y.size());
  return std::nullopt;
}

template <class Number>
std::span<const Number> span_of(const std::shared_ptr<const Number>& all, std::uint64_t count) {
  return {all.get(), all ? count : 0};
}

std::string element_line(const job_spec& job, table_id table, std::uint64_t element) {
  return fmt::format("table '{}' differs first in element {}", job.tables[table.value].name,
                     element);
}

std::string compare(const job_spec& job, const block_image& x, const block_image& y) {
  if (x.table != y.table || x.block != y.block)
    return "the blocks are others";
  if (const auto at = first_difference(span_of(x.values, x.count), span_of(y.values, y.count)))
    return element_line(job, x.table, block_range(job, x.table, x.block).first + *at);
  if (x.steps != y.steps
      || first_difference(span_of(x.state, x.state_count), span_of(y.state, y.state_count)))
    return fmt::format("the optimiser state of table '{}' differs in block {}",
                       job.tables[x.table.value].name, x.block);
  return {};
}

std::string compare(const job_spec& job, const slab_image& x, const slab_image& y) {
  const auto name = fmt::format("slab {} of table '{}'", x.slab, job.tables[x.table.value].name);
  if (x.table != y.table || x.slab != y.slab
      || first_difference(span_of(x.keys, x.count), span_of(y.keys, y.count)))
    return "the rows in " + name + " are others";
  if (first_difference(span_of(x.rows, x.count * x.row_floats),
                       span_of(y.rows, y.count * y.row_floats))
      || first_difference(span_of(x.steps, x.count), span_of(y.steps, y.count)))
    return name + " differs";
  return {};
}

template <class Image>
std::string compare_all(const job_spec& job, const std::vector<Image>& x,
                        const std::vector<Image>& y) {
  if (x.size() != y.size())
    return fmt::format("there are {} blocks or slabs instead of {}", x.size(), y.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    if (auto differs = compare(job, x[i], y[i]); !differs.empty())
      return differs;
  return {};
}

} // namespace

result<std::string> difference_from_export(const std::filesystem::path& file, const job_spec& job,
                                           const dense_parameters& mine) {
  const auto theirs = storage::read_tensors(file);
  if (!theirs)
    return theirs.error();
  if (theirs->size() != mine.size())
    return fmt::format("there are {} tables instead of {}", theirs->size(), mine.size());
  for (std::uint32_t i = 0; i < mine.size(); ++i) {
    const auto& x = (*theirs)[i];
    if (x.name != job.tables[i].name || x.values.size() != mine[i].size())
      return "table " + troupe::quote(x.name) + " is another one";
    if (const auto at = first_difference(std::span{x.values}, std::span<const float>{mine[i]}))
      return element_line(job, {i}, *at)
             + fmt::format(": {} there, {} here", x.values[*at], mine[i][*at]);
  }
  return std::string{};
}

result<std::string> difference_from_checkpoint(const std::filesystem::path& directory,
                                               const job_spec& job,
                                               const std::vector<partition_image>& mine) {
  const auto found = storage::newest_good(directory, job);
  if (!found)
    return found.error();
  if (!found->newest)
    return {errc::io_failed, "no checkpoint in " + directory.string()};
  std::vector<partition_id> wanted;
  for (const auto& each : mine)
    wanted.push_back(each.partition);
  const auto theirs = storage::read(directory, found->newest->checkpoint, job, wanted);
  if (!theirs)
    return theirs.error();
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (auto differs = compare_all(job, (*theirs)[i].blocks, mine[i].blocks); !differs.empty())
      return differs;
    if (auto differs = compare_all(job, (*theirs)[i].slabs, mine[i].slabs); !differs.empty())
      return differs;
  }
  return std::string{};
}

} // namespace troupe
