#include "actors/tables/row_table.hpp"

#include "actors/tables/server_functions.hpp"
#include "base/crc32c.hpp"
#include "serialization/layout.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

namespace troupe {

row_layout::row_layout(const job_spec& job, table_id which, std::shared_ptr<huge_page_pool> memory)
    : table(which), initial(job.seed, job.tables[which.value]), pool(std::move(memory)) {
  const table_spec& spec = job.tables[which.value];
  width = spec.width;
  row_floats = width * static_cast<std::uint32_t>(1 + state_per_weight(spec.optimizer));
  has_steps = counts_steps(spec.optimizer);
  slab_bits = static_cast<unsigned>(std::countr_zero(slab_rows(spec)));
}

std::uint64_t row_table::rows_in(std::size_t i) const {
  return std::min(slab_mask() + 1, size() - (i << layout_.slab_bits));
}

std::uint32_t row_table::make(std::uint64_t key, std::uint64_t hash) {
  const std::uint32_t number = index_.size();
  const std::size_t i = number & slab_mask();
  if (i == 0) {
    places_.emplace_back();
    holders_.emplace_back();
  }
  float* const row = writable(number);
  layout_.initial.fill(key, {row, layout_.width});
  std::fill(row + layout_.width, row + layout_.row_floats, 0.0f);
  places_.back().keys[i] = key;
  if (layout_.has_steps)
    places_.back().steps[i] = 0;
  return index_.find_or_add(key, hash);
}

/// Gives the slab its own memory, with a copy of its content: one buffer for rows, keys and steps.
void row_table::thaw(std::size_t slab) {
  const std::size_t capacity = slab_mask() + 1;
  const std::size_t floats =
    capacity * layout_.row_floats; // At least 16 rows, so keys are aligned.
  const std::size_t numbers = capacity * (layout_.has_steps ? 2 : 1);
  const auto memory = layout_.pool->bytes(floats * sizeof(float) + numbers * sizeof(std::uint64_t));
  place& at = places_[slab];
  holder& held = holders_[slab];
  at.writable = reinterpret_cast<float*>(memory.get());
  at.rows = at.writable;
  at.keys = reinterpret_cast<std::uint64_t*>(at.writable + floats);
  at.steps = layout_.has_steps ? at.keys + capacity : nullptr;
  const std::uint64_t rows = rows_in(slab);
  std::copy_n(held.rows.get(), rows * layout_.row_floats, at.writable);
  std::copy_n(held.keys.get(), rows, at.keys);
  if (layout_.has_steps)
    std::copy_n(held.steps.get(), rows, at.steps);
  held = {{memory, at.rows}, {memory, at.keys}, {memory, at.steps}};
}

std::vector<slab_image> row_table::pin() {
  std::vector<slab_image> images;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    places_[i].writable = nullptr;
    const holder& held = holders_[i];
    images.push_back({.table = layout_.table,
                      .slab = i,
                      .version = places_[i].version,
                      .count = rows_in(i),
                      .keys = held.keys,
                      .row_floats = layout_.row_floats,
                      .rows = held.rows,
                      .steps = held.steps});
  }
  return images;
}

std::uint32_t row_table::checksum(std::uint32_t previous) const {
  std::uint32_t crc = previous;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const std::uint64_t rows = rows_in(i);
    const std::span keys{holders_[i].keys.get(), rows};
    const std::span values{places_[i].rows, rows * layout_.row_floats};
    crc = storage::detail::crc32c(std::as_bytes(keys), crc);
    crc = storage::detail::crc32c(std::as_bytes(values), crc);
  }
  return crc;
}

result<void> row_table::adopt(const slab_image& image) {
  const auto damaged = [&](const std::string& why) {
    return failure{errc::damaged, "checkpoint does not hold the job's rows: slab "
                                    + std::to_string(image.slab) + " of table "
                                    + std::to_string(layout_.table.value) + " " + why};
  };
  const std::size_t before = places_.size() << layout_.slab_bits;
  if (image.slab != places_.size() || before != size())
    return damaged("does not follow a full one");
  if (image.count == 0 || image.count > slab_mask() + 1 || image.row_floats != layout_.row_floats
      || !image.keys || !image.rows || layout_.has_steps != (image.steps != nullptr))
    return damaged("has another shape");
  for (std::uint64_t i = 0; i < image.count; ++i) {
    const std::uint64_t key = image.keys.get()[i];
    if (index_.find_or_add(key, row_hash(key)) != before + i)
      return damaged("has key " + std::to_string(key) + ", which was there before");
  }
  places_.push_back({image.rows.get(), nullptr, nullptr, nullptr, image.version});
  holders_.push_back({image.rows, image.keys, image.steps});
  return {};
}

} // namespace troupe
