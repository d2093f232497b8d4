// Holds the rows of a server's partitions: block_store for sparse tables. Rows are written in
// place, so reads copy them.
#pragma once

#include "actors/protocol/server/shard.hpp"
#include "actors/tables/row_table.hpp"
#include "actors/tables/server_functions.hpp"
#include "base/buffer.hpp"
#include "kernels/optimizer.hpp"
#include "serialization/layout.hpp"
#include "serialization/rows.hpp"
#include "serialization/snapshot.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// The rows of one push to sparse tables. Borrowed.
struct row_push {
  worker_id worker;
  float gradient_norm = 0.0f;
  std::span<const row_piece> rows;
};

/// A row is made by the first push that has a value for it, with the table's initial values; a row
/// that was never pushed is read as these. A step changes only the rows of its pushes' keys. In a
/// sum of several pushes, a push without a value for a row counts as zeros. Tables that are not
/// sparse are ignored.
///
/// Determinism: values are a function of the job and of the steps applied, bit for bit, however
/// many servers hold the partitions.
///
/// Invariants:
/// (1) a step that cannot be taken changes no row: add_up() fails, and step() cannot fail.
/// (2) for a bsp table the values before its last step are kept too, for the rows that it changed.
class sparse_store {
public:
  /// Makes partitions without rows. `functions`: those that the job's tables name.
  sparse_store(const job_spec& job, const std::vector<partition_id>& partitions,
               std::shared_ptr<buffer_pool> pool, const server_functions& functions = {});
  /// Restores a checkpoint. Errors: damaged (rows that do not fit the job, or are present twice).
  static result<sparse_store> restored(const job_spec& job,
                                       const std::vector<partition_image>& partitions,
                                       std::shared_ptr<buffer_pool> pool,
                                       const server_functions& functions = {});

  /// Checks that tables are sparse and listed once each, keys ascend and their partitions are here,
  /// and values are present. Errors: shape_mismatch, not_ready (partition elsewhere).
  result<void> check(std::span<const row_piece> rows) const;
  /// Checks keys to be read; a table may be listed several times. Errors: as above.
  result<void> check(std::span<const row_keys> rows) const;

  /// Finds the first NaN or infinity: the text names worker, table, key and element.
  result<void> check_finite(const row_push& push) const;

  /// Does the first half of an apply_effect: adds up its pushes, in its order, and changes no row.
  /// Calls server functions, on copies of their rows. Clips as block_store::apply does, which also
  /// checks the norms. Requires: check() of each. Errors: non_finite, contract_broken.
  result<void> add_up(const apply_effect& effect, std::span<const row_push> pushes);
  /// Does the second half: takes the step. Requires: add_up() of this effect was the last call that
  /// changes anything.
  void step(const apply_effect& effect);

  /// Returns a copy of the values in the order of the keys, which are not repeated. `previous`:
  /// values before the table's last step. Requires: check().
  row_piece read(const row_keys& rows, bool previous) const;

  /// Adds the slabs to the images of their partitions. No copy; each slab is copied at the first
  /// write to it afterwards.
  void pin(std::vector<partition_image>& images);

  /// Continues a checksum with all rows, in the order of tables, partitions and creation.
  std::uint32_t checksum(std::uint32_t previous) const;
  /// Returns the number of rows in all tables.
  std::uint64_t size() const;

private:
  /// A sparse table in one partition.
  struct part {
    part(const row_layout& layout, double load_max)
        : rows(layout, load_max), changed(layout.pool) {}

    row_table rows;
    key_index changed; ///< With keeps_previous: keys of the rows that the last step changed.
    std::vector<float> previous; ///< Values of these rows before that step.
  };
  struct table {
    std::unique_ptr<row_layout> layout; ///< Null: dense.
    bool keeps_previous = false;        ///< Its updates are clocks.
    /// One for each partition; nullopt if it is elsewhere.
    mutable std::vector<std::optional<part>> parts;
  };
  /// The gradient that one table is stepped with.
  struct sum {
    table_id table;
    std::span<const std::uint64_t> keys;
    std::span<const float> gradient;
    kernels::step_options options;
    // Set if the sum is not in a push's own memory:
    std::vector<std::uint64_t> own_keys;
    std::vector<float> own_gradient;
    /// Set if the table has a server function: the rows after the step, f32[keys, row_floats].
    std::vector<float> stepped;
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
  result<void> call_function(const apply_effect& effect, sum& what) const;
  void add(const apply_effect& effect, const row_push& push, const row_piece& piece, sum& to);
  void prefetch(const table& of, std::span<const std::uint64_t> keys, batch& into) const;
  void find_or_make(const table& of, std::span<const std::uint64_t> keys, batch& into) const;
  void find(const table& of, std::span<const std::uint64_t> keys, batch& into) const;
  void step(const table& of, const sum& what, std::size_t first, batch& rows) const;
  void forget_previous(const apply_effect& effect, table_id id) const;

  job_spec job_;
  std::shared_ptr<buffer_pool> pool_;
  std::vector<function_spec> functions_; ///< One for each table of the job.
  std::vector<table> tables_;            ///< One for each table of the job.
  std::size_t partitions_here_ = 0;
  std::shared_ptr<huge_page_pool> memory_; ///< Memory of the rows.
  std::vector<sum> sums_;                  ///< From add_up() to step().
  key_index summed_;                       ///< Scratch: keys of a sum.
};

} // namespace troupe
