// Makes chains and messages between replicas with random content, and compares them.
#pragma once

#include "serialization/replication.hpp"
#include "tests/serialization/random_source.hpp"
#include "tests/serialization/random_values.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::test {

inline chain_config random_config(random_source& random) {
  chain_config made{{random.number()},
                    {random.number()},
                    random.several([&] { return random_member(random); }),
                    {}};
  if (random.chance())
    made.joiner = random_member(random);
  return made;
}

inline chain_metadata random_record(random_source& random) {
  chain_metadata made{random_config(random), random.number(), {}};
  if (random.chance())
    made.proposed = random_config(random);
  return made;
}

inline chain_status random_status(random_source& random) {
  return {{random.number()}, {random.number()}, {random.number()},
          random.chance(),   random.chance(),   random.chance()};
}

inline block_image random_block(random_source& random) {
  const auto count = random.below(6), state_count = random.below(6);
  return {{random.number32()},
          random.number(),
          random.number(),
          random.number(),
          count,
          random_floats(random, count),
          state_count,
          random_floats(random, state_count)};
}

inline slab_image random_slab(random_source& random) {
  const auto count = random.below(4), row_floats = random.below(4);
  return {{random.number32()},
          random.number(),
          random.number(),
          count,
          random_keys(random, count),
          row_floats,
          random_floats(random, count * row_floats),
          random.chance() ? random_keys(random, count) : nullptr};
}

inline partition_image random_image(random_source& random) {
  return {{random.number32()},
          random.number(),
          random.several([&] { return random_set(random); }),
          random.several([&] { return random_block(random); }),
          random.several([&] { return random_slab(random); })};
}

constexpr std::size_t replica_message_kinds = std::variant_size_v<decltype(replica_message::what)>;

/// Returns a random message between replicas. `kind`, below replica_message_kinds, chooses the
/// alternative.
inline replica_message random_peer(random_source& random, std::size_t kind) {
  replica_message made{{random.number32()}, random_member(random), {}};
  const config_id config{random.number()};
  switch (kind) {
  case 0: {
    entry_message entry{{config, random.number(), random.number()},
                        {{}, random.several([&] { return table_id{random.number32()}; })}};
    for (auto pushes = 1 + random.below(3); pushes > 0; --pushes)
      entry.entry.pushes.push_back(std::make_shared<const push_request>(random_push(random)));
    made.what = std::move(entry);
    break;
  }
  case 1: made.what = committed_message{config, random.number()}; break;
  case 2: made.what = joined_message{config, random.number()}; break;
  case 3:
    made.what =
      copy_request{config, random.number32(), random.several([&] {
                     return held_version{
                       {random.number32()}, {random.number32()}, random.number(), random.number()};
                   })};
    break;
  default:
    made.what = copy_part{config, random.number(), random.number32(), random.number32(),
                          random_image(random)};
  }
  return made;
}

inline bool same(const block_image& a, const block_image& b) {
  return a.table == b.table && a.block == b.block && a.version == b.version && a.steps == b.steps
         && a.count == b.count && a.state_count == b.state_count
         && same_numbers(a.values, b.values, a.count)
         && same_numbers(a.state, b.state, a.state_count);
}

inline bool same(const slab_image& a, const slab_image& b) {
  return a.table == b.table && a.slab == b.slab && a.version == b.version && a.count == b.count
         && a.row_floats == b.row_floats && same_numbers(a.keys, b.keys, a.count)
         && same_numbers(a.rows, b.rows, a.count * a.row_floats)
         && (a.steps == nullptr) == (b.steps == nullptr)
         && (!a.steps || same_numbers(a.steps, b.steps, a.count));
}

inline bool same(const partition_image& a, const partition_image& b) {
  auto equal = [](const auto& x, const auto& y) { return same(x, y); };
  return a.partition == b.partition && a.version == b.version && a.applied == b.applied
         && std::ranges::equal(a.blocks, b.blocks, equal)
         && std::ranges::equal(a.slabs, b.slabs, equal);
}

inline bool same(const append_message& a, const append_message& b) {
  return a.config == b.config && a.index == b.index && a.committed == b.committed;
}

inline bool same(const entry_message& a, const entry_message& b) {
  return same(a.place, b.place) && a.entry.tables == b.entry.tables
         && std::ranges::equal(a.entry.pushes, b.entry.pushes,
                               [](const auto& x, const auto& y) { return same(*x, *y); });
}

inline bool same(const committed_message& a, const committed_message& b) {
  return a.config == b.config && a.index == b.index;
}

inline bool same(const joined_message& a, const joined_message& b) {
  return a.config == b.config && a.last == b.last;
}

inline bool same(const copy_request& a, const copy_request& b) {
  return a.config == b.config && a.part == b.part && a.held == b.held;
}

inline bool same(const copy_part& a, const copy_part& b) {
  return a.config == b.config && a.index == b.index && a.part == b.part && a.parts == b.parts
         && same(a.image, b.image);
}

inline bool same(const replica_message& a, const replica_message& b) {
  return a.shard == b.shard && a.from == b.from && a.what.index() == b.what.index()
         && std::visit([&]<class T>(const T& x) { return same(x, std::get<T>(b.what)); }, a.what);
}

} // namespace troupe::test
