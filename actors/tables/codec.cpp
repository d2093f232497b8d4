#include "actors/tables/codec.hpp"

#include "actors/tables/packing.hpp"
#include "serialization/layout.hpp"
#include "serialization/rows.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace troupe {

namespace {

/// Returns a seed that is a function of job, batch and block only, so that a repeated batch draws
/// the same numbers. Each step mixes all bits of the seed so far.
std::uint64_t seed_of(const job_spec& job, batch_id batch, const range& block) {
  std::uint64_t seed = row_hash(job.seed);
  for (const std::uint64_t each : {batch.value, std::uint64_t{block.table.value}, block.first})
    seed = row_hash(seed ^ (each + 1));
  return seed;
}

/// Calls body(block) for each block of a range, or the part of it that the range covers.
template <class Body>
void for_each_piece(const range& whole, std::uint64_t per_block, Body body) {
  const auto end = whole.first + whole.count;
  for (auto first = whole.first; first < end;) {
    const auto next = std::min(end, (first / per_block + 1) * per_block);
    body(range{whole.table, first, next - first, whole.stamp});
    first = next;
  }
}

} // namespace

encoding_set codec_options::sends() const {
  encoding_set all = only(pulls);
  for (const auto& each : pushes)
    all |= only(each.how);
  return all;
}

bool codec_options::keeps_residual() const {
  return std::ranges::any_of(pushes, &compression::keeps_residual);
}

codec::codec(job_spec job, codec_options options)
    : job_(std::move(job)), options_(std::move(options)) {
  options_.pushes.resize(job_.tables.size());
  residuals_.resize(job_.tables.size());
  for (const auto& table : job_.tables) {
    block_elements_.push_back(block_elements(table));
    elements_ += table.size();
    assert(block_elements_.back() <= packed_elements_max);
  }
}

void codec::pack(push_request& push) {
  std::vector<piece> left;
  for (auto& whole : push.pieces) {
    const auto table = whole.where.table.value;
    const auto& how = options_.pushes.at(table);
    if (how.how == encoding::f32) {
      left.push_back(std::move(whole));
      continue;
    }
    auto& residual = residuals_[table];
    if (how.keeps_residual() && residual.empty())
      residual.resize(job_.tables[table].size());
    const auto per_block = block_elements_[table];
    std::size_t size_bytes = 0;
    for_each_piece(whole.where, per_block,
                   [&](const range& block) { size_bytes += packed_bytes(how, block.count); });
    const auto memory = pool_.bytes(size_bytes);
    std::byte* at = memory.get();
    for_each_piece(whole.where, per_block, [&](const range& block) {
      const std::span to{at, packed_bytes(how, block.count)};
      const std::span x{whole.values.get() + (block.first - whole.where.first), block.count};
      const auto kept = std::span{residual}.subspan(residual.empty() ? 0 : block.first,
                                                    residual.empty() ? 0 : block.count);
      const auto seed = seed_of(job_, push.step.batch, block);
      troupe::pack(how, x, kept, &seed, to);
      push.packed.push_back({block, how.how, static_cast<std::uint32_t>(to.size()), {memory, at}});
      at += to.size();
    });
  }
  push.pieces = std::move(left);
}

void codec::pack(pull_reply& answer, encoding how) {
  assert(how == encoding::fp16 || how == encoding::bf16 || how == encoding::int8);
  for (const piece& whole : answer.pieces) {
    const auto size_bytes = packed_bytes({how, 0}, whole.where.count);
    const auto memory = pool_.bytes(size_bytes);
    troupe::pack({how, 0}, {whole.values.get(), whole.where.count}, {}, nullptr,
                 {memory.get(), size_bytes});
    answer.packed.push_back(
      {whole.where, how, static_cast<std::uint32_t>(size_bytes), {memory, memory.get()}});
  }
  answer.pieces.clear();
}

result<void> codec::unpack(push_request& push) { return unpack(push.packed, push.pieces); }

result<void> codec::unpack(pull_reply& answer) { return unpack(answer.packed, answer.pieces); }

/// Checks packed pieces before any memory is taken for them: a stranger may have sent them.
/// Together they may have at most the elements of all tables.
result<void> codec::check(const std::vector<packed_piece>& packed) const {
  std::uint64_t left = elements_;
  for (const auto& each : packed) {
    const auto& where = each.where;
    const auto table = where.table.value;
    if (table >= job_.tables.size() || where.count == 0 || where.count > left
        || where.first >= job_.tables[table].size()
        || where.count > job_.tables[table].size() - where.first
        || where.first / block_elements_[table]
             != (where.first + where.count - 1) / block_elements_[table])
      return {errc::malformed, "packed values of no block of the job: table "
                                 + std::to_string(table) + ", first " + std::to_string(where.first)
                                 + ", count " + std::to_string(where.count)};
    left -= where.count;
  }
  return {};
}

result<void> codec::unpack(std::vector<packed_piece>& packed, std::vector<piece>& to) {
  if (auto fine = check(packed); !fine)
    return fine;
  for (const auto& each : packed) {
    auto memory = pool_.floats(each.where.count);
    if (auto done = troupe::unpack(each.how, each.span(), {memory.get(), each.where.count}); !done)
      return done;
    to.push_back({each.where, std::move(memory)});
  }
  packed.clear();
  return {};
}

bool codec::forget() {
  const bool any = !std::ranges::all_of(residuals_, &std::vector<float>::empty);
  for (auto& each : residuals_)
    each = {};
  return any;
}

} // namespace troupe
