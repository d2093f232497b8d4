// Makes messages of every kind with random content, and compares them.
#pragma once

#include "serialization/wire.hpp"
#include "tests/serialization/random_chains.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace troupe::test {

/// Returns the request with a key use for each of its row lists. A list that is named has no keys.
inline request_message with_key_uses(random_source& random, request_message what) {
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

inline std::vector<program_note> random_notes(random_source& random) {
  std::vector<program_note> notes(random.below(3));
  for (auto& x : notes)
    x = {"node." + std::to_string(random.below(100)), random.number(), random.chance()};
  return notes;
}

inline std::vector<port_counters> random_ports(random_source& random) {
  return random.several([&] {
    return port_counters{"node." + std::to_string(random.below(100)), random.number(),
                         random.number(), random.number(), random.number()};
  });
}

inline worker_counters random_worker_counters(random_source& random) {
  return {random.number(),      random.number(),     random.number(),          random.number(),
          random.number(),      random.number(),     random.number(),          random.number(),
          random.number(),      random.number(),     random.number(),          random.number(),
          random.real(),        random.number(),     random_histogram(random), random.number(),
          random.number(),      random.number(),     random.number(),          random.number(),
          random_notes(random), random_ports(random)};
}

inline actor_counters random_actor_counters(random_source& random) {
  return {random_ports(random), random_notes(random),
          random.chance() ? random_worker_counters(random) : worker_counters{}};
}

inline server_counters random_server_counters(random_source& random) {
  return {random.number(),          random.number(),     random.number(), random.number(),
          random.number(),          random.number(),     random.number(), random_histogram(random),
          random_histogram(random), random_notes(random)};
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
  table.optimizer.kind = static_cast<optimizer_kind>(random.below(8));
  table.optimizer.learning_rate = 0.5f / static_cast<float>(1 + random.below(100));
  table.optimizer.clip_norm = static_cast<float>(random.below(10));
  if (random.chance() && table.optimizer.kind != optimizer_kind::ftrl)
    table.optimizer.full_rate_staleness = static_cast<float>(random.below(10)) / 2.0f;
  table.optimizer.l1 = static_cast<float>(random.below(10)) / 16.0f;
  table.optimizer.beta = static_cast<float>(1 + random.below(10)) / 4.0f;
  if (table.optimizer.kind == optimizer_kind::user) {
    table.optimizer.function = "mean/" + std::to_string(random.below(10));
    for (auto count = random.below(4); count > 0; --count)
      table.optimizer.parameters.push_back(static_cast<float>(random.below(10)) / 4.0f);
    table.optimizer.function_state = static_cast<std::uint32_t>(random.below(3));
  }
  table.init = {static_cast<initializer_kind>(random.below(3)),
                static_cast<float>(random.below(10)) / 8.0f,
                table.is_sparse() ? static_cast<std::uint32_t>(random.below(table.width + 1)) : 0};
  if (!table.is_sparse()) {
    table.frozen = index > 0 && random.chance(); // A job trains some table.
    table.values_checksum = random.chance() ? random.number32() : 0;
  }
  return table;
}

/// Returns a random job that passes validate().
inline job_spec random_job(random_source& random) {
  job_spec job;
  job.name = "job " + std::to_string(random.below(100));
  job.seed = random.number();
  job.partitions = std::uint32_t{1} << random.below(8);
  job.servers = static_cast<std::uint32_t>(1 + random.below(job.partitions));
  job.replicas = static_cast<std::uint32_t>(1 + random.below(job.servers));
  job.shards = static_cast<std::uint32_t>(random.below(job.partitions + 1));
  job.workers = static_cast<std::uint32_t>(1 + random.below(20));
  job.durability = static_cast<durability_mode>(random.below(2));
  job.samples = 1 + random.below(100'000);
  job.batch_samples = static_cast<std::uint32_t>(1 + random.below(100));
  job.epochs = 1 + random.below(10);
  const auto tables = static_cast<std::uint32_t>(1 + random.below(6));
  for (std::uint32_t i = 0; i < tables; ++i)
    job.tables.push_back(random_table(random, i));
  if (goes_by_clocks(job))
    job.backup_workers = static_cast<std::uint32_t>(random.below(3));
  job.files_checksum = random.chance() ? random.number() : 0;
  for (auto count = random.below(3); count > 0; --count)
    job.own_options.push_back(
      {"--option-" + std::to_string(count), std::to_string(random.below(10))});
  job.actors = static_cast<std::uint32_t>(random.below(10));
  return job;
}

inline view random_view(random_source& random) {
  return {{random.number()},
          {random.number()},
          random.several([&] {
            return chain_entry{{random.number32()},
                               random_member(random),
                               random.chance(),
                               random.several([&] { return random_member(random); })};
          }),
          random.several([&] { return shard_id{random.number32()}; })};
}

inline failure random_failure(random_source& random) {
  const errc codes[] = {errc::non_finite, errc::fenced, errc::not_yet, errc::wrong_job,
                        errc::damaged};
  return {codes[random.below(5)], random.text()};
}

/// Returns a failure, a failure with an empty text, or none.
inline std::optional<failure> random_reason(random_source& random) {
  switch (random.below(3)) {
  case 0: return std::nullopt;
  case 1: return failure{errc::job_failed, ""};
  default: return random_failure(random);
  }
}

inline worker_status random_worker_report(random_source& random) {
  return {{random.number()},
          random.several([&] {
            return lease_progress{random_lease(random),
                                  random.several([&] { return batch_id{random.number()}; })};
          }),
          random.number(),
          random_worker_counters(random),
          random.text(),
          random_reason(random)};
}

inline replica_status random_replica_status(random_source& random) {
  replica_status made;
  made.shard = {random.number32()};
  made.status = random_status(random);
  made.failed = random_reason(random);
  made.unreadable = random.number();
  made.recovered = random.chance();
  made.part.checkpoint = random.number();
  made.part.shard = {random.number32()};
  made.part.files = random.several([&] {
    return file_entry{random.text(), random.number(), random.number32()};
  });
  made.part.version = random.number();
  made.checkpoint_failed = random.number();
  made.checkpoint_failure = random.text();
  made.applied = random_set(random);
  made.clocks = random.several([&] { return random_clock(random); });
  made.version = random.number();
  made.checksums = random.several([&] {
    return value_checksum{random.number(), random.number32()};
  });
  return made;
}

inline server_status random_server_status(random_source& random) {
  return {random.number(), random.several([&] { return random_replica_status(random); }),
          random_server_counters(random)};
}

inline std::vector<server_id> random_servers(random_source& random) {
  return random.several([&] { return server_id{random.number32()}; });
}

inline observer_status random_observer_status(random_source& random) {
  return {random.several([&] { return death{random_member(random)}; }),
          random.chance(),
          random.chance(),
          random_reason(random),
          {random_servers(random), random_servers(random)}};
}

inline event_value random_event_value(random_source& random) {
  if (random.chance())
    return random.number();
  return random.chance() ? event_value{0.5 * random.below(100)} : event_value{random.text()};
}

inline job_event random_job_event(random_source& random) {
  return {static_cast<event_kind>(random.below(event_kinds)), random.several([&] {
            return event_field{random.text(), random_event_value(random)};
          })};
}

inline job_status random_job_status(random_source& random) {
  return {random_view(random),
          static_cast<job_phase>(random.below(5)),
          random.number(),
          random.number(),
          random.several([&] {
            return member_status{random_member(random),
                                 static_cast<member_state>(random.below(6)),
                                 random.number(),
                                 random.number(),
                                 random.number(),
                                 random_worker_counters(random),
                                 random_server_counters(random),
                                 random_actor_counters(random)};
          }),
          random_servers(random),
          random_servers(random),
          random.several([&] { return random_job_event(random); }),
          random.number(),
          random.chance() ? random_job(random) : job_spec{},
          random.number32(),
          random.number()};
}

inline desired_server random_desired_server(random_source& random) {
  return {random.chance() ? random_job(random) : job_spec{},
          {random.number()},
          random.several([&] {
            return desired_chain{{random.number32()}, random_record(random)};
          }),
          random.several([&] { return shard_id{random.number32()}; }),
          random.number(),
          random.several([&] { return random_clock(random); }),
          random.number(),
          random.number()};
}

inline actor_status random_actor_status(random_source& random) {
  return {random_actor_counters(random), random.text(), random_reason(random), random.chance()};
}

inline parcel_message random_parcel(random_source& random) {
  parcel_message made{random.number(), random.number(), {}, {}};
  made.head.resize(random.below(100));
  for (auto& x : made.head)
    x = static_cast<std::byte>(random.below(256));
  made.tensors = random.several([&] {
    const auto count = random.below(300);
    return parcel_tensor{random_floats(random, count), count};
  });
  return made;
}

constexpr std::size_t channel_message_kinds = std::variant_size_v<channel_message>;

/// Returns a random message of a lane. `kind` chooses the alternative.
inline channel_message random_channel_message(random_source& random, std::size_t kind) {
  switch (kind) {
  case 0: return channel_open{random.text(), random.number(), random.text(), random.number32()};
  case 1: return random_parcel(random);
  default: return parcels_taken{random.number(), random.number()};
  }
}

constexpr std::size_t message_kinds = 15 + channel_message_kinds + replica_message_kinds;

/// Returns a random message. `kind`, below message_kinds, chooses among the alternatives of
/// message, status, desired state, channel_message and replica_message.
inline message random_message(random_source& random, std::size_t kind) {
  auto a_report = [&](auto body) {
    return status_message{random_member(random), random.number(), random.number(),
                          random.number(),       std::move(body), random.text()};
  };
  auto some_desired_state = [&](auto body) {
    return desired_state{random_member(random),
                         random.number(),
                         random.number(),
                         random.chance(),
                         random_reason(random),
                         std::move(body),
                         random.several([&] {
                           return member_address{random_member(random), random.text()};
                         })};
  };
  auto rows_without_keys = [&] {
    auto rows = random.several([&] { return random_row_piece(random); });
    for (auto& x : rows)
      x.where.keys = nullptr;
    return rows;
  };
  auto stamped_pieces = [&] {
    auto made = random_pieces(random);
    for (auto& x : made)
      x.where.stamp = random.number();
    return made;
  };
  auto push = [&] {
    push_request made = random_push(random);
    made.packed = random_packed(random);
    return made;
  };
  auto request = [&]() -> request_message {
    const shard_id shard{random.number32()};
    switch (random.below(3)) {
    case 0: return {random.number(), {push(), {}, shard}};
    case 1: return {random.number(), {{}, random_pull(random), shard}};
    default: return with_key_uses(random, {random.number(), {push(), random_pull(random), shard}});
    }
  };
  auto answer = [&]() -> answer_message {
    if (random.chance())
      return failure_message{random.number(), random_failure(random)};
    reply_message made{random.number(), {}};
    made.what.generation = {random.number()};
    if (random.chance())
      made.what.pushed = push_reply{random.number(), random.chance()};
    if (random.chance())
      made.what.pulled = random.chance()
                           ? pull_reply{random.number(), random_pieces(random), rows_without_keys()}
                           : pull_reply{random.number(), stamped_pieces(), rows_without_keys(),
                                        random.several([&] { return random_range(random); })};
    if (made.what.pulled)
      made.what.pulled->packed = random_packed(random);
    if (made.what.pulled && random.chance())
      for (auto& x : made.what.pulled->packed)
        x.where.stamp = random.number();
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
    return hello{wire::protocol_version,
                 random.number(),
                 random.number(),
                 random_member(random),
                 random.number32(),
                 random.number32(),
                 random.several([&] {
                   return function_probe{"mean/1", random.number32()};
                 })};
  case 1: return rejection{random_failure(random)};
  case 2: return request_message{random.number(), {random_push(random), {}}};
  case 3: return request_message{random.number(), {{}, random_pull(random)}};
  case 4: return several(request(), request);
  case 5: return reply_message{random.number(), {}};
  case 6: return several(answer(), answer);
  case 7: return a_report(random_worker_report(random));
  case 8: return a_report(random_server_status(random));
  case 9: return a_report(random_observer_status(random));
  case 10:
    return some_desired_state(desired_worker{random_view(random),
                                             random.several([&] { return random_lease(random); }),
                                             random.number(), random.chance()});
  case 11: return some_desired_state(random_desired_server(random));
  case 12: return some_desired_state(random_job_status(random));
  case 13: return a_report(random_actor_status(random));
  case 14: return some_desired_state(desired_actor{random_view(random), random.chance()});
  default:
    return kind < 15 + channel_message_kinds
             ? message{random_channel_message(random, kind - 15)}
             : random_peer(random, kind - 15 - channel_message_kinds);
  }
}

inline bool same(const request_message& a, const request_message& b) {
  return a.number == b.number && same(a.what.push, b.what.push) && same(a.what.pull, b.what.pull)
         && a.what.shard == b.what.shard && a.keys == b.keys && a.forgotten == b.forgotten;
}

inline bool same(const answer_message& a, const answer_message& b) {
  if (a.index() != b.index())
    return false;
  if (const auto* why = std::get_if<failure_message>(&a))
    return why->number == std::get<failure_message>(b).number
           && why->what == std::get<failure_message>(b).what;
  const auto &x = std::get<reply_message>(a), &y = std::get<reply_message>(b);
  return x.number == y.number && same(x.what.pushed, y.what.pushed)
         && same(x.what.pulled, y.what.pulled) && x.what.generation == y.what.generation;
}

inline bool same(const parcel_tensor& a, const parcel_tensor& b) {
  return a.count == b.count && same_numbers(a.values, b.values, a.count);
}

inline bool same(const channel_message& a, const channel_message& b) {
  const auto* x = std::get_if<parcel_message>(&a);
  const auto* y = std::get_if<parcel_message>(&b);
  if (x == nullptr || y == nullptr)
    return a.index() == b.index()
           && (std::holds_alternative<channel_open>(a)
                 ? std::get<channel_open>(a) == std::get<channel_open>(b)
                 : std::get<parcels_taken>(a) == std::get<parcels_taken>(b));
  return x->session == y->session && x->sequence == y->sequence && x->head == y->head
         && std::ranges::equal(x->tensors, y->tensors,
                               [](const auto& p, const auto& q) { return same(p, q); });
}

/// Returns true if both are equal in every field and value.
inline bool same(const message& a, const message& b) {
  if (a.index() != b.index())
    return false;
  return std::visit(
    [&]<class T>(const T& x) {
      const auto& y = std::get<T>(b);
      if constexpr (requires { x.items; })
        return std::ranges::equal(x.items, y.items,
                                  [](const auto& p, const auto& q) { return same(p, q); });
      else if constexpr (std::is_same_v<T, replica_message> || std::is_same_v<T, channel_message>)
        return same(x, y);
      else
        return x == y;
    },
    a);
}

} // namespace troupe::test
