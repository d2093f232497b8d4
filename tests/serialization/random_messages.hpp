// Messages of every kind with random content, and their comparison.
#pragma once

#include "serialization/wire.hpp"
#include "tests/serialization/random_source.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace troupe::test {

inline member_id random_member(random_source& random) {
  return {static_cast<role>(random.below(4)), random.number32(), {random.number()}};
}

inline step_header random_step(random_source& random) {
  return {
    {random.number32()}, {random.number()}, {random.number()}, {random.number()}, random.number()};
}

inline range random_range(random_source& random) {
  return {{static_cast<std::uint32_t>(random.below(tables_max))},
          random.below(elements_max / 2),
          random.below(elements_max / 2)};
}

inline piece random_piece(random_source& random) {
  auto where = random_range(random);
  where.count = random.below(9);
  if (where.count == 0)
    return {where, nullptr};
  auto values = std::make_shared<std::vector<float>>(where.count);
  for (auto& x : *values)
    x = random.real();
  return {where, {values, values->data()}};
}

inline row_keys random_rows(random_source& random) {
  row_keys rows{{static_cast<std::uint32_t>(random.below(tables_max))},
                static_cast<std::uint32_t>(1 + random.below(5)),
                random.below(4),
                nullptr};
  if (rows.count == 0)
    return rows;
  auto keys = std::make_shared<std::vector<std::uint64_t>>(rows.count);
  for (auto& key : *keys)
    key = random.number();
  rows.keys = {keys, keys->data()};
  return rows;
}

inline row_piece random_row_piece(random_source& random) {
  row_piece made{random_rows(random), nullptr};
  auto values = std::make_shared<std::vector<float>>(made.where.floats());
  for (auto& x : *values)
    x = random.real();
  if (made.where.count > 0)
    made.values = {values, values->data()};
  return made;
}

/// Has the keys of some lists of the request kept by its receiver, and names others.
inline request_message with_book(random_source& random, request_message what) {
  std::vector<row_keys*> lists;
  if (what.what.push)
    for (auto& x : what.what.push->rows)
      lists.push_back(&x.where);
  if (what.what.pull)
    for (auto& x : what.what.pull->rows)
      lists.push_back(&x);
  for (row_keys* x : lists) {
    const auto way = static_cast<key_use::how>(random.below(3));
    const bool brought = way == key_use::how::brought;
    what.keys.push_back({way, brought ? 0 : random.number32() / 4});
    if (way == key_use::how::named)
      x->keys = nullptr;
  }
  what.forgotten = random.several([&] { return random.number32(); });
  return what;
}

inline batch_set random_set(random_source& random) {
  return {batch_id{random.below(1000)}, random.several([&] { return random.next(); })};
}

inline histogram random_histogram(random_source& random) {
  histogram made;
  for (auto i = random.below(20); i > 0; --i)
    made.add(random.number());
  return made;
}

inline lease random_lease(random_source& random) {
  return {random.number(),
          {random.number() % (batches_max + 1)},
          random.number32() % ((1 << 16) + 1),
          std::max(random.number32(), std::uint32_t{1})};
}

inline clock_entry random_clock(random_source& random) {
  return {{random.number32()}, {random.number()}, random.number(), random.chance()};
}

inline worker_counters random_worker_counters(random_source& random) {
  return {random.number(), random.number(), random.number(), random.number(),
          random.number(), random.number(), random.number(), random.number(),
          random.number(), random.number(), random.real(),   random.number()};
}

inline server_counters random_server_counters(random_source& random) {
  return {random.number(), random.number(),          random.number(),
          random.number(), random.number(),          random.number(),
          random.number(), random_histogram(random), random_histogram(random)};
}

inline table_spec random_table(random_source& random, std::uint32_t index) {
  table_spec table;
  table.name = "t" + std::to_string(index) + (random.chance() ? ".bias" : "_x");
  if (random.below(4) == 0) {
    table.kind = table_kind::sparse;
    table.width = static_cast<std::uint32_t>(1 + random.below(row_width_max));
  } else {
    for (auto rank = 1 + random.below(3); rank > 0; --rank)
      table.shape.push_back(1 + random.below(400));
  }
  table.sync = {static_cast<consistency_mode>(random.below(3)),
                static_cast<std::uint32_t>(random.below(10))};
  table.optimizer.kind = static_cast<optimizer_kind>(random.below(4));
  table.optimizer.learning_rate = 0.5f / static_cast<float>(1 + random.below(100));
  table.optimizer.clip_norm = static_cast<float>(random.below(10));
  table.optimizer.scale_by_staleness = random.chance();
  table.init = {static_cast<initializer_kind>(random.below(3)),
                static_cast<float>(random.below(10)) / 8.0f};
  return table;
}

/// Passes validate().
inline job_spec random_job(random_source& random) {
  job_spec job;
  job.name = "job " + std::to_string(random.below(100));
  job.seed = random.number();
  job.partitions = std::uint32_t{1} << random.below(8);
  job.servers = static_cast<std::uint32_t>(1 + random.below(job.partitions));
  job.workers = static_cast<std::uint32_t>(1 + random.below(20));
  job.samples = 1 + random.below(100'000);
  job.batch_samples = static_cast<std::uint32_t>(1 + random.below(100));
  job.passes = 1 + random.below(10);
  const auto tables = static_cast<std::uint32_t>(1 + random.below(6));
  for (std::uint32_t i = 0; i < tables; ++i)
    job.tables.push_back(random_table(random, i));
  return job;
}

inline view random_view(random_source& random) {
  return {
    {random.number()},
    {random.number()},
    random.several([&] {
      return chain_entry{{random.number32()}, {random.number()}, random.text(), random.chance()};
    }),
    random.several([&] { return chain_id{random.number32()}; })};
}

inline failure random_failure(random_source& random) {
  const errc codes[] = {errc::non_finite, errc::fenced, errc::not_yet, errc::wrong_job,
                        errc::damaged};
  return {codes[random.below(5)], random.text()};
}

inline worker_report random_worker_report(random_source& random) {
  return {{random.number()},
          random.several([&] {
            return lease_progress{random_lease(random),
                                  random.several([&] { return batch_id{random.number()}; })};
          }),
          random.number(),
          random_worker_counters(random),
          random.text()};
}

inline server_report random_server_report(random_source& random) {
  server_report made;
  made.address = random.text();
  made.assignment = random.number();
  made.failed = random.text();
  made.generation = {random.number()};
  made.marks = random_set(random);
  made.clocks = random.several([&] { return random_clock(random); });
  made.unreadable = random.number();
  made.part.checkpoint = random.number();
  made.part.server = {random.number32()};
  made.part.files = random.several([&] {
    return file_entry{random.text(), random.number(), random.number32()};
  });
  made.part.version = random.number();
  made.checkpoint_failed = random.number();
  made.checkpoint_failure = random.text();
  made.version = random.number();
  made.counters = random_server_counters(random);
  return made;
}

inline observer_report random_observer_report(random_source& random) {
  return {random.several([&] { return death{random_member(random)}; }), random.chance(),
          random.chance(), random.text()};
}

inline observer_orders random_observer_orders(random_source& random) {
  return {random_view(random),
          static_cast<job_phase>(random.below(5)),
          random.number(),
          random.number(),
          random.several([&] {
            return member_status{random_member(random),
                                 static_cast<member_state>(random.below(5)),
                                 random.number(),
                                 random.number(),
                                 random.number(),
                                 random_worker_counters(random),
                                 random_server_counters(random)};
          }),
          random.several([&] { return random.text(); }),
          random.number()};
}

inline server_orders random_server_orders(random_source& random) {
  return {random.chance() ? random_job(random) : job_spec{},
          random.number(),
          {random.number()},
          random.several([&] { return partition_id{random.number32()}; }),
          random.number(),
          random.several([&] { return random_clock(random); }),
          random.number(),
          random.number()};
}

constexpr std::size_t message_kinds = 13;

/// `kind` below message_kinds: one for each alternative of message, report and orders.
inline message random_message(random_source& random, std::size_t kind) {
  auto pieces = [&] { return random.several([&] { return random_piece(random); }); };
  auto a_report = [&](auto body) {
    return report{random_member(random), random.number(), random.number(), random.number(),
                  std::move(body)};
  };
  auto some_orders = [&](auto body) {
    return orders{random_member(random), random.number(), random.number(),
                  random.chance(),       random.text(),   std::move(body)};
  };
  auto rows_without_keys = [&] {
    auto rows = random.several([&] { return random_row_piece(random); });
    for (auto& x : rows)
      x.where.keys = nullptr;
    return rows;
  };
  auto push = [&] {
    return update{random_step(random),
                  random.several([&] { return table_id{random.number32()}; }),
                  random.number(),
                  random.real(),
                  pieces(),
                  random.several([&] { return random_row_piece(random); })};
  };
  auto pull = [&] {
    const bool delta = random.chance();
    return query{random_step(random), random.chance(), random.several([&] {
                   auto where = random_range(random);
                   where.count = random.below(1 << 20);
                   where.stamp = delta ? random.number() : 0;
                   return where;
                 }),
                 random.several([&] { return random_rows(random); }), delta};
  };
  auto stamped_pieces = [&] {
    auto made = pieces();
    for (auto& x : made)
      x.where.stamp = random.number();
    return made;
  };
  auto request = [&]() -> request_message {
    switch (random.below(3)) {
    case 0: return {random.number(), {push(), {}}};
    case 1: return {random.number(), {{}, pull()}};
    default: return with_book(random, {random.number(), {push(), pull()}});
    }
  };
  auto answer = [&]() -> answer_message {
    if (random.chance())
      return failure_message{random.number(), random_failure(random)};
    reply_message made{random.number(), {}};
    if (random.chance())
      made.what.pushed = receipt{random.number(), random.chance()};
    if (random.chance())
      made.what.pulled = random.chance()
                           ? values{random.number(), pieces(), rows_without_keys()}
                           : values{random.number(), stamped_pieces(), rows_without_keys(),
                                    random.several([&] { return random_range(random); })};
    return made;
  };
  auto several = [&](auto&& first, auto make) {
    item_list<std::decay_t<decltype(first)>> made{std::move(first)};
    for (auto more = random.below(4); more > 0; --more)
      made.items.push_back(make());
    return made;
  };
  switch (kind) {
  case 0:
    return hello{wire::protocol_version, random.number(), random.number(), random_member(random)};
  case 1: return refusal{random_failure(random)};
  case 2: return request_message{random.number(), {push(), {}}};
  case 3: return request_message{random.number(), {{}, pull()}};
  case 4: return several(request(), request);
  case 5: return reply_message{random.number(), {}};
  case 6: return several(answer(), answer);
  case 7: return a_report(random_worker_report(random));
  case 8: return a_report(random_server_report(random));
  case 9: return a_report(random_observer_report(random));
  case 10:
    return some_orders(worker_orders{random_view(random),
                                     random.several([&] { return random_lease(random); }),
                                     random.number(), random.chance()});
  case 11: return some_orders(random_server_orders(random));
  default: return some_orders(random_observer_orders(random));
  }
}

inline bool same(const std::vector<piece>& a, const std::vector<piece>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const piece& x, const piece& y) {
    return x.where == y.where && x.where.stamp == y.where.stamp
           && (x.where.count == 0
               || std::memcmp(x.values.get(), y.values.get(), x.where.count * sizeof(float)) == 0);
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
      const auto bytes = x.where.floats() * sizeof(float);
      return same(x.where, y.where)
             && (bytes == 0 || std::memcmp(x.values.get(), y.values.get(), bytes) == 0);
    });
}

inline bool same(const update& a, const update& b) {
  return a.step == b.step && a.tables == b.tables && a.base_version == b.base_version
         && a.gradient_norm == b.gradient_norm && same(a.pieces, b.pieces) && same(a.rows, b.rows);
}

inline bool same(const query& a, const query& b) {
  return a.step == b.step && a.latest == b.latest && a.ranges == b.ranges && a.delta == b.delta
         && std::ranges::equal(a.ranges, b.ranges, {}, &range::stamp, &range::stamp)
         && std::equal(a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end(),
                       [](const row_keys& x, const row_keys& y) { return same(x, y); });
}

inline bool same(const receipt& a, const receipt& b) { return a == b; }

inline bool same(const values& a, const values& b) {
  return a.version == b.version && same(a.pieces, b.pieces) && same(a.rows, b.rows)
         && a.unchanged == b.unchanged;
}

template <class T>
bool same(const std::optional<T>& a, const std::optional<T>& b) {
  return a.has_value() == b.has_value() && (!a || same(*a, *b));
}

inline bool same(const request_message& a, const request_message& b) {
  return a.number == b.number && same(a.what.push, b.what.push) && same(a.what.pull, b.what.pull)
         && a.keys == b.keys && a.forgotten == b.forgotten;
}

inline bool same(const answer_message& a, const answer_message& b) {
  if (a.index() != b.index())
    return false;
  if (const auto* why = std::get_if<failure_message>(&a))
    return why->number == std::get<failure_message>(b).number
           && why->what == std::get<failure_message>(b).what;
  const auto &x = std::get<reply_message>(a), &y = std::get<reply_message>(b);
  return x.number == y.number && same(x.what.pushed, y.what.pushed)
         && same(x.what.pulled, y.what.pulled);
}

/// Equal in every field and value.
inline bool same(const message& a, const message& b) {
  if (a.index() != b.index())
    return false;
  return std::visit(
    [&]<class T>(const T& x) {
      const auto& y = std::get<T>(b);
      if constexpr (requires { x.items; })
        return std::ranges::equal(x.items, y.items,
                                  [](const auto& p, const auto& q) { return same(p, q); });
      else
        return x == y;
    },
    a);
}

} // namespace troupe::test
