#include "actors/training/touched_rows.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace troupe {

std::vector<row_keys> touched_rows(const job_spec& job,
                                   const std::function<void(key_lists)>& name_keys) {
  std::vector<std::vector<std::uint64_t>> touched(job.tables.size());
  name_keys(touched);
  std::vector<row_keys> rows;
  for (std::uint32_t i = 0; i < touched.size(); ++i) {
    if (!job.tables[i].is_sparse())
      continue;
    std::ranges::sort(touched[i]);
    touched[i].erase(std::unique(touched[i].begin(), touched[i].end()), touched[i].end());
    const auto keys = std::make_shared<std::vector<std::uint64_t>>(std::move(touched[i]));
    rows.push_back({{i}, job.tables[i].width, keys->size(), {keys, keys->data()}});
  }
  return rows;
}

std::vector<std::span<const std::uint64_t>> keys_by_table(const job_spec& job,
                                                          const std::vector<row_keys>& rows) {
  std::vector<std::span<const std::uint64_t>> keys(job.tables.size());
  for (const row_keys& x : rows)
    keys[x.table.value] = x.span();
  return keys;
}

} // namespace troupe
