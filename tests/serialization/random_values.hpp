// Makes pushes, pulls and their parts with random content, and compares them.
#pragma once

#include "serialization/batch_set.hpp"
#include "serialization/job.hpp"
#include "serialization/push_pull.hpp"
#include "tests/serialization/random_source.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

namespace troupe::test {

/// Returns null if `count` is 0.
inline float_ptr random_floats(random_source& random, std::uint64_t count) {
  if (count == 0)
    return nullptr;
  const auto made = std::make_shared<std::vector<float>>(count);
  for (auto& x : *made)
    x = random.real();
  return {made, made->data()};
}

/// Returns null if `count` is 0.
inline key_ptr random_keys(random_source& random, std::uint64_t count) {
  if (count == 0)
    return nullptr;
  const auto made = std::make_shared<std::vector<std::uint64_t>>(count);
  for (auto& x : *made)
    x = random.number();
  return {made, made->data()};
}

inline member_id random_member(random_source& random) {
  return {static_cast<role>(random.below(4)), random.number32(), {random.number()}};
}

inline step_header random_step(random_source& random) {
  return {{random.number32()}, {random.number()}, {random.number()},
          {random.number()},   random.number(),   random.chance()};
}

inline range random_range(random_source& random) {
  return {{static_cast<std::uint32_t>(random.below(tables_max))},
          random.below(elements_max / 2),
          random.below(elements_max / 2)};
}

inline piece random_piece(random_source& random) {
  auto where = random_range(random);
  where.count = random.below(9);
  return {where, random_floats(random, where.count)};
}

inline row_keys random_rows(random_source& random) {
  row_keys rows{{static_cast<std::uint32_t>(random.below(tables_max))},
                static_cast<std::uint32_t>(1 + random.below(5)),
                random.below(4),
                nullptr};
  rows.keys = random_keys(random, rows.count);
  return rows;
}

inline row_piece random_row_piece(random_source& random) {
  const auto where = random_rows(random);
  return {where, random_floats(random, where.floats())};
}

inline batch_set random_set(random_source& random) {
  return {batch_id{random.below(1000)}, random.several([&] { return random.next(); })};
}

inline std::vector<piece> random_pieces(random_source& random) {
  return random.several([&] { return random_piece(random); });
}

/// Returns packed pieces of a request or an answer; their bytes need not be valid.
inline std::vector<packed_piece> random_packed(random_source& random) {
  return random.several([&] {
    auto where = random_range(random);
    where.count = random.below(1 << 20);
    where.stamp = 0;
    const auto words = random.below(4);
    const auto bytes = std::make_shared<std::vector<std::uint64_t>>(words + 1, random.next());
    return packed_piece{where,
                        static_cast<encoding>(1 + random.below(6)),
                        static_cast<std::uint32_t>(8 * words),
                        {bytes, reinterpret_cast<const std::byte*>(bytes->data())}};
  });
}

inline push_request random_push(random_source& random) {
  return {random_step(random),
          random.several([&] { return table_id{random.number32()}; }),
          random.number(),
          random.real(),
          random_pieces(random),
          random.several([&] { return random_row_piece(random); }),
          {},
          random.several([&] { return random_step(random); })};
}

inline pull_request random_pull(random_source& random) {
  const bool delta = random.chance();
  return {random_step(random),
          random.chance(),
          random.several([&] {
            auto where = random_range(random);
            where.count = random.below(1 << 20);
            where.stamp = delta ? random.number() : 0;
            return where;
          }),
          random.several([&] { return random_rows(random); }),
          delta,
          {{random.number()}, random.number()},
          random.chance(),
          static_cast<encoding>(random.below(4)),
          random.several([&] { return random_step(random); })};
}

template <class Number>
bool same_numbers(const std::shared_ptr<const Number>& a, const std::shared_ptr<const Number>& b,
                  std::uint64_t count) {
  return count == 0 || std::memcmp(a.get(), b.get(), count * sizeof(Number)) == 0;
}

inline bool same(const std::vector<piece>& a, const std::vector<piece>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const piece& x, const piece& y) {
    return x.where == y.where && x.where.stamp == y.where.stamp
           && same_numbers(x.values, y.values, x.where.count);
  });
}

inline bool same(const row_keys& a, const row_keys& b) {
  return a.table == b.table && a.width == b.width && a.count == b.count
         && (a.keys == nullptr) == (b.keys == nullptr)
         && (!a.keys || std::ranges::equal(a.span(), b.span()));
}

inline bool same(const std::vector<row_piece>& a, const std::vector<row_piece>& b) {
  return std::equal(
    a.begin(), a.end(), b.begin(), b.end(), [](const row_piece& x, const row_piece& y) {
      return same(x.where, y.where) && same_numbers(x.values, y.values, x.where.floats());
    });
}

inline bool same(const std::vector<packed_piece>& a, const std::vector<packed_piece>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const packed_piece& x, const packed_piece& y) {
                      return x.where == y.where && x.where.stamp == y.where.stamp && x.how == y.how
                             && std::ranges::equal(x.span(), y.span());
                    });
}

inline bool same(const push_request& a, const push_request& b) {
  return a.step == b.step && a.tables == b.tables && a.base_version == b.base_version
         && a.gradient_norm == b.gradient_norm && same(a.pieces, b.pieces) && same(a.rows, b.rows)
         && same(a.packed, b.packed) && a.others == b.others;
}

inline bool same(const pull_request& a, const pull_request& b) {
  return a.step == b.step && a.latest == b.latest && a.ranges == b.ranges && a.delta == b.delta
         && a.seen == b.seen && a.anywhere == b.anywhere && a.others == b.others
         && a.packed_as == b.packed_as
         && std::ranges::equal(a.ranges, b.ranges, {}, &range::stamp, &range::stamp)
         && std::equal(a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end(),
                       [](const row_keys& x, const row_keys& y) { return same(x, y); });
}

inline bool same(const push_reply& a, const push_reply& b) { return a == b; }

inline bool same(const pull_reply& a, const pull_reply& b) {
  return a.version == b.version && same(a.pieces, b.pieces) && same(a.rows, b.rows)
         && a.unchanged == b.unchanged && same(a.packed, b.packed);
}

template <class T>
bool same(const std::optional<T>& a, const std::optional<T>& b) {
  return a.has_value() == b.has_value() && (!a || same(*a, *b));
}

} // namespace troupe::test
