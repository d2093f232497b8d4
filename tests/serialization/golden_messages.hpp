// Makes one message of each kind with fixed content. Their bytes are in golden/. Change neither;
// add a message when a field is added.
#pragma once

#include "serialization/wire.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::test {

inline std::vector<piece> golden_pieces() {
  const auto values =
    std::make_shared<std::vector<float>>(std::vector{1.0f, -2.5f, 0.0f, 1e-20f, 3e8f});
  return {{{{1}, 4096, 3}, {values, values->data()}}, {{{2}, 0, 2}, {values, values->data() + 3}}};
}

inline row_piece golden_rows() {
  const auto keys = std::make_shared<std::vector<std::uint64_t>>(
    std::vector<std::uint64_t>{7, 0x0123456789abcdef, ~std::uint64_t{0}});
  const auto values =
    std::make_shared<std::vector<float>>(std::vector{1.0f, 2.0f, -3.0f, 4.5f, 5.0f, 6.0f});
  return {{{3}, 2, 3, {keys, keys->data()}}, {values, values->data()}};
}

inline std::vector<packed_piece> golden_packed() {
  const auto bytes = std::make_shared<std::vector<std::uint64_t>>(
    std::vector<std::uint64_t>{0x3c00bc0000007bff, 0x0102030405060708, 0x1122334455667788});
  const auto* first = reinterpret_cast<const std::byte*>(bytes->data());
  return {{{{1}, 4096, 4}, encoding::fp16, 8, {bytes, first}},
          {{{1}, 8192, 16}, encoding::onebit, 16, {bytes, first + 8}}};
}

inline job_spec golden_job() {
  job_spec job;
  job.name = "golden job";
  job.seed = 11;
  job.partitions = 16;
  job.servers = 2;
  job.workers = 3;
  job.samples = 60'000;
  job.batch_samples = 128;
  job.epochs = 4;
  table_spec table{.name = "layer1.weight",
                   .shape = {784, 128},
                   .sync = {},
                   .optimizer = {},
                   .init = {initializer_kind::normal, 0.05f}};
  table.sync = {consistency_mode::ssp, 3};
  table.optimizer = {.kind = optimizer_kind::adam,
                     .learning_rate = 0.001f,
                     .momentum = 0.9f,
                     .beta2 = 0.99f,
                     .epsilon = 1e-7f,
                     .weight_decay = 0.01f,
                     .clip_value = 5.0f,
                     .clip_norm = 2.0f,
                     .full_rate_staleness = 1};
  job.tables = {table,
                {.name = "layer1.bias", .shape = {128}, .sync = {}, .optimizer = {}, .init = {}}};
  return job;
}

/// Adds the fields of replication, which golden_job() lacks.
inline job_spec golden_replicated_job() {
  auto job = golden_job();
  job.servers = 3;
  job.replicas = 2;
  job.shards = 4;
  return job;
}

/// Adds fields that the schema got after those of replication.
inline job_spec golden_durable_job() {
  auto job = golden_job();
  job.tables.at(0).sync = {consistency_mode::bsp, 0};
  job.backup_workers = 2;
  job.durability = durability_mode::log;
  return job;
}

/// Adds fields that the schema got after those of durability.
inline job_spec golden_ftrl_job() {
  auto job = golden_job();
  auto& optimizer = job.tables.at(0).optimizer;
  optimizer.kind = optimizer_kind::ftrl;
  optimizer.full_rate_staleness = 0;
  optimizer.l1 = 0.5f;
  optimizer.beta = 2.0f;
  return job;
}

/// Adds fields that the schema got after those of ftrl.
inline job_spec golden_function_job() {
  auto job = golden_job();
  auto& optimizer = job.tables.at(0).optimizer;
  optimizer = {.kind = optimizer_kind::user, .function = "fedbuff/1", .parameters = {8, 0.5f}};
  optimizer.function_state = 1;
  return job;
}

/// Adds a field that the schema got after those of functions.
inline job_spec golden_stale_job() {
  auto job = golden_job();
  job.tables.at(0).optimizer.full_rate_staleness = 4.5f;
  return job;
}

inline job_spec golden_frozen_job() {
  auto job = golden_job();
  job.tables.push_back({.name = "teacher", .shape = {300, 10}});
  job.tables.back().frozen = true;
  job.tables.back().values_checksum = 0x89abcdef;
  return job;
}

/// Adds fields that the schema got after those of frozen tables.
inline job_spec golden_own_job() {
  auto job = golden_job();
  job.tables.push_back({.name = "users",
                        .shape = {},
                        .init = {initializer_kind::normal, 0.1f, 1},
                        .kind = table_kind::sparse,
                        .width = 21});
  job.files_checksum = 0x0123456789abcdef;
  job.own_options = {{"--sigma", "0.01"}, {"--keep", "false"}};
  return job;
}

/// Adds a field that the schema got after those of own options.
inline job_spec golden_actors_job() {
  auto job = golden_job();
  job.actors = 9;
  return job;
}

inline histogram golden_histogram() {
  histogram made;
  for (std::uint64_t x : {0, 1, 1, 5, 1000})
    made.add(x);
  return made;
}

inline worker_counters golden_worker_counters() {
  return {1, 2, 3, 5, 14, 13, 6, 7, 8, 4, 11, 12, 9.5, 10, {}, 15, 16, 17};
}

inline actor_counters golden_actor_counters() {
  return {{{"players.seen", 1, 2, 3, 4}, {"players.weights", 5, 6, 7, 8}}, {{"players", 9, true}}};
}

inline server_counters golden_server_counters() {
  return {1, 2, 3, 4, 5, 6, 7, golden_histogram(), {}};
}

inline view golden_view() {
  return {{3},
          {2},
          {{{0}, {role::server, 0, {77}}, true}, {{1}, {role::server, 1, {78}}, false}},
          {{0}, {1}, {0}, {1}}};
}

inline chain_metadata golden_record() {
  const member_id head{role::server, 0, {77}}, tail{role::server, 1, {78}};
  return {{{8}, {2}, {head, tail}, member_id{role::server, 2, {79}}},
          7,
          chain_config{{9}, {2}, {tail}, {}}};
}

inline partition_image golden_image() {
  const auto keys = std::make_shared<std::vector<std::uint64_t>>(
    std::vector<std::uint64_t>{7, 0x0123456789abcdef, 3, 4});
  const auto floats = std::make_shared<std::vector<float>>(
    std::vector{1.0f, -2.5f, 3.0f, 0.5f, 1e-20f, 3e8f, 7.0f, -8.0f, 9.0f});
  auto from = [&](std::size_t first) { return float_ptr{floats, floats->data() + first}; };
  batch_set applied{{70}};
  applied.insert({200});
  return {{5},
          199,
          {applied, batch_set{{71}}},
          {{{1}, 4, 190, 180, 3, from(0), 2, from(3)}},
          {{{2}, 1, 191, 2, {keys, keys->data()}, 2, from(5), {keys, keys->data() + 2}}}};
}

/// Returns messages of lanes, and of members with ports.
inline std::vector<std::pair<std::string, message>> golden_channel_messages() {
  const member_id actor{role::actor, 6, {66}}, worker{role::worker, 0, {5}};
  const auto values = std::make_shared<std::vector<float>>(std::vector{1.0f, -2.5f, 1e-20f});
  const parcel_message parcel{3,
                              4,
                              {std::byte{7}, std::byte{255}, std::byte{0}},
                              {{{values, values->data()}, 2}, {{values, values->data() + 2}, 1}}};
  worker_status of_worker;
  of_worker.counters.channel_wait_us = 18;
  of_worker.counters.ports = golden_actor_counters().ports;
  job_status shown;
  shown.members = {{.member = actor, .state = member_state::active, .worker = {}, .server = {}}};
  shown.members[0].actor = golden_actor_counters();
  const actor_status of_actor{golden_actor_counters(), "node7", failure{errc::job_failed, "no"},
                              true};
  const actor_status of_part{{{}, {}, golden_worker_counters()}, "node7", {}, false};
  return {
    {"lane_open", channel_message{channel_open{"players.seen>learners.came", 3, "step/16", 8}}},
    {"lane_parcel", channel_message{parcel}},
    {"lane_taken", channel_message{parcels_taken{3, 4}}},
    {"report_actor", status_message{actor, 1, 2, 3, of_actor, "10.0.0.2:4002"}},
    {"report_part", status_message{actor, 1, 2, 3, of_part, "10.0.0.2:4002"}},
    {"report_worker_of_ports", status_message{worker, 1, 2, 3, of_worker, "10.0.0.2:4003"}},
    {"orders_actor",
     desired_state{
       actor, 1, 2, false, {}, desired_actor{golden_view(), true}, {{worker, "10.0.0.2:4003"}}}},
    {"orders_observer_of_actors", desired_state{{role::observer, 0, {1}}, 1, 2, false, {}, shown}},
  };
}

inline std::vector<std::pair<std::string, message>> golden_messages_of_stores() {
  const member_id server{role::server, 1, {0x0123456789abcdef}};
  const step_header step{{4}, {55}, {2}, {1234}, 99};
  const std::vector<clock_entry> clocks{{{0}, {5}, 12, true}, {{1}, {6}, 0, false}};
  batch_set applied{{70}};
  applied.insert({200});
  const server_status of_server{
    .clock_ns = 123'456'789,
    .chains = {{.shard = {1},
                .status = {{2}, {8}, {9}, true, true},
                .failed = failure{errc::damaged, "cannot be read"},
                .unreadable = 14,
                .recovered = true,
                .part = {7, {1}, {{"chain-1/000012.sst", 4096, 0xdeadbeef}}, 199},
                .checkpoint_failed = 6,
                .checkpoint_failure = "no space",
                .applied = applied,
                .clocks = clocks,
                .version = 200}},
    .counters = golden_server_counters()};
  const desired_server to_server{.job = golden_replicated_job(),
                                 .generation = {2},
                                 .chains = {{{1}, golden_record()}},
                                 .shard_of = {{0}, {2}},
                                 .heard_ns = 123'456'788,
                                 .workers = clocks,
                                 .checkpoint = 7,
                                 .checkpoint_clock = 12};
  const job_status to_observer{.view = golden_view(),
                               .phase = job_phase::training,
                               .batches_done = 71,
                               .checkpoint = 7,
                               .members = {{server, member_state::active, 1 << 20, 200, 3,
                                            golden_worker_counters(), golden_server_counters()}},
                               .servers = {{0}, {5}},
                               .draining = {{2}},
                               .events = {note_of("worker 0 joined"), note_of("checkpoint 7")},
                               .events_total = 12,
                               .job = golden_replicated_job(),
                               .coordinator = 2,
                               .directory_mark = 0}; // Messages of earlier versions give 0.
  const push_request push{step, {{1}, {2}}, 41, 0.75f, golden_pieces()};
  const auto pushed = std::make_shared<const push_request>(push);
  const auto pushed_rows = std::make_shared<const push_request>(
    push_request{step, {{3}}, 41, 0.75f, golden_pieces(), {golden_rows()}});
  auto sum = push;
  sum.others = {step, {{5}, {56}, {2}, {1235}, 98}};
  const auto pushed_sum = std::make_shared<const push_request>(sum);
  auto partial = push;
  partial.step.is_partial = true;
  pull_request shared{step, false, {{{1}, 4096, 3}}};
  shared.others = sum.others;
  const pull_request pull{step, true, {{{1}, 4096, 3}, {{2}, 0, 2}}};
  auto rows_read = golden_rows();
  rows_read.where.keys = nullptr;
  request_list two_requests{request_message{12, {push, {}}}};
  two_requests.items.push_back({13, {{}, pull}});
  answer_list two_answers{reply_message{12, {push_reply{42, true}, {}}}};
  two_answers.items.push_back(failure_message{13, {errc::not_ready, "soon"}});
  auto named = golden_rows();
  named.where.keys = nullptr;
  pull_request delta{step, false, {{{1}, 4096, 3, 77}, {{2}, 0, 2}}};
  delta.delta = true;
  pull_reply changed{45, golden_pieces(), {}, {{{1}, 0, 4096}}};
  changed.pieces[0].where.stamp = 78;
  const pull_request anywhere{step, false, {{{2}, 0, 2}}, {}, false, {{3}, 44}, true};
  push_request packed_push{step, {{1}}, 41, 0.75f, {}};
  packed_push.packed = golden_packed();
  pull_request packed_pull{step, false, {{{1}, 0, 40}}};
  packed_pull.packed_as = encoding::int8;
  pull_reply packed_reply{46, {}};
  packed_reply.packed = golden_packed();
  packed_reply.packed[1].where.stamp = 79;
  auto replicated = golden_view();
  replicated.chains.front().others = {{role::server, 3, {13}}};
  const replica_status stalled{
    .shard = {1},
    .status = {{3}, {8}, {8}, true, false, true},
    .failed = {},
    .part = {},
    .checkpoint_failure = "",
    .applied = {},
    .clocks = {},
  };
  const std::vector<member_address> listeners{{server, "127.0.0.1:4001"},
                                              {{role::server, 3, {13}}, "10.0.0.3:4001"}};
  replica_status verified;
  verified.checksums = {{400, 0x3f2a77d1}, {500, 1}};
  return {
    {"hello", hello{wire::protocol_version, 0x1122334455667788, 9, server}},
    {"refusal", rejection{{errc::wrong_job, "another job: 1, not 2"}}},
    {"request_push", request_message{7, {push, {}, {2}}}},
    {"request_pull", request_message{8, {{}, pull}}},
    {"request_both", request_message{9, {push, pull}}},
    {"request_sum", request_message{15, {sum, shared}}},
    {"request_partial", request_message{7, {partial, {}, {2}}}},
    {"reply_pushed", reply_message{7, {push_reply{42, true}, {}}}},
    {"reply_pulled", reply_message{8, {{}, pull_reply{43, golden_pieces()}}}},
    {"reply_both", reply_message{9, {push_reply{42, true}, pull_reply{43, golden_pieces()}}}},
    {"request_rows",
     request_message{11,
                     {push_request{step, {{3}}, 41, 0.75f, golden_pieces(), {golden_rows()}},
                      pull_request{step, false, {}, {golden_rows().where}}}}},
    {"request_slots", request_message{12,
                                      {push_request{step, {{3}}, 41, 0.75f, {}, {named}},
                                       pull_request{step, false, {}, {golden_rows().where}}},
                                      {{key_use::how::named, 5}, {key_use::how::kept, 6}},
                                      {6, 1023}}},
    {"request_delta", request_message{13, {{}, delta}}},
    {"reply_delta", reply_message{13, {{}, changed}}},
    {"request_anywhere", request_message{14, {{}, anywhere}}},
    {"hello_of_codec", hello{wire::protocol_version, 7, 9, server, all_encodings, 0x12}},
    {"report_server_verified",
     status_message{server, 1, 2, 3, server_status{9, {verified}, {}}, "10.0.0.2:4001"}},
    {"hello_of_functions",
     hello{wire::protocol_version, 7, 9, server, 0, 0, {{"fedbuff/1", 0x9b11c2e0}, {"f", 1}}}},
    {"request_packed", request_message{15, {packed_push, packed_pull}}},
    {"reply_packed", reply_message{15, {push_reply{42, false}, packed_reply}}},
    {"reply_of_generation", reply_message{14, {push_reply{42, false}, {}, {3}}}},
    {"orders_worker_replicated", desired_state{{role::worker, 0, {5}},
                                               1,
                                               2,
                                               false,
                                               {},
                                               desired_worker{replicated, {}, 12, true},
                                               listeners}},
    {"report_server_stuck",
     status_message{server, 1, 2, 3, server_status{9, {stalled}, {}}, "10.0.0.2:4001"}},
    {"reply_rows", reply_message{11, {{}, pull_reply{44, golden_pieces(), {rows_read}}}}},
    {"requests", two_requests},
    {"answers", two_answers},
    {"failure", failure_message{10, {errc::not_yet, "waiting for worker 1 at clock 3"}}},
    {"report_worker", status_message{{role::worker, 0, {5}},
                                     1,
                                     2,
                                     3,
                                     worker_status{{2},
                                                   {{{6, {64}, 16, 1}, {{64}, {66}}}},
                                                   12,
                                                   golden_worker_counters(),
                                                   "node7",
                                                   failure{errc::job_failed, "cannot go on"}}}},
    {"report_server", status_message{server, 1, 2, 3, of_server, "127.0.0.1:4000"}},
    {"report_observer",
     status_message{
       {role::observer, 0, {1}},
       1,
       2,
       3,
       observer_status{
         {{server}}, true, true, failure{errc::job_failed, "gave up"}, {{{5}}, {{2}}}}}},
    {"orders_worker", desired_state{{role::worker, 0, {5}},
                                    1,
                                    2,
                                    true,
                                    failure{errc::job_failed, "the job failed"},
                                    desired_worker{golden_view(), {{6, {64}, 16, 1}}, 12, true}}},
    {"orders_server", desired_state{server, 1, 2, false, {}, to_server, listeners}},
    {"orders_observer", desired_state{{role::observer, 0, {1}}, 1, 2, false, {}, to_observer}},
    {"peer_entry",
     replica_message{
       {1}, server, entry_message{{{8}, 201, 200}, {{pushed, pushed_rows}, {{1}, {3}}}}}},
    {"peer_sum",
     replica_message{{1}, server, entry_message{{{8}, 202, 201}, {{pushed_sum}, {{1}}}}}},
    {"peer_committed", replica_message{{1}, server, committed_message{{8}, 200}}},
    {"peer_joined", replica_message{{1}, server, joined_message{{8}, 199}}},
    {"peer_copy_request",
     replica_message{{1}, server, copy_request{{8}, 2, {{{5}, {1}, 4, 190}, {{6}, {2}, 1, 191}}}}},
    {"peer_copy_part", replica_message{{1}, server, copy_part{{8}, 199, 2, 3, golden_image()}}},
  };
}

inline std::vector<std::pair<std::string, message>> golden_messages() {
  auto all = golden_messages_of_stores();
  std::ranges::move(golden_channel_messages(), std::back_inserter(all));
  return all;
}

} // namespace troupe::test
