// The rows of a server's partitions: the sparse tables' counterpart of block_store. Rows are
// written in place, so what is read is copied.
#pragma once

#include "actors/protocol/server/shard.hpp"
#include "actors/tables/row_table.hpp"
#include "base/buffer.hpp"
#include "kernels/optimizer.hpp"
#include "serialization/layout.hpp"
#include "serialization/rows.hpp"
#include "storage/checkpoint.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// What one push brings to sparse tables. Borrowed.
struct row_push {
  worker_id worker;
  float gradient_norm = 0.0f;
  std::span<const row_piece> rows;
};

/// A row is made by the first push that brings something for it, with the table's initial values; a
/// row that nobody pushed yet is read as those. A step changes the rows of its pushes' keys and
/// nothing else; where several pushes are summed, one that brings nothing for a row counts as
/// zeros. Tables that are not sparse are none of its business.
///
/// Determinism: values are a function of the job and of the steps applied, bit for bit, however
/// many servers hold the partitions.
///
/// Invariants:
/// (1) a step that cannot be taken changes nothing: add_up() says so, step() cannot fail.
/// (2) for a bsp table the values before its last step are kept too, of the rows that it changed.
class sparse_store {
public:
  /// Partitions without a row yet.
  sparse_store(const job_spec& job, const std::vector<partition_id>& partitions,
               std::shared_ptr<buffer_pool> pool);
  /// From a checkpoint. Errors: damaged (rows that do not fit the job, or are there twice).
  static result<sparse_store> restored(const job_spec& job,
                                       const std::vector<partition_image>& partitions,
                                       std::shared_ptr<buffer_pool> pool);

  /// Checks that tables are sparse and come once each, keys ascend and their partitions are here,
  /// and that there are values. Errors: shape_mismatch, not_ready (partition elsewhere).
  result<void> check(std::span<const row_piece> rows) const;
  /// The same for what is to be read; a table may come several times.
  result<void> check(std::span<const row_keys> rows) const;

  /// First NaN or infinity: the text names worker, table, key and element.
  result<void> check_finite(const row_push& push) const;

  /// The first half of an apply_effect with what its pushes bring, in its order: adds up, and
  /// changes no row. Clipping as in block_store::apply, which says whether the norms are numbers.
  /// Requires: check() of each. Errors: non_finite.
  result<void> add_up(const apply_effect& effect, std::span<const row_push> pushes);
  /// The other half: takes the step. Requires: add_up() of this effect was the last call that
  /// changes anything.
  void step(const apply_effect& effect);

  /// The values in the order of the keys, which are not repeated; a copy. `previous`: read as
  /// before the table's last step. Requires: check().
  row_piece read(const row_keys& rows, bool previous) const;

  /// Adds the slabs to the images of their partitions. No copy; each slab is copied when it is
  /// written to for the first time afterwards.
  void pin(std::vector<partition_image>& images);

  /// Rows of all tables.
  std::uint64_t size() const;

private:
  /// A sparse table in one partition.
  struct part {
    part(const row_layout& layout, double load_max)
        : rows(layout, load_max), changed(layout.pool) {}

    row_table rows;
    key_index changed;           ///< bsp: keys of the rows that the last step changed, ...
    std::vector<float> previous; ///< ... and their values before it.
  };
  struct table {
    std::unique_ptr<row_layout> layout; ///< Null: dense.
    bool is_bsp = false;
    /// One for each partition; empty: elsewhere.
    mutable std::vector<std::optional<part>> parts;
  };
  /// The gradient that one table is stepped with.
  struct sum {
    table_id table;
    std::span<const std::uint64_t> keys;
    std::span<const float> gradient;
    kernels::step_options options;
    // Where it is not a push's own memory:
    std::vector<std::uint64_t> own_keys;
    std::vector<float> own_gradient;
  };
  struct batch;

  const table_spec& spec(table_id id) const { return job_.tables[id.value]; }
  part& part_of(const table& of, std::uint64_t hash) const {
    return *of.parts[hash & (job_.partitions - 1)];
  }
  result<void> check_keys(const row_keys& rows) const;
  std::string row_name(table_id id, std::uint64_t key, std::size_t element) const;
  std::optional<sum> sum_of(const apply_effect& effect, std::span<const row_push> pushes,
                            table_id id);
  void add(const apply_effect& effect, const row_push& push, const row_piece& piece, sum& to);
  void prefetch(const table& of, std::span<const std::uint64_t> keys, batch& into) const;
  void find_or_make(const table& of, std::span<const std::uint64_t> keys, batch& into) const;
  void find(const table& of, std::span<const std::uint64_t> keys, batch& into) const;
  void step(const table& of, const sum& what, std::size_t first, batch& rows) const;
  void forget_previous(const apply_effect& effect, table_id id) const;

  job_spec job_;
  std::shared_ptr<buffer_pool> pool_;
  std::vector<table> tables_; ///< One for each of the job.
  std::size_t partitions_here_ = 0;
  std::shared_ptr<huge_page_pool> memory_; ///< Of the rows.
  std::vector<sum> sums_;                  ///< From add_up() to step().
  key_index summed_;                       ///< Scratch: keys of a sum.
};

} // namespace troupe
