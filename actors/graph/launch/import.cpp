#include "actors/graph/launch/import.hpp"

#include "actors/tables/table_store.hpp"
#include "base/crc32c.hpp"
#include "base/quote.hpp"
#include "base/splitmix64.hpp"
#include "base/system/file.hpp"
#include "storage/checkpoint_writer.hpp"
#include "storage/manifest.hpp"
#include "storage/regular_file.hpp"
#include "storage/tensor_file.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

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

/// Lists the names of tensors, "'w', 'b' and 3 more".
std::string listed_names(std::span<const storage::tensor> tensors) {
  constexpr std::size_t listed_max = 6;
  if (tensors.empty())
    return "none";
  std::string names;
  for (const auto& each : tensors.first(std::min(tensors.size(), listed_max)))
    names += (names.empty() ? "" : ", ") + troupe::quote(each.name);
  if (tensors.size() > listed_max)
    names += " and " + std::to_string(tensors.size() - listed_max) + " more";
  return names;
}

/// Returns the tensor of this name, if it can be the values of a table.
result<storage::tensor> take_fitting(std::vector<storage::tensor>& all, const std::string& name,
                                     const table_spec& table, const std::filesystem::path& file) {
  const auto found = std::ranges::find(all, name, &storage::tensor::name);
  if (found == all.end())
    return {errc::shape_mismatch,
            file.string() + " holds no tensor '" + name + "'; it holds " + listed_names(all)};
  if (found->unread)
    return *found->unread;
  if (found->shape != table.shape)
    return {errc::shape_mismatch, "tensor '" + name + "' is " + storage::shape_text(found->shape)
                                    + " in " + file.string() + " and "
                                    + storage::shape_text(table.shape) + " in the model"};
  if (auto finite = check_finite(*found, file); !finite)
    return finite.error();
  // The name stays, as a later error lists those of the file.
  return storage::tensor{found->name, found->shape, std::move(found->values),
                         found->converted_from};
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
    if (!x.unread && std::ranges::find(job.tables, x.name, &table_spec::name) == job.tables.end())
      return {errc::shape_mismatch, "the model has no table " + troupe::quote(x.name) + ", which "
                                      + file.string() + " holds"};
  std::vector<storage::tensor> ordered;
  for (const auto& table : job.tables) {
    auto taken = take_fitting(*read, table.name, table, file);
    if (!taken)
      return taken.error();
    ordered.push_back(*std::move(taken));
  }
  return ordered;
}

/// Returns the array of the file that a table begins with.
result<storage::tensor> tensor_of(const values_file& from, const table_spec& table) {
  const std::filesystem::path file = from.path;
  const bool is_only = file.extension() == ".npy" && from.array.empty(); // Named as the file.
  const auto& name = from.array.empty() ? table.name : from.array;
  auto read =
    storage::read_tensors(file, [&](const auto& found, std::span<const std::uint64_t> shape) {
      return (is_only || found == name) && std::ranges::equal(table.shape, shape);
    });
  if (!read)
    return read.error();
  return take_fitting(*read, is_only ? file.stem().string() : name, table, file);
}

std::string remark_on_conversion(const std::filesystem::path& file,
                                 std::span<const storage::tensor> tensors) {
  const auto found =
    std::ranges::find_if(tensors, [](const auto& x) { return !x.converted_from.empty(); });
  if (found == tensors.end())
    return "";
  return file.string() + " holds " + found->converted_from + ": its values become float32";
}

/// Returns a checksum of the files' bytes in their order, which is not 0.
result<std::uint64_t> checksum_of(std::span<const std::string> files) {
  std::uint64_t state = splitmix64_of(files.size());
  for (const auto& file : files) {
    if (const auto other = storage::other_than_file(file))
      return {errc::invalid_argument, "cannot take a checksum of " + file
                                        + ", which the program reads: it is " + *other
                                        + ": let the program give a dataset_id in its place"};
    const auto sum = sum_file(file, /* from_disk = */ false);
    if (!sum)
      return sum.error();
    state = splitmix64_of(splitmix64_of(state ^ sum->size_bytes) ^ sum->crc32c);
  }
  return std::max<std::uint64_t>(state, 1);
}

} // namespace

result<void> read_files(plan& what) {
  if (!what.data_files.empty()) {
    const auto checksum = checksum_of(what.data_files);
    if (!checksum)
      return checksum.error();
    what.job.files_checksum = *checksum;
  }
  for (std::uint32_t i = 0; i < what.job.tables.size(); ++i) {
    auto& table = what.job.tables[i];
    const auto& from = what.values[i];
    if (!from)
      continue;
    auto read = tensor_of(*from, table);
    if (!read)
      return {read.error().code, "table '" + table.name + "': " + read.error().text};
    const auto checksum = storage::detail::crc32c(std::as_bytes(std::span{read->values}));
    table.values_checksum = std::max<std::uint32_t>(checksum, 1); // 0 means no file.
    if (auto remark = remark_on_conversion(from->path, {&*read, 1}); !remark.empty())
      what.notices.push_back({.text = std::move(remark)});
    what.given[i] = std::make_shared<const std::vector<float>>(std::move(read->values));
  }
  return {};
}

void take_checksums(plan& mine, const job_spec& theirs) {
  for (std::size_t i = 0; i < mine.job.tables.size() && i < theirs.tables.size(); ++i)
    if (mine.values[i])
      mine.job.tables[i].values_checksum = theirs.tables[i].values_checksum;
  if (!mine.data_files.empty())
    mine.job.files_checksum = theirs.files_checksum;
}

result<void> write_first_checkpoint(const std::filesystem::path& checkpoints, const job_spec& job,
                                    const given_values& given) {
  std::vector<partition_id> all;
  std::vector<shard_partition> fresh;
  for (std::uint32_t i = 0; i < job.partitions; ++i) {
    all.push_back({i});
    fresh.push_back({{i}, 0, std::vector<batch_set>(job.tables.size())});
  }
  table_store values{job, all, std::make_shared<buffer_pool>(), {}, given};
  auto writer = storage::checkpoint_writer::open(checkpoints, {0}, {0});
  if (!writer)
    return writer.error();
  auto part = (*writer)->write({1, {0}, values.pin(fresh)});
  if (!part)
    return part.error();
  return storage::commit(checkpoints, {1, job, {}, 0, {}, {*std::move(part)}});
}

result<std::string> import_parameters(const std::filesystem::path& file,
                                      const std::filesystem::path& checkpoints,
                                      const job_spec& job) {
  auto tensors = tensors_of(file, job);
  if (!tensors)
    return tensors.error();
  auto remark = remark_on_conversion(file, *tensors);
  given_values given;
  for (std::uint32_t i = 0; i < tensors->size(); ++i)
    given[i] = std::make_shared<const std::vector<float>>(std::move((*tensors)[i].values));
  if (auto written = write_first_checkpoint(checkpoints, job, given); !written)
    return written.error();
  return remark;
}

} // namespace troupe
