#include "actors/graph/launch/import.hpp"

#include "actors/tables/block_store.hpp"
#include "base/quote.hpp"
#include "storage/checkpoint_writer.hpp"
#include "storage/manifest.hpp"
#include "storage/tensor_file.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

namespace troupe {

namespace {

/// Checks all values. Errors: malformed, if a value is NaN or infinite; the text names it.
result<void> check_finite(const storage::tensor& x, const std::filesystem::path& file) {
  const auto odd =
    std::find_if_not(x.values.begin(), x.values.end(), [](float y) { return std::isfinite(y); });
  if (odd == x.values.end())
    return {};
  const auto index = static_cast<std::uint64_t>(odd - x.values.begin());
  return {errc::malformed, "tensor " + troupe::quote(x.name) + " is "
                             + (std::isnan(*odd) ? "NaN" : "infinite") + " at "
                             + storage::position_text(x.shape, index) + " in " + file.string()};
}

/// Returns the tensor of each table, in the job's order.
result<std::vector<storage::tensor>> tensors_of(const std::filesystem::path& file,
                                                const job_spec& job) {
  const auto fits = [&](const std::string& name, std::span<const std::uint64_t> shape) {
    return std::ranges::any_of(job.tables, [&](const table_spec& table) {
      return table.name == name && std::ranges::equal(table.shape, shape);
    });
  };
  auto read = storage::read_tensors(file, fits);
  if (!read)
    return read.error();
  for (const auto& x : *read)
    if (std::none_of(job.tables.begin(), job.tables.end(),
                     [&](const auto& table) { return table.name == x.name; }))
      return {errc::shape_mismatch, "the model has no table " + troupe::quote(x.name) + ", which "
                                      + file.string() + " holds"};
  std::vector<storage::tensor> ordered;
  for (const auto& table : job.tables) {
    const auto found =
      std::find_if(read->begin(), read->end(), [&](const auto& x) { return x.name == table.name; });
    if (found == read->end())
      return {errc::shape_mismatch, file.string() + " holds no tensor '" + table.name + "'"};
    if (found->shape != table.shape)
      return {errc::shape_mismatch,
              "tensor '" + table.name + "' is " + storage::shape_text(found->shape) + " in "
                + file.string() + " and " + storage::shape_text(table.shape) + " in the model"};
    if (auto finite = check_finite(*found, file); !finite)
      return finite.error();
    ordered.push_back(std::move(*found));
  }
  return ordered;
}

std::string remark_on_conversion(const std::filesystem::path& file,
                                 const std::vector<storage::tensor>& tensors) {
  const auto found =
    std::ranges::find_if(tensors, [](const auto& x) { return !x.converted_from.empty(); });
  if (found == tensors.end())
    return "";
  return file.string() + " holds " + found->converted_from + ": its values become float32";
}

} // namespace

result<std::string> import_parameters(const std::filesystem::path& file,
                                      const std::filesystem::path& checkpoints,
                                      const job_spec& job) {
  auto tensors = tensors_of(file, job);
  if (!tensors)
    return tensors.error();
  std::vector<partition_id> all;
  std::vector<shard_partition> fresh;
  for (std::uint32_t i = 0; i < job.partitions; ++i) {
    all.push_back({i});
    fresh.push_back({{i}, 0, std::vector<batch_set>(job.tables.size())});
  }
  const auto pool = std::make_shared<buffer_pool>();
  storage::cut what{1, {0}, block_store{job, all, pool}.pin(fresh)};
  for (auto& partition : what.partitions)
    for (auto& block : partition.blocks) {
      const auto where = block_range(job, block.table, block.block);
      auto values = pool->floats(where.count);
      std::memcpy(values.get(), (*tensors)[block.table.value].values.data() + where.first,
                  where.count * sizeof(float));
      block.values = std::move(values);
    }
  auto writer = storage::checkpoint_writer::open(checkpoints, {0}, {0});
  if (!writer)
    return writer.error();
  auto part = (*writer)->write(what);
  if (!part)
    return part.error();
  auto committed = storage::commit(checkpoints, {1, job, {}, 0, {}, {*std::move(part)}});
  if (!committed)
    return committed.error();
  return remark_on_conversion(file, *tensors);
}

} // namespace troupe
