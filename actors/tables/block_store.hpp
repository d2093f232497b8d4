// Holds the dense values of a server's partitions. Its blocks are ref-counted, replaced and never
// written in place, so a pull, a checkpoint or a slow reader just holds them.
#pragma once

#include "actors/protocol/server/shard.hpp"
#include "actors/tables/initial_values.hpp"
#include "actors/tables/server_functions.hpp"
#include "actors/tables/stretches.hpp"
#include "base/buffer.hpp"
#include "kernels/optimizer.hpp"
#include "serialization/layout.hpp"
#include "serialization/messages.hpp"
#include "serialization/snapshot.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// Returns the options of step `step` (from 1) on some weights, without clipping by norm.
kernels::step_options options_of(const optimizer_spec& x, std::uint64_t step);

/// A step changes only the elements that its pushes' pieces cover. A block that no piece touches
/// keeps its values, optimiser state and count of steps; within a block the elements outside the
/// pieces keep theirs. In a sum of several pushes, a push without a value for an element counts as
/// zero.
///
/// Determinism: values are a function of the job and of the steps applied, bit for bit, however
/// many servers hold the partitions.
///
/// Invariants:
/// (1) a published block is never written to; a step publishes all its new blocks or none.
/// (2) for a bsp table the values before the table's last step are kept too, also of blocks which
///     that step did not touch.
/// (3) a stamp names the values of one block at one time. It is new whenever they changed, and no
///     store, not even the successor of this one, gives it to other values.
class block_store {
public:
  /// Makes fresh partitions, filled by the tables' initialisers: a function of job seed, table name
  /// and element, the same on any number of servers. `functions`: those that the job's tables name;
  /// a store that takes no steps needs none. `given`: takes the place of initialisers.
  block_store(const job_spec& job, const std::vector<partition_id>& partitions,
              std::shared_ptr<buffer_pool> pool, const server_functions& functions = {},
              const given_values& given = {});
  /// Makes them from a checkpoint. Requires: complete(job, partitions).
  block_store(const job_spec& job, const std::vector<partition_image>& partitions,
              std::shared_ptr<buffer_pool> pool, const server_functions& functions = {});

  /// Checks that the images hold every block of their partitions, in its size. Errors: damaged.
  static result<void> complete(const job_spec& job, const std::vector<partition_image>& partitions);

  /// Checks that each piece lies within one block of a partition that is here, is of no frozen
  /// table, has values, and overlaps no other piece. Errors: shape_mismatch, not_ready (partition
  /// elsewhere).
  result<void> check(const std::vector<piece>& pieces) const;
  /// Checks ranges to be read; they may cross blocks and overlap. Errors: as above.
  result<void> check(const std::vector<range>& ranges) const;

  /// Finds the first NaN or infinity: the text names worker, table and element. If a table clips by
  /// norm, gradient_norm must be finite as well. For bsp slots, on arrival.
  result<void> check_finite(const push_request& push) const;

  /// Carries out an apply_effect with the updates of its pushes, in its order. Clipping by norm
  /// uses each update's gradient_norm, push by push before they are added up. Pieces of tables that
  /// the effect does not name are ignored. Requires: check() of each update's pieces.
  /// Errors: non_finite (names worker, table, element), contract_broken (a server function threw);
  /// nothing has changed.
  result<void> apply(const apply_effect& effect, std::span<const push_request* const> pushes);

  /// Checks that apply() of an effect with this one push would succeed. Errors: non_finite.
  result<void> admit(const apply_effect& effect, const push_request& push) const;

  /// Carries out effects of one push each, none of a bsp table, in their order but in one pass over
  /// memory: block by block, push by push. Gives the same bytes as one after the other. Requires:
  /// each push has passed check() and admit(), and none is for a table with a server function.
  struct admitted_push {
    apply_effect effect;
    const push_request* push = nullptr;
  };
  void apply_admitted(std::span<const admitted_push> pushes);

  /// Gives each element of a table that is not frozen another value. Optimiser state and counts of
  /// steps stay. `next`: called once for each block, with its elements, their values, and the place
  /// of the new ones.
  void rewrite(const std::function<void(const range& where, std::span<const float> old,
                                        std::span<float> next)>& next);

  /// Returns the values of `ranges`, one piece for each block touched; no copy. `previous`: tables
  /// to be read as before their last step; present values if this store has taken none.
  /// `unchanged`: for a delta; takes ranges whose stamp is that of their block, and the pieces then
  /// have stamps. Requires: check().
  std::vector<piece> read(const std::vector<range>& ranges, const std::vector<table_id>& previous,
                          std::vector<range>* unchanged = nullptr) const;

  /// Pins all values for a checkpoint; `partitions` from shard::partitions(). No copy.
  std::vector<partition_image> pin(const std::vector<shard_partition>& partitions) const;

  /// Continues a checksum with all values and their state, in the order of tables and blocks.
  std::uint32_t checksum(std::uint32_t previous) const;

private:
  struct block {
    std::uint64_t count = 0; ///< 0: its partition is elsewhere.
    float_ptr values;
    float_ptr state;    ///< Null if the optimiser has none.
    float_ptr previous; ///< bsp: values before the table's last step, if it changed them.
    std::uint64_t version = 0;
    std::uint64_t steps = 0;
    std::uint64_t stamp = 0;          ///< Stamp of `values`.
    std::uint64_t previous_stamp = 0; ///< Stamp of `previous`.
  };
  /// The part of one push in one block.
  struct share {
    table_id table;
    std::uint64_t block = 0;
    std::size_t push = 0;    ///< Position in the effect.
    std::uint64_t first = 0; ///< Element within the block.
    std::uint64_t count = 0;
    const float* values = nullptr;
  };
  /// A block as it will be published.
  struct successor {
    table_id table;
    std::uint64_t block = 0;
    std::shared_ptr<float> values;
    std::shared_ptr<float> state;
    std::uint64_t steps = 0; ///< Steps since the published block.
  };

  block_store(const job_spec& job, std::shared_ptr<buffer_pool> pool,
              const server_functions& functions);

  const table_spec& spec(table_id table) const { return job_.tables[table.value]; }
  std::string element_name(table_id table, std::uint64_t element) const;
  result<void> check_within(const range& x) const;
  std::vector<share> shares_of(const apply_effect& effect,
                               std::span<const push_request* const> pushes) const;
  successor successor_of(table_id table, std::uint64_t index);
  successor step_admitted(std::span<const admitted_push> pushes, std::span<const share> shares);
  result<void> step(successor& next, const apply_effect& effect,
                    std::span<const push_request* const> pushes, std::span<const share> shares);
  result<void> call_function(successor& next, const kernels::step_options& options,
                             std::uint64_t staleness, const detail::stretch& at,
                             std::span<const float> gradient) const;
  std::span<const float> gradient_of(std::span<const share> shares, std::span<const float> clips,
                                     std::uint64_t first, std::uint64_t count);
  failure not_finite(std::span<const push_request* const> pushes, const share& where,
                     std::uint64_t first) const;
  void drop_previous(const apply_effect& effect);
  void publish(std::vector<successor> fresh);
  std::uint64_t next_stamp();

  job_spec job_;
  std::shared_ptr<buffer_pool> pool_;
  std::vector<function_spec> functions_;   ///< One for each table.
  std::vector<std::vector<block>> tables_; ///< [table][block]
  std::uint64_t last_stamp_;               ///< Begins at random, so that no two stores agree.
  std::vector<float> sum_;                 ///< Scratch: the sum of one stretch of a block.
  std::vector<float> scaled_;              ///< Scratch: a clipped gradient.
};

} // namespace troupe
