#include "actors/training/keeper_store.hpp"

#include "base/exception_text.hpp"
#include "base/user_code.hpp"
#include "kernels/vector_ops.hpp"
#include "serialization/layout.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace troupe {

namespace {

constexpr std::size_t saved_bytes_max = std::size_t{1} << 30;

/// Returns the failure of a push with a value that is not finite.
failure not_finite(const job_spec& job, const push_request& push, table_id table) {
  return {errc::non_finite,
          fmt::format("worker {} pushed a gradient of batch {} that is not finite: table '{}'",
                      push.step.worker.value, push.step.batch.value, job.tables[table.value].name)};
}

result<void> check_rows(const job_spec& job, const row_keys& rows) {
  const auto table = rows.table.value;
  if (table >= job.tables.size() || job.tables[table].width != rows.width || rows.width == 0)
    return {errc::shape_mismatch,
            fmt::format("rows of width {} do not fit table {}", rows.width, table)};
  return {};
}

} // namespace

template <class Call>
result<void> keeper_store::guarded(const char* function, Call call,
                                   const push_request* push) const {
  if (broken_)
    return *broken_;
  const user_call here{{"keeper", how_.node}};
  try {
    call();
    return {};
  } catch (...) {
    const auto at = push ? fmt::format(" at batch {} of worker {}", push->step.batch.value,
                                       push->step.worker.value)
                         : "";
    broken_ =
      failure{errc::contract_broken, fmt::format("the keeper of '{}' failed in {}(){}: {}",
                                                 how_.node, function, at, exception_text())};
    return *broken_;
  }
}

result<std::shared_ptr<value_store>> keeper_store::made(const job_spec& job,
                                                        const std::vector<partition_image>& images,
                                                        const keeper_options& how,
                                                        std::shared_ptr<buffer_pool> pool) {
  std::shared_ptr<keeper_store> store{new keeper_store{job, how, std::move(pool)}};
  auto done = store->guarded("make", [&] {
    store->keeper_ = how.make();
    if (!store->keeper_)
      throw std::runtime_error{"it returned no keeper"};
  });
  if (done && !images.empty()) {
    const auto& saved = images.front().blocks.at(0);
    done = store->guarded("load", [&] {
      store->keeper_->load({reinterpret_cast<const std::byte*>(saved.values.get()), saved.steps});
    });
  }
  if (!done)
    return done.error();
  return std::shared_ptr<value_store>{std::move(store)};
}

result<void> keeper_store::check(const range& where) const {
  if (where.table.value >= job_.tables.size())
    return {errc::shape_mismatch, fmt::format("the job has no table {}", where.table.value)};
  const auto& table = job_.tables[where.table.value];
  if (table.is_sparse() || where.count > table.size() || where.first > table.size() - where.count)
    return {errc::shape_mismatch, fmt::format("table '{}' has no elements {} to {}", table.name,
                                              where.first, where.first + where.count)};
  return {};
}

result<void> keeper_store::check(const push_request& push) const {
  if (!push.packed.empty())
    return {errc::malformed, "packed values came to a server that has no expander in front"};
  for (const auto& x : push.pieces)
    if (auto fine = check(x.where); !fine)
      return fine;
  for (const auto& x : push.rows)
    if (auto fine = check_rows(job_, x.where); !fine)
      return fine;
  return {};
}

result<void> keeper_store::check(const pull_request& pull) const {
  for (const auto& where : pull.ranges)
    if (auto fine = check(where); !fine)
      return fine;
  for (const auto& rows : pull.rows)
    if (auto fine = check_rows(job_, rows); !fine)
      return fine;
  return {};
}

result<void> keeper_store::admit(const apply_effect&, const push_request& push) {
  return apply(push);
}

result<void> keeper_store::apply(const apply_effect&, std::span<const push_request* const> pushes) {
  for (const auto* push : pushes)
    if (auto done = apply(*push); !done)
      return done;
  return {};
}

result<void> keeper_store::check_finite(const push_request& push) const {
  const auto is_finite = [](std::span<const float> values) {
    return kernels::first_non_finite(values) == values.size();
  };
  for (const auto& x : push.pieces)
    if (!is_finite({x.values.get(), x.where.count}))
      return not_finite(job_, push, x.where.table);
  for (const auto& x : push.rows)
    if (!is_finite({x.values.get(), x.where.floats()}))
      return not_finite(job_, push, x.where.table);
  return {};
}

result<void> keeper_store::apply(const push_request& push) {
  if (auto fine = check_finite(push); !fine)
    return fine;
  std::vector<std::span<const float>> gradients(job_.tables.size());
  std::vector<std::span<const std::uint64_t>> keys(job_.tables.size());
  std::vector<std::vector<float>> whole(job_.tables.size());
  for (const auto& x : push.pieces) {
    const auto table = x.where.table.value;
    if (x.where.count == job_.tables[table].size()) {
      gradients[table] = {x.values.get(), x.where.count};
      continue;
    }
    whole[table].resize(job_.tables[table].size()); // Elements without a piece are zero.
    std::copy_n(x.values.get(), x.where.count,
                whole[table].begin() + static_cast<std::ptrdiff_t>(x.where.first));
    gradients[table] = whole[table];
  }
  for (const auto& x : push.rows) {
    keys[x.where.table.value] = x.where.span();
    gradients[x.where.table.value] = {x.values.get(), x.where.floats()};
  }
  return guarded(
    "apply",
    [&] {
      keeper_->apply({.batch = push.step.batch,
                      .worker = push.step.worker,
                      .batches = 1 + push.others.size(),
                      .gradients = gradients,
                      .keys = keys},
                     {how_.notes.get(), how_.node});
    },
    &push);
}

result<pull_reply> keeper_store::answer(const pull_request& pull,
                                        const std::vector<table_id>& /*previous*/) const {
  std::vector<std::span<float>> values(job_.tables.size());
  std::vector<std::span<const std::uint64_t>> keys(job_.tables.size());
  std::vector<std::shared_ptr<float>> memory(job_.tables.size());
  const auto make = [&](std::size_t table, std::uint64_t floats) {
    memory[table] = pool_->floats(floats);
    values[table] = {memory[table].get(), floats};
    std::ranges::fill(values[table], 0.0f);
  };
  for (const auto& where : pull.ranges)
    if (!memory[where.table.value])
      make(where.table.value, job_.tables[where.table.value].size());
  for (const auto& rows : pull.rows) {
    make(rows.table.value, rows.floats());
    keys[rows.table.value] = rows.span();
  }
  const auto done = guarded("read", [&] {
    keeper_->read({keys}, values);
    for (std::size_t table = 0; table < values.size(); ++table)
      if (const auto at = kernels::first_non_finite(values[table]); at < values[table].size())
        throw std::runtime_error{fmt::format("a value is not finite: {} in table '{}'",
                                             values[table][at], job_.tables[table].name)};
  });
  if (!done)
    return done.error();
  pull_reply answer;
  for (const auto& where : pull.ranges) {
    const auto& of = memory[where.table.value];
    const auto block = block_elements(job_.tables[where.table.value]);
    const auto end = where.first + where.count;
    for (auto first = where.first; first < end;) {
      const auto next = std::min(end, (first / block + 1) * block);
      answer.pieces.push_back(
        {{where.table, first, next - first}, float_ptr{of, of.get() + first}}); // No stamp.
      first = next;
    }
  }
  for (const auto& rows : pull.rows)
    answer.rows.push_back({rows, memory[rows.table.value]});
  return answer;
}

std::vector<partition_image> keeper_store::pin(const std::vector<shard_partition>& partitions) {
  std::vector<std::byte> saved;
  const auto done = guarded("save", [&] {
    saved = keeper_->save();
    if (saved.size() > saved_bytes_max)
      throw std::length_error{"it returned more than 1 GiB"};
  });
  if (!done)
    saved.clear();
  const auto floats = (saved.size() + sizeof(float) - 1) / sizeof(float);
  const auto values = pool_->floats(floats);
  if (!saved.empty())
    std::memcpy(values.get(), saved.data(), saved.size());
  std::fill_n(reinterpret_cast<std::byte*>(values.get()) + saved.size(),
              floats * sizeof(float) - saved.size(), std::byte{0});
  std::vector<partition_image> images;
  for (const auto& x : partitions) {
    partition_image image{.partition = x.partition, .version = x.version, .applied = x.applied};
    image.blocks.push_back({.table = {0},
                            .version = x.version,
                            .steps = saved.size(),
                            .count = floats,
                            .values = values});
    images.push_back(std::move(image));
  }
  return images;
}

} // namespace troupe
