#include "actors/tables/block_store.hpp"

#include "base/crc32c.hpp"
#include "base/system/draw_random.hpp"
#include "kernels/vector_ops.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace troupe {

namespace {

std::size_t state_per_element(const table_spec& table) { return state_per_weight(table.optimizer); }

template <class Function>
void for_each_block(const job_spec& job, Function visit) {
  for (std::uint32_t table = 0; table < job.tables.size(); ++table)
    for (std::uint64_t i = 0; i < block_count(job.tables[table]); ++i)
      visit(table_id{table}, i, partition_of(job, {table}, i));
}

bool contains(const std::vector<table_id>& tables, table_id table) {
  return std::find(tables.begin(), tables.end(), table) != tables.end();
}

const char* name_of_non_finite(float x) { return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf"; }

failure shape_mismatch(const std::string& what) { return {errc::shape_mismatch, what}; }

/// Checks that the push's norm is finite, if one of the tables clips by norm.
result<void> check_norms(const job_spec& job, const std::vector<table_id>& tables,
                         const push_request& push) {
  if (std::isfinite(push.gradient_norm))
    return {};
  for (const table_id table : tables)
    if (job.tables[table.value].optimizer.clip_norm > 0.0f)
      return {errc::non_finite, "worker " + std::to_string(push.step.worker.value)
                                  + " pushed a gradient whose norm is not finite: table '"
                                  + job.tables[table.value].name + "' ("
                                  + name_of_non_finite(push.gradient_norm) + ")"};
  return {};
}

/// Returns the options of the next step on a block, without clipping by norm.
kernels::step_options options_of(const optimizer_spec& optimizer, const apply_effect& effect,
                                 std::uint64_t steps_before) {
  kernels::step_options options = options_of(optimizer, steps_before + 1);
  options.rate = optimizer.rate_at(effect.staleness_versions);
  options.gradient_scale = 1.0f / static_cast<float>(effect.pushes);
  return options;
}

} // namespace

kernels::step_options options_of(const optimizer_spec& x, std::uint64_t step) {
  return {.kind = x.kind,
          .rate = x.learning_rate,
          .momentum = x.momentum,
          .beta2 = x.beta2,
          .epsilon = x.epsilon,
          .l1 = x.l1,
          .beta = x.beta,
          .weight_decay = x.weight_decay,
          .clip_value = x.clip_value,
          .step = step};
}

// -- making --

block_store::block_store(const job_spec& job, std::shared_ptr<buffer_pool> pool,
                         const server_functions& functions)
    : job_(job), pool_(std::move(pool)), functions_(functions_of(job, functions)),
      last_stamp_(draw_random()) {
  for (const table_spec& table : job_.tables)
    tables_.emplace_back(block_count(table));
}

block_store::block_store(const job_spec& job, const std::vector<partition_id>& partitions,
                         std::shared_ptr<buffer_pool> pool, const server_functions& functions,
                         const given_values& given)
    : block_store(job, std::move(pool), functions) {
  const std::set<partition_id> here(partitions.begin(), partitions.end());
  for_each_block(job_, [&](table_id table, std::uint64_t index, partition_id partition) {
    if (!here.contains(partition))
      return;
    const range elements = block_range(job_, table, index);
    const auto values = pool_->floats(elements.count);
    if (const auto found = given.find(table.value); found != given.end())
      std::memcpy(values.get(), found->second->data() + elements.first,
                  elements.count * sizeof(float));
    else
      fill_initial_values(job_.seed, spec(table), elements.first, {values.get(), elements.count});
    block& fresh = tables_[table.value][index];
    fresh.count = elements.count;
    fresh.values = values;
    fresh.stamp = next_stamp();
    if (const std::size_t state_count = elements.count * state_per_element(spec(table))) {
      const auto state = pool_->floats(state_count);
      std::fill_n(state.get(), state_count, 0.0f);
      fresh.state = state;
    }
  });
}

block_store::block_store(const job_spec& job, const std::vector<partition_image>& partitions,
                         std::shared_ptr<buffer_pool> pool, const server_functions& functions)
    : block_store(job, std::move(pool), functions) {
  assert(complete(job, partitions));
  for (const partition_image& partition : partitions)
    for (const block_image& x : partition.blocks)
      tables_[x.table.value][x.block] = {x.count,   x.values, x.state,      nullptr,
                                         x.version, x.steps,  next_stamp(), 0};
}

result<void> block_store::complete(const job_spec& job,
                                   const std::vector<partition_image>& partitions) {
  std::map<std::tuple<partition_id, table_id, std::uint64_t>, const block_image*> found;
  std::set<partition_id> here;
  std::size_t blocks = 0;
  for (const partition_image& partition : partitions) {
    here.insert(partition.partition);
    blocks += partition.blocks.size();
    for (const block_image& x : partition.blocks)
      found.emplace(std::tuple{partition.partition, x.table, x.block}, &x);
  }
  std::optional<std::string> wrong;
  if (found.size() != blocks)
    wrong = "a block comes twice";
  for_each_block(job, [&](table_id table, std::uint64_t index, partition_id partition) {
    if (!here.contains(partition))
      return;
    const auto at = found.find({partition, table, index});
    const std::uint64_t count = block_range(job, table, index).count;
    const std::uint64_t state_count = count * state_per_element(job.tables[table.value]);
    const bool fits = at != found.end() && at->second->count == count && at->second->values
                      && at->second->state_count == state_count
                      && (state_count == 0 || at->second->state);
    if (!fits)
      wrong = "block " + std::to_string(index) + " of table '" + job.tables[table.value].name
              + "' is missing or has another size";
    else
      found.erase(at);
  });
  if (!wrong && !found.empty())
    wrong = "a block lies in a partition that is not its own";
  if (wrong)
    return {errc::damaged, "checkpoint does not hold the job's blocks: " + *wrong};
  return {};
}

// -- checking --

std::string block_store::element_name(table_id table, std::uint64_t element) const {
  return "table '" + spec(table).name + "', element " + std::to_string(element);
}

result<void> block_store::check_within(const range& x) const {
  if (x.table.value >= job_.tables.size())
    return shape_mismatch("no such table: " + std::to_string(x.table.value));
  const std::uint64_t size = spec(x.table).size();
  if (x.count == 0 || x.first >= size || x.count > size - x.first)
    return shape_mismatch("range outside its table: " + element_name(x.table, x.first) + ", "
                          + std::to_string(x.count) + " of " + std::to_string(size) + " elements");
  const std::uint64_t length = block_elements(spec(x.table));
  for (std::uint64_t i = x.first / length; i <= (x.first + x.count - 1) / length; ++i)
    if (tables_[x.table.value][i].count == 0)
      return {errc::not_ready, "partition " + std::to_string(partition_of(job_, x.table, i).value)
                                 + " is not here: " + element_name(x.table, i * length)};
  return {};
}

result<void> block_store::check(const std::vector<range>& ranges) const {
  for (const range& x : ranges)
    if (auto within = check_within(x); !within)
      return within;
  return {};
}

result<void> block_store::check(const std::vector<piece>& pieces) const {
  std::vector<range> covered;
  for (const piece& x : pieces) {
    if (auto within = check_within(x.where); !within)
      return within;
    const std::uint64_t length = block_elements(spec(x.where.table));
    if (x.where.first / length != (x.where.first + x.where.count - 1) / length)
      return shape_mismatch("piece crosses the end of a block: "
                            + element_name(x.where.table, x.where.first) + ", "
                            + std::to_string(x.where.count) + " elements");
    if (spec(x.where.table).frozen)
      return shape_mismatch("a piece for table '" + spec(x.where.table).name
                            + "', which is frozen: a stage must not add one");
    if (!x.values)
      return shape_mismatch("piece without values: " + element_name(x.where.table, x.where.first));
    covered.push_back(x.where);
  }
  std::sort(covered.begin(), covered.end(), [](const range& a, const range& b) {
    return std::pair{a.table, a.first} < std::pair{b.table, b.first};
  });
  for (std::size_t i = 1; i < covered.size(); ++i)
    if (covered[i].table == covered[i - 1].table
        && covered[i].first < covered[i - 1].first + covered[i - 1].count)
      return shape_mismatch("two pieces cover " + element_name(covered[i].table, covered[i].first));
  return {};
}

result<void> block_store::check_finite(const push_request& push) const {
  for (const piece& x : push.pieces) {
    const std::size_t at = kernels::first_non_finite({x.values.get(), x.where.count});
    if (at < x.where.count)
      return {errc::non_finite, "worker " + std::to_string(push.step.worker.value)
                                  + " pushed a gradient that is not finite: "
                                  + element_name(x.where.table, x.where.first + at) + " ("
                                  + name_of_non_finite(x.values.get()[at]) + ")"};
  }
  return check_norms(job_, push.tables, push);
}

// -- stepping --

std::vector<block_store::share>
block_store::shares_of(const apply_effect& effect,
                       std::span<const push_request* const> pushes) const {
  std::vector<share> shares;
  for (std::size_t i = 0; i < pushes.size(); ++i) {
    for (const piece& x : pushes[i]->pieces) {
      if (!contains(effect.tables, x.where.table))
        continue;
      const std::uint64_t length = block_elements(spec(x.where.table));
      const std::uint64_t index = x.where.first / length;
      const std::pair at{x.where.table, partition_of(job_, x.where.table, index)};
      if (std::find(effect.skip.begin(), effect.skip.end(), at) != effect.skip.end())
        continue;
      shares.push_back(
        {x.where.table, index, i, x.where.first - index * length, x.where.count, x.values.get()});
    }
  }
  std::sort(shares.begin(), shares.end(), [](const share& a, const share& b) {
    return std::tie(a.table, a.block, a.push, a.first)
           < std::tie(b.table, b.block, b.push, b.first);
  });
  return shares;
}

result<void> block_store::apply(const apply_effect& effect,
                                std::span<const push_request* const> pushes) {
  assert((effect.pushes == pushes.size() || pushes.size() == 1) && !pushes.empty());
  for (const push_request* push : pushes)
    if (auto usable = check_norms(job_, effect.tables, *push); !usable)
      return usable;
  const std::vector<share> shares = shares_of(effect, pushes);
  std::vector<successor> fresh;
  for (auto first = shares.begin(); first != shares.end();) {
    const auto last = std::find_if(first, shares.end(), [&](const share& x) {
      return x.table != first->table || x.block != first->block;
    });
    fresh.push_back(successor_of(first->table, first->block));
    if (auto done = step(fresh.back(), effect, pushes, {first, last}); !done)
      return done;
    first = last;
  }
  drop_previous(effect);
  publish(std::move(fresh));
  return {};
}

result<void> block_store::admit(const apply_effect& effect, const push_request& push) const {
  auto usable = check_norms(job_, effect.tables, push);
  return usable ? check_finite(push) : usable;
}

void block_store::apply_admitted(std::span<const admitted_push> pushes) {
  std::vector<share> shares;
  for (std::size_t i = 0; i < pushes.size(); ++i)
    for (share& x : shares_of(pushes[i].effect, {&pushes[i].push, 1})) {
      x.push = i;
      shares.push_back(x);
    }
  std::stable_sort(shares.begin(), shares.end(), [](const share& a, const share& b) {
    return std::tie(a.table, a.block) < std::tie(b.table, b.block);
  });
  std::vector<successor> fresh;
  for (auto first = shares.begin(); first != shares.end();) {
    const auto last = std::find_if(first, shares.end(), [&](const share& x) {
      return x.table != first->table || x.block != first->block;
    });
    if (auto next = step_admitted(pushes, {first, last}); next.steps > 0)
      fresh.push_back(std::move(next));
    first = last;
  }
  publish(std::move(fresh));
}

/// Makes the successor of one block. Leaves out a push whose memory turned bad after admit(), which
/// only a hostile process of this host can cause; other pushes keep their effect.
block_store::successor block_store::step_admitted(std::span<const admitted_push> pushes,
                                                  std::span<const share> shares) {
  std::set<std::size_t> bad;
  for (;;) {
    successor next = successor_of(shares.front().table, shares.front().block);
    auto first = shares.begin();
    while (first != shares.end()) {
      const std::size_t number = first->push;
      const auto last =
        std::find_if(first, shares.end(), [=](const share& x) { return x.push != number; });
      std::vector<share> own(first, last);
      for (share& x : own)
        x.push = 0;
      const auto& [effect, push] = pushes[number];
      if (!bad.contains(number) && !step(next, effect, {&push, 1}, own)) {
        bad.insert(number);
        break;
      }
      first = last;
    }
    if (first == shares.end())
      return next;
  }
}

block_store::successor block_store::successor_of(table_id table, std::uint64_t index) {
  const block& old = tables_[table.value][index];
  successor next{table, index, pool_->floats(old.count), nullptr, 0};
  if (const std::size_t state_count = old.count * state_per_element(spec(table)))
    next.state = pool_->floats(state_count);
  return next;
}

/// Takes one step. The first step of a successor reads the published block, further ones the
/// successor itself.
result<void> block_store::step(successor& next, const apply_effect& effect,
                               std::span<const push_request* const> pushes,
                               std::span<const share> shares) {
  const optimizer_spec& optimizer = spec(next.table).optimizer;
  const std::size_t per_element = state_per_element(spec(next.table));
  const block& old = tables_[next.table.value][next.block];
  const std::size_t state_count = old.count * per_element;
  const bool is_first = next.steps == 0;
  const float* const values_before = is_first ? old.values.get() : next.values.get();
  const float* const state_before = is_first ? old.state.get() : next.state.get();

  kernels::step_options options = options_of(optimizer, effect, old.steps + next.steps);
  ++next.steps;
  std::vector<float> clips;
  for (const push_request* push : pushes)
    clips.push_back(optimizer.clip_scale(push->gradient_norm));
  if (clips.size() == 1)
    options.gradient_scale *= std::exchange(clips.front(), 1.0f);

  const std::vector<detail::stretch> stretches = detail::stretches_of(shares);
  const bool whole = stretches.front().end - stretches.front().first == old.count;
  const bool by_function = optimizer.kind == optimizer_kind::user;
  if (whole && !by_function) {
    const auto gradient = gradient_of(shares, clips, 0, old.count);
    if (!kernels::optimizer_step({next.values.get(), old.count}, {next.state.get(), state_count},
                                 {values_before, old.count}, {state_before, state_count}, gradient,
                                 options))
      return not_finite(pushes, shares.front(), 0);
    return {};
  }
  if (is_first) {
    std::copy_n(values_before, old.count, next.values.get());
    std::copy_n(state_before, state_count, next.state.get());
  }
  for (const detail::stretch& at : stretches) {
    const auto gradient = gradient_of(shares, clips, at.first, at.end - at.first);
    const std::span<float> values{next.values.get() + at.first, gradient.size()};
    if (by_function) {
      if (kernels::first_non_finite(gradient) < gradient.size())
        return not_finite(pushes, shares.front(), at.first);
      if (auto done = call_function(next, options, effect.staleness_versions, at, gradient); !done)
        return done;
      continue;
    }
    detail::state_of_stretch state{next.state.get(), per_element, old.count, at};
    if (!kernels::optimizer_step(values, state.values(), values, state.values(), gradient, options))
      return not_finite(pushes, shares.front(), at.first);
    state.write_back();
  }
  return {};
}

/// Calls the table's function on one stretch of the successor.
result<void> block_store::call_function(successor& next, const kernels::step_options& options,
                                        std::uint64_t staleness, const detail::stretch& at,
                                        std::span<const float> gradient) const {
  const optimizer_spec& optimizer = spec(next.table).optimizer;
  const function_spec& function = functions_[next.table.value];
  assert(function.step != nullptr);
  const std::uint64_t count = tables_[next.table.value][next.block].count;
  const std::uint64_t first = block_range(job_, next.table, next.block).first + at.first;
  const step_info info{.table = next.table,
                       .first = first,
                       .step = options.step,
                       .staleness = staleness,
                       .rate = options.rate,
                       .scale = options.gradient_scale,
                       .parameters = optimizer.parameters};
  const std::span<float> weights{next.values.get() + at.first, gradient.size()};
  const bool whole = gradient.size() == count;
  std::optional<detail::state_of_stretch> part;
  if (!whole)
    part.emplace(next.state.get(), optimizer.function_state, count, at);
  const auto state =
    whole ? std::span{next.state.get(), count * optimizer.function_state} : part->values();
  if (auto done = take_step(function, optimizer, info, weights, state, gradient); !done)
    return failure{done.error().code, done.error().text + ": table '" + spec(next.table).name
                                        + "', elements " + std::to_string(first) + " to "
                                        + std::to_string(first + gradient.size() - 1)};
  if (part)
    part->write_back();
  return {};
}

/// Returns the gradient of one stretch: a share's own memory if it is alone, else the sum in slot
/// order.
std::span<const float> block_store::gradient_of(std::span<const share> shares,
                                                std::span<const float> clips, std::uint64_t first,
                                                std::uint64_t count) {
  for (const share& x : shares)
    if (x.first == first && x.count == count && clips[x.push] == 1.0f
        && std::none_of(shares.begin(), shares.end(), [&](const share& y) {
             return &x != &y && y.first < first + count && first < y.first + y.count;
           }))
      return {x.values, count};
  sum_.assign(count, 0.0f);
  for (const share& x : shares) {
    if (x.first < first || x.first >= first + count)
      continue;
    std::span<const float> gradient{x.values, x.count};
    if (const float clip = clips[x.push]; clip != 1.0f) {
      scaled_.assign(gradient.begin(), gradient.end());
      for (float& value : scaled_)
        value *= clip;
      gradient = scaled_;
    }
    kernels::add(std::span{sum_}.subspan(x.first - first, x.count), gradient);
  }
  return sum_;
}

/// Names the push whose gradient is not finite, or the element whose sum is not. `first`: where the
/// stretch of the last step begins in the block of `where`.
failure block_store::not_finite(std::span<const push_request* const> pushes, const share& where,
                                std::uint64_t first) const {
  for (const push_request* push : pushes)
    if (auto finite = check_finite(*push); !finite)
      return finite.error();
  const std::uint64_t element =
    block_range(job_, where.table, where.block).first + first + kernels::first_non_finite(sum_);
  return {errc::non_finite, "sum of " + std::to_string(pushes.size())
                              + " gradients is not finite: " + element_name(where.table, element)};
}

/// Drops the values from before the last step, because the step of a clock begins.
void block_store::drop_previous(const apply_effect& effect) {
  for (const table_id table : effect.tables) {
    if (!spec(table).sync.traits().clock_updates)
      continue;
    auto& blocks = tables_[table.value];
    for (std::uint64_t i = 0; i < blocks.size(); ++i) {
      const std::pair at{table, partition_of(job_, table, i)};
      if (std::find(effect.skip.begin(), effect.skip.end(), at) == effect.skip.end())
        blocks[i].previous = nullptr;
    }
  }
}

void block_store::publish(std::vector<successor> fresh) {
  for (successor& next : fresh) {
    block& at = tables_[next.table.value][next.block];
    // A gradient of zeros, as of inputs that never occur, changes no value.
    const bool changed =
      std::memcmp(at.values.get(), next.values.get(), at.count * sizeof(float)) != 0;
    if (spec(next.table).sync.traits().clock_updates) {
      at.previous = std::move(at.values);
      at.previous_stamp = at.stamp;
    }
    if (changed)
      at.stamp = next_stamp();
    at.values = std::move(next.values);
    at.state = std::move(next.state);
    at.version += next.steps;
    at.steps += next.steps;
  }
}

void block_store::rewrite(const std::function<void(const range& where, std::span<const float> old,
                                                   std::span<float> next)>& next) {
  for_each_block(job_, [&](table_id table, std::uint64_t index, partition_id) {
    block& at = tables_[table.value][index];
    if (at.count == 0 || spec(table).frozen)
      return;
    auto values = pool_->floats(at.count);
    next(block_range(job_, table, index), {at.values.get(), at.count}, {values.get(), at.count});
    at.values = std::move(values);
    at.stamp = next_stamp();
    ++at.version;
  });
}

std::uint32_t block_store::checksum(std::uint32_t previous) const {
  std::uint32_t crc = previous;
  for (std::uint32_t table = 0; table < tables_.size(); ++table)
    for (const block& x : tables_[table]) {
      const std::span values{x.values.get(), x.count};
      const std::span state{x.state.get(), x.count * state_per_element(spec({table}))};
      crc = storage::detail::crc32c(std::as_bytes(values), crc);
      crc = storage::detail::crc32c(std::as_bytes(state), crc);
    }
  return crc;
}

std::uint64_t block_store::next_stamp() {
  if (++last_stamp_ == 0)
    ++last_stamp_;
  return last_stamp_;
}

// -- reading --

std::vector<piece> block_store::read(const std::vector<range>& ranges,
                                     const std::vector<table_id>& previous,
                                     std::vector<range>* unchanged) const {
  std::vector<piece> pieces;
  for (const range& x : ranges) {
    const bool before = contains(previous, x.table);
    const std::uint64_t length = block_elements(spec(x.table));
    const std::uint64_t end = x.first + x.count;
    for (std::uint64_t first = x.first; first < end;) {
      const block& at = tables_[x.table.value][first / length];
      const bool older = before && at.previous;
      const float_ptr& values = older ? at.previous : at.values;
      const std::uint64_t next = std::min(end, (first / length + 1) * length);
      range where{x.table, first, next - first};
      first = next;
      if (unchanged != nullptr)
        where.stamp = older ? at.previous_stamp : at.stamp;
      if (unchanged != nullptr && where.stamp == x.stamp)
        unchanged->push_back(where);
      else
        pieces.push_back({where, float_ptr{values, values.get() + where.first % length}});
    }
  }
  return pieces;
}

std::vector<partition_image>
block_store::pin(const std::vector<shard_partition>& partitions) const {
  std::map<partition_id, std::vector<block_image>> blocks;
  for_each_block(job_, [&](table_id table, std::uint64_t index, partition_id partition) {
    const block& x = tables_[table.value][index];
    if (x.count > 0)
      blocks[partition].push_back({table, index, x.version, x.steps, x.count, x.values,
                                   x.count * state_per_element(spec(table)), x.state});
  });
  std::vector<partition_image> images;
  for (const shard_partition& p : partitions)
    images.push_back({p.partition, p.version, p.applied, std::move(blocks[p.partition]), {}});
  return images;
}

} // namespace troupe
