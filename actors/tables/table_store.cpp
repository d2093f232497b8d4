#include "actors/tables/table_store.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace troupe {

namespace {

row_push rows_of(const push_request& push) {
  return {push.step.worker, push.gradient_norm, push.rows};
}

} // namespace

table_store::table_store(const job_spec& job, const std::vector<partition_id>& partitions,
                         const std::shared_ptr<buffer_pool>& pool,
                         const server_functions& functions, const given_values& given)
    : blocks_(job, partitions, pool, functions, given), rows_(job, partitions, pool, functions) {}

result<std::shared_ptr<table_store>>
table_store::restored(const job_spec& job, const std::vector<partition_image>& partitions,
                      const std::shared_ptr<buffer_pool>& pool, const server_functions& functions) {
  if (auto whole = block_store::complete(job, partitions); !whole)
    return whole.error();
  auto rows = sparse_store::restored(job, partitions, pool, functions);
  if (!rows)
    return rows.error();
  return std::shared_ptr<table_store>{
    new table_store{block_store{job, partitions, pool, functions}, *std::move(rows)}};
}

result<void> table_store::check(const push_request& push) const {
  if (!push.packed.empty())
    return {errc::malformed, "packed values came to a server that has no expander in front"};
  if (auto fine = blocks_.check(push.pieces); !fine)
    return fine;
  return rows_.check(std::span<const row_piece>{push.rows});
}

result<void> table_store::check(const pull_request& pull) const {
  if (auto fine = blocks_.check(pull.ranges); !fine)
    return fine;
  return rows_.check(std::span<const row_keys>{pull.rows});
}

result<void> table_store::check_finite(const push_request& push) const {
  if (auto fine = blocks_.check_finite(push); !fine)
    return fine;
  return rows_.check_finite(rows_of(push));
}

result<void> table_store::apply(const apply_effect& effect,
                                std::span<const push_request* const> pushes) {
  std::vector<row_push> rows;
  for (const push_request* push : pushes)
    rows.push_back(rows_of(*push));
  if (auto added = rows_.add_up(effect, rows); !added)
    return added;
  if (auto applied = blocks_.apply(effect, pushes); !applied)
    return applied;
  rows_.step(effect);
  return {};
}

result<void> table_store::admit(const apply_effect& effect, const push_request& push) {
  if (auto fine = blocks_.admit(effect, push); !fine)
    return fine;
  return rows_.check_finite(rows_of(push));
}

void table_store::apply_admitted(std::span<const block_store::admitted_push> pushes) {
  blocks_.apply_admitted(pushes);
  for (const auto& [effect, push] : pushes) {
    if (push->rows.empty())
      continue;
    const row_push rows = rows_of(*push);
    if (rows_.add_up(effect, {&rows, 1})) // Else left out, as in block_store::step_admitted.
      rows_.step(effect);
  }
}

pull_reply table_store::read(const pull_request& pull,
                             const std::vector<table_id>& previous) const {
  pull_reply answer;
  answer.pieces = blocks_.read(pull.ranges, previous, pull.delta ? &answer.unchanged : nullptr);
  for (const row_keys& rows : pull.rows)
    answer.rows.push_back(
      rows_.read(rows, std::find(previous.begin(), previous.end(), rows.table) != previous.end()));
  return answer;
}

std::vector<partition_image> table_store::pin(const std::vector<shard_partition>& partitions) {
  auto images = blocks_.pin(partitions);
  rows_.pin(images);
  return images;
}

} // namespace troupe
