#include "actors/tables/gradient_sum.hpp"

#include "kernels/vector_ops.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

namespace troupe {

namespace {

using push_list = std::span<const std::shared_ptr<const push_request>>;

/// All batches but the first one.
std::vector<step_header> others_of(push_list pushes) {
  std::vector<step_header> all;
  for (const auto& push : pushes)
    std::ranges::move(push->steps(), std::back_inserter(all));
  all.erase(all.begin());
  return all;
}

class slot_adder {
public:
  slot_adder(const job_spec& job, push_list pushes, buffer_pool& pool)
      : job_(job), pushes_(pushes), pool_(pool) {}

  /// Returns the sum of a dense table; nullopt if the pushes have different ranges.
  std::optional<std::vector<piece>> dense(table_id table) {
    const auto wanted = pieces_of(*pushes_.front(), table);
    std::vector<std::shared_ptr<float>> sums;
    for (const piece* x : wanted) {
      sums.push_back(pool_.floats(x->where.count));
      std::fill_n(sums.back().get(), x->where.count, 0.0f);
    }
    for (const auto& push : pushes_) {
      const auto own = pieces_of(*push, table);
      if (!std::ranges::equal(own, wanted, {}, &piece_where, &piece_where))
        return std::nullopt;
      for (std::size_t i = 0; i < own.size(); ++i)
        kernels::axpy({sums[i].get(), own[i]->where.count}, clip_of(*push, table),
                      {own[i]->values.get(), own[i]->where.count});
    }
    std::vector<piece> all;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      all.push_back({wanted[i]->where, sums[i]});
    return all;
  }

  /// Returns the sum of a sparse table; nullopt if no push has rows of it.
  std::optional<row_piece> sparse(table_id table) {
    std::vector<std::uint64_t> keys;
    for (const auto& push : pushes_)
      if (const auto* own = rows_of(*push, table))
        keys.insert(keys.end(), own->where.span().begin(), own->where.span().end());
    if (keys.empty())
      return std::nullopt;
    std::ranges::sort(keys);
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    const std::size_t width = job_.tables[table.value].width;
    const auto sum = pool_.floats(keys.size() * width);
    std::fill_n(sum.get(), keys.size() * width, 0.0f);
    for (const auto& push : pushes_)
      if (const auto* own = rows_of(*push, table))
        add_rows(keys, sum.get(), *own, width, clip_of(*push, table));
    const auto held = std::make_shared<std::vector<std::uint64_t>>(std::move(keys));
    return row_piece{{table, static_cast<std::uint32_t>(width), held->size(), {held, held->data()}},
                     sum};
  }

private:
  static const range& piece_where(const piece* x) { return x->where; }

  static std::vector<const piece*> pieces_of(const push_request& push, table_id table) {
    std::vector<const piece*> own;
    for (const piece& x : push.pieces)
      if (x.where.table == table)
        own.push_back(&x);
    std::ranges::sort(own, {}, [](const piece* x) { return x->where.first; });
    return own;
  }

  static const row_piece* rows_of(const push_request& push, table_id table) {
    const auto found =
      std::ranges::find(push.rows, table, [](const row_piece& x) { return x.where.table; });
    return found == push.rows.end() ? nullptr : &*found;
  }

  float clip_of(const push_request& push, table_id table) const {
    return job_.tables[table.value].optimizer.clip_scale(push.gradient_norm);
  }

  /// Adds the rows of one push to the sum. Both lists of keys ascend.
  void add_rows(const std::vector<std::uint64_t>& keys, float* sum, const row_piece& own,
                std::size_t width, float clip) {
    auto at = keys.begin();
    const float* gradient = own.values.get();
    for (const std::uint64_t key : own.where.span()) {
      at = std::lower_bound(at, keys.end(), key);
      float* const into = sum + static_cast<std::size_t>(at - keys.begin()) * width;
      for (std::size_t i = 0; i < width; ++i)
        into[i] += clip * gradient[i];
      gradient += width;
    }
  }

  const job_spec& job_;
  push_list pushes_;
  buffer_pool& pool_;
};

} // namespace

std::optional<push_request> sum_without_values(const std::vector<table_id>& tables,
                                               push_list pushes) {
  const auto is_finite = [](const auto& push) { return std::isfinite(push->gradient_norm); };
  if (!std::ranges::all_of(pushes, is_finite))
    return std::nullopt;
  return push_request{.step = pushes.front()->step,
                      .tables = tables,
                      .base_version = pushes.front()->base_version,
                      .gradient_norm = 0.0f, // It is clipped already.
                      .pieces = {},
                      .others = others_of(pushes)};
}

std::shared_ptr<const push_request> add_up(const job_spec& job, const std::vector<table_id>& tables,
                                           push_list pushes, buffer_pool& pool) {
  auto sum = sum_without_values(tables, pushes);
  if (!sum)
    return nullptr;
  slot_adder adder{job, pushes, pool};
  for (const table_id table : tables) {
    if (job.tables[table.value].is_sparse()) {
      if (auto rows = adder.sparse(table))
        sum->rows.push_back(*std::move(rows));
      continue;
    }
    auto pieces = adder.dense(table);
    if (!pieces)
      return nullptr;
    std::ranges::move(*pieces, std::back_inserter(sum->pieces));
  }
  return std::make_shared<const push_request>(*std::move(sum));
}

} // namespace troupe
