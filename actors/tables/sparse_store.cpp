#include "actors/tables/sparse_store.hpp"

#include "actors/tables/block_store.hpp"
#include "kernels/vector_ops.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <utility>

namespace troupe {

namespace {

/// Rows that are looked up together. Enough to keep the memory busy; more prefetches than a core
/// can have under way stall it (measured: 16 beats 8 and 32).
constexpr std::size_t batch_max = 16;
/// Batches in the pipeline of step() and read().
constexpr std::size_t ring_size = 3;

bool is_skipped(const apply_effect& effect, table_id table, partition_id partition) {
  return std::find(effect.skip.begin(), effect.skip.end(), std::pair{table, partition})
         != effect.skip.end();
}

/// Spreads load_max from 0.625 to 0.75, so that partitions' indices grow one after the other, while
/// the number of rows grows by a fifth.
double load_max_of(partition_id partition, std::uint32_t partitions) {
  return 0.625 + 0.125 * (partition.value + 1) / partitions;
}

/// Copies a row. A copy whose length the compiler knows needs no call.
void copy_row(const float* from, std::size_t width, float* to) {
  switch (width) {
  case 1: *to = *from; return;
  case 4: std::memcpy(to, from, 4 * sizeof(float)); return;
  case 8: std::memcpy(to, from, 8 * sizeof(float)); return;
  case 16: std::memcpy(to, from, 16 * sizeof(float)); return;
  default: std::memcpy(to, from, width * sizeof(float));
  }
}

void prefetch_row(const float* row, std::size_t floats) {
  constexpr std::size_t line = 16; // Floats. The processor prefetches the lines after the first few
                                   // itself.
  for (std::size_t i = 0; i < std::min<std::size_t>(floats, 8 * line); i += line)
    __builtin_prefetch(row + i);
}

} // namespace

/// Keys that are looked up together, and their rows.
struct sparse_store::batch {
  std::size_t count = 0;
  std::array<std::uint64_t, batch_max> hashes;
  std::array<float*, batch_max> rows;
  std::array<const float*, batch_max> found; ///< Null: the row does not exist.
  std::array<std::uint64_t*, batch_max> steps;
};

// -- making --

sparse_store::sparse_store(const job_spec& job, const std::vector<partition_id>& partitions,
                           std::shared_ptr<buffer_pool> pool, const server_functions& functions)
    : job_(job), pool_(std::move(pool)), functions_(functions_of(job, functions)),
      tables_(job.tables.size()), partitions_here_(partitions.size()),
      memory_(std::make_shared<huge_page_pool>()), summed_(memory_) {
  for (std::uint32_t i = 0; i < tables_.size(); ++i) {
    if (!job_.tables[i].is_sparse())
      continue;
    table& made = tables_[i];
    made.layout = std::make_unique<row_layout>(job_, table_id{i}, memory_);
    made.keeps_previous = job_.tables[i].sync.traits().clock_updates;
    made.parts.resize(job_.partitions);
    for (const partition_id p : partitions)
      made.parts[p.value].emplace(*made.layout, load_max_of(p, job_.partitions));
  }
}

result<sparse_store> sparse_store::restored(const job_spec& job,
                                            const std::vector<partition_image>& partitions,
                                            std::shared_ptr<buffer_pool> pool,
                                            const server_functions& functions) {
  std::vector<partition_id> here;
  for (const partition_image& image : partitions)
    here.push_back(image.partition);
  sparse_store store{job, here, std::move(pool), functions};
  for (const partition_image& image : partitions)
    for (const slab_image& slab : image.slabs) {
      if (slab.table.value >= job.tables.size() || !job.tables[slab.table.value].is_sparse())
        return {errc::damaged, "checkpoint holds rows of a table that is not sparse: "
                                 + std::to_string(slab.table.value)};
      for (std::uint64_t i = 0; i < slab.count; ++i)
        if (partition_of(job, slab.keys.get()[i]) != image.partition)
          return {errc::damaged, "checkpoint holds a row in a partition that is not its own: "
                                   + store.row_name(slab.table, slab.keys.get()[i], 0)};
      part& owner = *store.tables_[slab.table.value].parts[image.partition.value];
      if (auto adopted = owner.rows.adopt(slab); !adopted)
        return adopted.error();
    }
  return store;
}

// -- checking --

std::string sparse_store::row_name(table_id id, std::uint64_t key, std::size_t element) const {
  return "table '" + spec(id).name + "', key " + std::to_string(key) + ", element "
         + std::to_string(element);
}

result<void> sparse_store::check_keys(const row_keys& rows) const {
  if (rows.table.value >= tables_.size() || !tables_[rows.table.value].layout)
    return {errc::shape_mismatch, "no such sparse table: " + std::to_string(rows.table.value)};
  if (rows.width != spec(rows.table).width)
    return {errc::shape_mismatch, "rows of " + std::to_string(rows.width) + " floats: table '"
                                    + spec(rows.table).name + "' has "
                                    + std::to_string(spec(rows.table).width)};
  if (rows.count > 0 && !rows.keys)
    return {errc::shape_mismatch, "rows without keys: table '" + spec(rows.table).name + "'"};
  const auto keys = rows.span();
  if (const std::size_t at = first_unordered(keys); at < keys.size())
    return {errc::shape_mismatch, "keys must ascend: table '" + spec(rows.table).name + "', key "
                                    + std::to_string(keys[at]) + " after "
                                    + std::to_string(keys[at - 1])};
  if (partitions_here_ == job_.partitions)
    return {};
  const auto& parts = tables_[rows.table.value].parts;
  for (const std::uint64_t key : keys)
    if (!parts[row_hash(key) & (job_.partitions - 1)])
      return {errc::not_ready, "partition " + std::to_string(partition_of(job_, key).value)
                                 + " is not here: table '" + spec(rows.table).name + "', key "
                                 + std::to_string(key)};
  return {};
}

result<void> sparse_store::check(std::span<const row_keys> rows) const {
  for (const row_keys& x : rows)
    if (auto fine = check_keys(x); !fine)
      return fine;
  return {};
}

result<void> sparse_store::check(std::span<const row_piece> rows) const {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (auto fine = check_keys(rows[i].where); !fine)
      return fine;
    const std::string& name = spec(rows[i].where.table).name;
    if (rows[i].where.count > 0 && !rows[i].values)
      return {errc::shape_mismatch, "rows without values: table '" + name + "'"};
    for (std::size_t k = 0; k < i; ++k)
      if (rows[k].where.table == rows[i].where.table)
        return {errc::shape_mismatch, "two lists of rows for table '" + name + "'"};
  }
  return {};
}

result<void> sparse_store::check_finite(const row_push& push) const {
  for (const row_piece& x : push.rows) {
    const std::size_t width = spec(x.where.table).width;
    const std::span<const float> values{x.values.get(), x.where.count * width};
    const std::size_t at = kernels::first_non_finite(values);
    if (at == values.size())
      continue;
    const float bad = values[at];
    return {errc::non_finite, "worker " + std::to_string(push.worker.value)
                                + " pushed a gradient that is not finite: "
                                + row_name(x.where.table, x.where.span()[at / width], at % width)
                                + " ("
                                + (std::isnan(bad) ? "nan"
                                   : bad > 0       ? "inf"
                                                   : "-inf")
                                + ")"};
  }
  return {};
}

// -- stepping --

result<void> sparse_store::add_up(const apply_effect& effect, std::span<const row_push> pushes) {
  assert((effect.pushes == pushes.size() || pushes.size() == 1) && !pushes.empty());
  sums_.clear();
  for (const row_push& push : pushes)
    if (auto finite = check_finite(push); !finite)
      return finite;
  for (const table_id id : effect.tables) {
    if (!tables_[id.value].layout)
      continue;
    auto made = sum_of(effect, pushes, id);
    if (!made)
      continue;
    if (const std::size_t at = kernels::first_non_finite(made->own_gradient);
        at < made->own_gradient.size()) {
      const std::size_t width = spec(id).width;
      return {errc::non_finite, "sum of " + std::to_string(effect.pushes)
                                  + " gradients is not finite: "
                                  + row_name(id, made->own_keys[at / width], at % width)};
    }
    if (spec(id).optimizer.kind == optimizer_kind::user)
      if (auto called = call_function(effect, *made); !called)
        return called;
    sums_.push_back(*std::move(made));
  }
  return {};
}

/// Calls the table's function on a copy of each row, which step() then writes.
result<void> sparse_store::call_function(const apply_effect& effect, sum& what) const {
  const table& of = tables_[what.table.value];
  const row_layout& layout = *of.layout;
  const optimizer_spec& optimizer = spec(what.table).optimizer;
  const function_spec& function = functions_[what.table.value];
  assert(function.step != nullptr);
  what.stepped.resize(what.keys.size() * layout.row_floats);
  step_info info{.table = what.table,
                 .staleness = effect.staleness_versions,
                 .rate = what.options.rate,
                 .scale = what.options.gradient_scale,
                 .parameters = optimizer.parameters};
  for (std::size_t i = 0; i < what.keys.size(); ++i) {
    const std::uint64_t hash = row_hash(what.keys[i]);
    const row_table& rows = part_of(of, hash).rows;
    const std::uint32_t number = rows.find(what.keys[i], hash);
    const std::span row{what.stepped.data() + i * layout.row_floats, layout.row_floats};
    info.first = what.keys[i];
    info.step = number == key_index::absent ? 1 : rows.steps_of(number) + 1;
    if (number == key_index::absent)
      layout.initial.fill(what.keys[i], row.first(layout.width)); // Its state is zeros.
    else
      copy_row(rows.at(number), layout.row_floats, row.data());
    if (auto done =
          take_step(function, optimizer, info, row.first(layout.width), row.subspan(layout.width),
                    what.gradient.subspan(i * layout.width, layout.width));
        !done)
      return failure{done.error().code, done.error().text + ": table '" + spec(what.table).name
                                          + "', key " + std::to_string(what.keys[i])};
  }
  return {};
}

/// Returns a push's own memory if it is the only one and complete, else a sum in the order of the
/// pushes. Nullopt if no push has rows of the table.
std::optional<sparse_store::sum>
sparse_store::sum_of(const apply_effect& effect, std::span<const row_push> pushes, table_id id) {
  std::vector<std::pair<const row_push*, const row_piece*>> shares;
  for (const row_push& push : pushes)
    for (const row_piece& piece : push.rows)
      if (piece.where.table == id && piece.where.count > 0)
        shares.emplace_back(&push, &piece);
  if (shares.empty())
    return std::nullopt;
  const optimizer_spec& optimizer = spec(id).optimizer;
  sum made{.table = id,
           .keys = {},
           .gradient = {},
           .options = options_of(optimizer, 1),
           .own_keys = {},
           .own_gradient = {},
           .stepped = {}};
  made.options.rate = optimizer.rate_at(effect.staleness_versions);
  made.options.gradient_scale = 1.0f / static_cast<float>(effect.pushes);
  const auto& [first_push, first_piece] = shares.front();
  const bool skips = std::any_of(effect.skip.begin(), effect.skip.end(),
                                 [&](const auto& pair) { return pair.first == id; });
  const float clip = optimizer.clip_scale(first_push->gradient_norm);
  if (shares.size() == 1 && !skips && (pushes.size() == 1 || clip == 1.0f)) {
    made.options.gradient_scale *= clip;
    made.keys = first_piece->where.span();
    made.gradient = {first_piece->values.get(), made.keys.size() * spec(id).width};
    return made;
  }
  summed_.clear();
  for (const auto& [push, piece] : shares)
    add(effect, *push, *piece, made);
  made.keys = made.own_keys;
  made.gradient = made.own_gradient;
  return made;
}

void sparse_store::add(const apply_effect& effect, const row_push& push, const row_piece& piece,
                       sum& to) {
  const std::size_t width = spec(to.table).width;
  const float clip = spec(to.table).optimizer.clip_scale(push.gradient_norm);
  const float* gradient = piece.values.get();
  for (const std::uint64_t key : piece.where.span()) {
    const std::uint64_t hash = row_hash(key);
    if (!is_skipped(effect, to.table, partition_of(job_, key))) {
      const std::uint32_t number = summed_.find_or_add(key, hash);
      if (number == to.own_keys.size()) {
        to.own_keys.push_back(key);
        to.own_gradient.resize(to.own_gradient.size() + width);
      }
      float* const into = to.own_gradient.data() + number * width;
      for (std::size_t i = 0; i < width; ++i)
        into[i] += clip * gradient[i];
    }
    gradient += width;
  }
}

void sparse_store::forget_previous(const apply_effect& effect, table_id id) const {
  auto& parts = tables_[id.value].parts;
  for (std::uint32_t p = 0; p < parts.size(); ++p)
    if (parts[p] && !is_skipped(effect, id, {p})) {
      parts[p]->changed.clear();
      parts[p]->previous.clear();
    }
}

/// Takes the step in batches, which go through three stages: slots of the index prefetched; rows
/// found and prefetched; rows stepped. So the memory of one batch is fetched while others are
/// stepped.
void sparse_store::step(const apply_effect& effect) {
  for (const table_id id : effect.tables)
    if (tables_[id.value].keeps_previous)
      forget_previous(effect, id);
  std::array<batch, ring_size> ring;
  for (const sum& what : sums_) {
    const table& of = tables_[what.table.value];
    const std::size_t batches = (what.keys.size() + batch_max - 1) / batch_max;
    const auto keys_of = [&](std::size_t i) {
      return what.keys.subspan(i * batch_max,
                               std::min(batch_max, what.keys.size() - i * batch_max));
    };
    for (std::size_t i = 0; i < batches + 2; ++i) {
      if (i < batches)
        prefetch(of, keys_of(i), ring[i % ring_size]);
      if (i >= 1 && i <= batches)
        find_or_make(of, keys_of(i - 1), ring[(i - 1) % ring_size]);
      if (i >= 2)
        step(of, what, (i - 2) * batch_max, ring[(i - 2) % ring_size]);
    }
  }
  sums_.clear();
}

void sparse_store::prefetch(const table& of, std::span<const std::uint64_t> keys,
                            batch& into) const {
  into.count = keys.size();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    into.hashes[i] = row_hash(keys[i]);
    part_of(of, into.hashes[i]).rows.prefetch(into.hashes[i]);
  }
}

void sparse_store::find_or_make(const table& of, std::span<const std::uint64_t> keys,
                                batch& into) const {
  const row_layout& layout = *of.layout;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    row_table& rows = part_of(of, into.hashes[i]).rows;
    const std::uint32_t number = rows.find_or_make(keys[i], into.hashes[i]);
    into.rows[i] = rows.writable(number);
    prefetch_row(into.rows[i], layout.row_floats);
    if (layout.has_steps) {
      into.steps[i] = rows.steps(number);
      __builtin_prefetch(into.steps[i]);
    }
  }
}

void sparse_store::step(const table& of, const sum& what, std::size_t first, batch& rows) const {
  const row_layout& layout = *of.layout;
  std::array<std::uint64_t, batch_max> steps;
  if (layout.has_steps)
    for (std::size_t i = 0; i < rows.count; ++i)
      steps[i] = ++*rows.steps[i];
  if (of.keeps_previous)
    for (std::size_t i = 0; i < rows.count; ++i) {
      part& owner = part_of(of, rows.hashes[i]);
      owner.changed.find_or_add(what.keys[first + i], rows.hashes[i]);
      owner.previous.insert(owner.previous.end(), rows.rows[i], rows.rows[i] + layout.width);
    }
  if (!what.stepped.empty()) {
    for (std::size_t i = 0; i < rows.count; ++i)
      copy_row(what.stepped.data() + (first + i) * layout.row_floats, layout.row_floats,
               rows.rows[i]);
    return;
  }
  kernels::optimizer_step_rows(
    {rows.rows.data(), rows.count}, layout.width,
    what.gradient.subspan(first * layout.width, rows.count * layout.width),
    {steps.data(), layout.has_steps ? rows.count : 0}, what.options);
}

// -- reading --

void sparse_store::find(const table& of, std::span<const std::uint64_t> keys, batch& into) const {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const row_table& rows = part_of(of, into.hashes[i]).rows;
    const std::uint32_t number = rows.find(keys[i], into.hashes[i]);
    into.found[i] = number == key_index::absent ? nullptr : rows.at(number);
    if (into.found[i] != nullptr)
      prefetch_row(into.found[i], of.layout->width);
  }
}

row_piece sparse_store::read(const row_keys& rows, bool previous) const {
  const table& of = tables_[rows.table.value];
  const std::size_t width = of.layout->width;
  const auto values = pool_->floats(rows.count * width);
  const std::size_t batches = (rows.count + batch_max - 1) / batch_max;
  const auto keys_of = [&](std::size_t i) {
    return rows.span().subspan(i * batch_max, std::min(batch_max, rows.count - i * batch_max));
  };
  std::array<batch, ring_size> ring;
  float* to = values.get();
  for (std::size_t i = 0; i < batches + 2; ++i) {
    if (i < batches)
      prefetch(of, keys_of(i), ring[i % ring_size]);
    if (i >= 1 && i <= batches)
      find(of, keys_of(i - 1), ring[(i - 1) % ring_size]);
    if (i < 2)
      continue;
    const batch& ready = ring[(i - 2) % ring_size];
    const auto keys = keys_of(i - 2);
    for (std::size_t k = 0; k < ready.count; ++k, to += width) {
      const part& owner = part_of(of, ready.hashes[k]);
      const std::uint32_t changed =
        previous ? owner.changed.find(keys[k], ready.hashes[k]) : key_index::absent;
      if (changed != key_index::absent)
        copy_row(owner.previous.data() + changed * width, width, to);
      else if (ready.found[k] != nullptr)
        copy_row(ready.found[k], width, to);
      else
        of.layout->initial.fill(keys[k], {to, width});
    }
  }
  return {{rows.table, rows.width, rows.count, nullptr}, values};
}

void sparse_store::pin(std::vector<partition_image>& images) {
  for (partition_image& image : images)
    for (const table& of : tables_)
      if (of.layout)
        for (slab_image& slab : of.parts[image.partition.value]->rows.pin())
          image.slabs.push_back(std::move(slab));
}

std::uint32_t sparse_store::checksum(std::uint32_t previous) const {
  std::uint32_t crc = previous;
  for (const table& of : tables_)
    for (const auto& owner : of.parts)
      if (owner)
        crc = owner->rows.checksum(crc);
  return crc;
}

std::uint64_t sparse_store::size() const {
  std::uint64_t rows = 0;
  for (const table& of : tables_)
    for (const auto& owner : of.parts)
      rows += owner ? owner->rows.size() : 0;
  return rows;
}

} // namespace troupe
