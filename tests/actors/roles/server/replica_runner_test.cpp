// Tests servers that replicate one chain, in one actor system. The test gives their desired states,
// and sees and loses the messages between them.
#include "actors/roles/server/server_actor.hpp"
#include "storage/push_history.hpp"
#include "tests/actors/actor_fixture.hpp"
#include "tests/actors/shard_fixture.hpp"
#include "tests/storage/temporary_directory.hpp"

#include "caf/typed_event_based_actor.hpp"
#include "doctest/doctest.h"

#include <filesystem>
#include <map>
#include <string>

namespace replica_runner_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// The dense table has several blocks of the least size.
constexpr std::uint64_t block_size = 4096;
constexpr std::uint64_t elements = 5 * block_size;

struct options {
  consistency sync = asp();
  bool is_sparse = false;
  std::size_t apply_batch = 1;
  durability_mode durability = durability_mode::memory;
  std::filesystem::path record = {};
};

struct fixture : actor_fixture {
  explicit fixture(options how = {})
      : apply_batch(how.apply_batch), record_directory(how.record), job(job_of({how.sync})) {
    job.servers = job.replicas = 3;
    job.durability = how.durability;
    auto& table = job.tables[0];
    table.optimizer.learning_rate = 1;
    table.shape = {elements};
    REQUIRE(block_elements(table) == block_size);
    if (how.is_sparse) {
      table.shape.clear();
      table.kind = table_kind::sparse;
      table.width = 2;
    }
    for (std::uint32_t i = 0; i < 3; ++i)
      start(i, 1);
  }

  void start(std::uint32_t index, std::uint64_t incarnation) {
    server_options what;
    what.self = {role::server, index, {incarnation}};
    what.job = fingerprint(job);
    what.own_thread = false;
    what.apply_batch = apply_batch;
    if (!record_directory.empty())
      what.record = {record_directory, [this](const std::string& why) { complaints += why; }};
    what.boot_clock = clock();
    what.to_peer = [this](const member_address& to) { return relay_to(to.member.index); };
    ids[index] = what.self;
    servers[index] = owned(spawn_server(system, std::move(what), coordinator.connector(), files()));
  }

  checkpointer files() {
    return owned(system.spawn([this](checkpointer::pointer) -> checkpointer::behavior_type {
      return {
        [this](write_atom, const storage::cut& what) -> caf::result<checkpoint_part> {
          cuts.push_back(what);
          return checkpoint_part{what.checkpoint, what.shard, {}, 9};
        },
        [](read_atom, std::uint64_t, const job_spec&,
           const std::vector<partition_id>&) -> caf::result<std::vector<partition_image>> {
          return to_caf({errc::io_failed, "none"});
        },
        [](read_atom, shard_id, const job_spec&,
           const std::vector<partition_id>&) -> caf::result<std::shared_ptr<storage::local_state>> {
          return std::shared_ptr<storage::local_state>{};
        },
        [](find_atom, const job_spec&,
           const std::vector<std::uint64_t>&) -> caf::result<storage::checkpoint_search_result> {
          return storage::checkpoint_search_result{};
        },
        [](commit_atom, const storage::manifest& what) -> caf::result<std::uint64_t> {
          return what.checkpoint;
        },
        [](scrub_atom) -> caf::result<std::uint64_t> { return 0; },
      };
    }));
  }

  replica_sink relay_to(std::uint32_t index) {
    return owned(
      system.spawn([this, index](replica_sink::pointer self) -> replica_sink::behavior_type {
        return {[this, index, self](const replica_message& what) {
          if (loses && loses(what))
            return;
          if (const auto* part = std::get_if<copy_part>(&what.what)) {
            copied_index = part->index;
            for (const auto& x : part->image.blocks)
              copied_floats += x.count;
            for (const auto& x : part->image.slabs)
              copied_floats += x.count * x.row_floats;
          }
          self->send(servers[index], what);
        }};
      }));
  }

  // -- the coordinator --

  chain_config config(std::vector<std::uint32_t> members, std::optional<std::uint32_t> joiner = {},
                      std::uint64_t history = 1) {
    chain_config made{{++last_config}, {history}, {}, std::nullopt};
    for (const auto index : members)
      made.members.push_back(ids[index]);
    if (joiner)
      made.joiner = ids[*joiner];
    return made;
  }

  void reconcile(chain_metadata what) {
    record = std::move(what);
    give_desired();
  }
  /// Makes a configuration the proposed one, then the active one.
  void become(const chain_config& what) {
    reconcile({record.active, 0, what});
    reconcile({what, 0, std::nullopt});
  }

  void give_desired() {
    for (auto& [index, server] : servers) {
      desired_server what;
      what.job = job;
      what.generation = generation;
      what.chains = {{{0}, record}};
      what.shard_of.assign(job.partitions, shard_id{0});
      std::vector<member_address> listeners;
      for (const auto& [unused, id] : ids)
        listeners.push_back({id, std::string{own_process_address}});
      what.heard_ns = hears ? report_of(index).clock_ns : 0;
      what.workers = {test::member(0), test::member(1)};
      what.checkpoint = checkpoint;
      what.checkpoint_clock = checkpoint_clock;
      coordinator.order(server, what, false, listeners);
    }
  }

  const server_status& report_of(std::uint32_t index) const {
    const auto& all = coordinator.reports();
    const auto found = std::find_if(
      all.rbegin(), all.rend(), [&](const status_message& x) { return x.from == ids.at(index); });
    REQUIRE(found != all.rend());
    return std::get<server_status>(found->body);
  }
  const chain_status& status_of(std::uint32_t index) const {
    return report_of(index).chains.at(0).status;
  }

  /// Lets `time` pass while the lease is renewed.
  void pass(std::chrono::milliseconds time) {
    for (std::chrono::milliseconds passed{0}; passed < time; passed += 100ms) {
      advance(100ms);
      give_desired();
    }
  }

  // -- a worker --

  push_request gradient(std::uint64_t batch, std::uint64_t clock, float value = 1,
                        std::uint64_t block = 0) const {
    push_request what;
    const auto worker = static_cast<std::uint32_t>(batch % 2);
    what.step = {{worker}, first_start(worker), generation, {batch}, clock};
    what.tables = {{0}};
    const auto memory = std::make_shared<std::vector<float>>(4, value);
    const float_ptr values{memory, memory->data()};
    if (job.tables[0].kind == table_kind::sparse)
      what.rows = {{keys(), values}};
    else
      what.pieces = {{{{0}, block * block_size, 4}, values}};
    return what;
  }

  static row_keys keys() {
    static const auto memory =
      std::make_shared<std::vector<std::uint64_t>>(std::initializer_list<std::uint64_t>{3, 7});
    return {{0}, 2, 2, {memory, memory->data()}};
  }

  pull_request first(std::uint64_t block = 0) const {
    pull_request what{{{0}, first_start(0), generation, {0}, 0}, true, {}};
    if (job.tables[0].kind == table_kind::sparse)
      what.rows = {keys()};
    else
      what.ranges = {{{0}, block * block_size, 1}};
    return what;
  }

  static float first_of(const pull_reply& answer) {
    return answer.rows.empty() ? *answer.pieces.at(0).values : *answer.rows.at(0).values;
  }

  float read(std::uint32_t from, std::uint64_t block = 0) {
    const auto answer = pull(servers[from], first(block));
    REQUIRE_MESSAGE(answer->reply, (answer->error ? answer->error->text : "no answer"));
    return first_of(*answer->reply);
  }

  bool duplicate(std::uint32_t at, push_request what) {
    const auto answer = push(servers[at], std::move(what));
    REQUIRE(answer->reply);
    return answer->reply->duplicate;
  }

  errc refusal_of(const std::shared_ptr<outcome<pull_reply>>& what) {
    REQUIRE(what->error);
    return what->error->code;
  }

  std::size_t apply_batch;
  std::filesystem::path record_directory;
  std::string complaints; ///< Lines on traces that ended early.
  job_spec job;
  fake_coordinator coordinator{*this};
  std::map<std::uint32_t, server_handle> servers;
  std::map<std::uint32_t, member_id> ids;
  chain_metadata record;
  std::uint64_t last_config = 0;
  generation_id generation{1};
  bool hears = true;
  std::uint64_t checkpoint = 0, checkpoint_clock = 0;
  std::vector<storage::cut> cuts;
  std::function<bool(const replica_message&)> loses;
  std::uint64_t copied_floats = 0;
  std::uint64_t copied_index = 0; ///< Index of the newest part.
};

template <class Kind>
std::function<bool(const replica_message&)> all_of_kind() {
  return [](const replica_message& x) { return std::holds_alternative<Kind>(x.what); };
}

} // namespace

TEST_CASE("a_push_at_the_head_is_in_the_values_of_all_replicas") {
  for (const std::size_t apply_batch : {1, 16}) {
    fixture f{{.apply_batch = apply_batch}};
    f.become(f.config({0, 1, 2}));
    REQUIRE(f.push(f.servers[0], f.gradient(0, 0))->reply);
    REQUIRE(f.push(f.servers[0], f.gradient(1, 0, 2))->reply);
    CHECK(f.duplicate(0, f.gradient(1, 0, 2)));
    CHECK(f.read(0) == -3);
    f.become(f.config({1, 2, 0}));
    CHECK(f.read(1) == -3);
    f.become(f.config({2, 0, 1}));
    CHECK(f.read(2) == -3);
    CHECK(f.report_of(2).chains.at(0).applied.contains({1}));
    CHECK(f.report_of(2).chains.at(0).version == 2);
  }
}

TEST_CASE("only_the_head_answers") {
  fixture f;
  f.become(f.config({0, 1, 2}));
  for (const std::uint32_t index : {1U, 2U}) {
    CHECK(f.push(f.servers[index], f.gradient(0, 0))->error->code == errc::not_ready);
    CHECK(f.refusal_of(f.pull(f.servers[index], f.first())) == errc::not_ready);
    CHECK(f.report_of(index).chains.at(0).applied.size() == 0);
  }
}

TEST_CASE("a_push_waits_until_every_replica_has_it") {
  fixture f;
  f.become(f.config({0, 1, 2}));
  f.loses = all_of_kind<entry_message>();
  const auto waiting = f.push(f.servers[0], f.gradient(0, 0));
  f.pass(500ms);
  CHECK(waiting->pending());
  CHECK(f.read(0) == 0);
  f.loses = nullptr;
  f.pass(300ms);
  CHECK(waiting->reply);
  CHECK(f.read(0) == -1);
}

TEST_CASE("who_comes_after_a_dead_head_has_all_that_was_acknowledged") {
  fixture f;
  f.become(f.config({0, 1, 2}));
  REQUIRE(f.push(f.servers[0], f.gradient(0, 0))->reply);
  f.loses = all_of_kind<committed_message>(); // The head never hears that the next push is final.
  const auto lost = f.push(f.servers[0], f.gradient(1, 0, 2));
  CHECK(lost->pending());
  caf::anon_send_exit(f.servers[0], caf::exit_reason::kill);
  f.servers.erase(0);
  f.loses = nullptr;
  f.become(f.config({1, 2}));
  f.pass(200ms);
  CHECK(f.duplicate(1, f.gradient(1, 0, 2)));
  CHECK(f.read(1) == -3);
  f.become(f.config({2}));
  CHECK(f.read(2) == -3);
}

TEST_CASE("a_server_that_starts_again_is_sent_a_copy_and_then_the_log") {
  for (const bool is_sparse : {false, true}) {
    fixture f{{.is_sparse = is_sparse}};
    f.become(f.config({0, 1, 2}));
    REQUIRE(f.push(f.servers[0], f.gradient(0, 0))->reply);
    caf::anon_send_exit(f.servers[2], caf::exit_reason::kill);
    f.start(2, 2);
    f.become(f.config({0, 1}));
    CHECK_FALSE(f.status_of(2).complete);
    f.become(f.config({0, 1}, 2));
    CHECK(f.copied_floats == (is_sparse ? 4 : elements));
    CHECK(f.status_of(2).complete);
    REQUIRE(f.push(f.servers[0], f.gradient(1, 0, 2))->reply);
    f.pass(100ms);
    CHECK(f.status_of(1).joiner_synced);
    f.become(f.config({0, 1, 2}));
    f.become(f.config({2}));
    CHECK(f.read(2) == -3);
    CHECK(f.duplicate(2, f.gradient(0, 0)));
  }
}

TEST_CASE("a_server_that_comes_back_soon_is_sent_what_its_past_state_lacks") {
  fixture f;
  f.become(f.config({0, 1, 2}));
  for (std::uint64_t block = 0; block < 3; ++block)
    REQUIRE(f.push(f.servers[0], f.gradient(block, block, 1, block))->reply);
  f.become(f.config({0, 1}));
  CHECK(f.refusal_of(f.pull(f.servers[2], f.first())) == errc::not_ready);
  REQUIRE(f.push(f.servers[0], f.gradient(3, 1, 4, 1))->reply);
  SUBCASE("soon") {
    f.pass(10s);
    f.become(f.config({0, 1}, 2));
    CHECK(f.copied_floats == block_size);
  }
  SUBCASE("late") {
    f.pass(40s);
    f.become(f.config({0, 1}, 2));
    CHECK(f.copied_floats == elements);
  }
  f.pass(100ms);
  REQUIRE(f.status_of(1).joiner_synced);
  f.become(f.config({0, 1, 2}));
  f.become(f.config({2}));
  CHECK(f.read(2, 0) == -1);
  CHECK(f.read(2, 1) == -5);
  CHECK(f.read(2, 2) == -1);
}

TEST_CASE("what_a_server_counted_outlives_what_it_held") {
  fixture f;
  f.become(f.config({0, 1}));
  REQUIRE(f.push(f.servers[0], f.gradient(0, 0))->reply);
  f.become(f.config({1}));
  f.pass(29s);
  CHECK(f.report_of(0).counters.applied == 1);
  f.pass(11s);
  CHECK(f.report_of(0).counters.applied == 1);
  f.become(f.config({1}, 0));
  CHECK(f.copied_floats == elements); // The old state was dropped.
}

TEST_CASE("a_joiner_that_hears_of_its_place_first_need_not_ask_twice") {
  fixture f;
  f.become(f.config({1, 2}));
  REQUIRE(f.push(f.servers[1], f.gradient(0, 0))->reply);
  f.become(f.config({1, 2}, 0)); // Server 0 gets its desired state first.
  CHECK(f.copied_floats == elements);
}

TEST_CASE("the_record_of_a_server_goes_on_when_its_chain_comes_back") {
  const storage::temporary_directory folder;
  fixture f{{.record = folder.path()}};
  f.become(f.config({0}));
  REQUIRE(f.push(f.servers[0], f.gradient(0, 0))->reply);
  f.become(f.config({0}, 1));
  f.pass(100ms);
  f.become(f.config({1}));
  f.pass(40s); // Its state is freed.
  f.become(f.config({1}, 0));
  f.pass(100ms);
  REQUIRE(f.status_of(0).complete);
  f.become(f.config({0}));
  REQUIRE(f.push(f.servers[0], f.gradient(1, 0, 2))->reply);
  f.pass(100ms);
  CHECK(f.complaints.empty());
  const storage::trace_header like{0, {0}, {1}, 0, f.ids[0], {}};
  const auto file = storage::read_trace_file(folder.path() / storage::trace_name(like));
  REQUIRE(file);
  REQUIRE(file->records.size() == 2);
  CHECK(file->records[0].version == 1);
  CHECK(file->records[1].version == 2);
}

TEST_CASE("a_copy_is_kept_where_there_is_a_place_for_it_alone") {
  fixture f{{.durability = durability_mode::log}};
  f.become(f.config({0, 1}));
  f.become(f.config({0, 1}, 2));
  f.pass(100ms);
  CHECK(f.status_of(2).complete);
  CHECK(f.cuts.empty());
}

TEST_CASE("who_is_named_keeps_what_it_holds_however_long") {
  fixture f;
  f.become(f.config({0, 1, 2}));
  REQUIRE(f.push(f.servers[0], f.gradient(0, 0))->reply);
  f.become(f.config({0}));
  f.pass(29s);
  SUBCASE("a head") { f.pass(40s); }
  SUBCASE("one that is to join") {
    f.reconcile({f.record.active, 0, f.config({0}, 2)});
    f.pass(40s);
    f.become(f.config({0}, 2));
    CHECK(f.copied_floats == 0);
  }
  CHECK(f.read(0) == -1);
}

TEST_CASE("parts_of_a_copy_that_are_lost_are_asked_for_again") {
  fixture f;
  f.become(f.config({0, 1}));
  REQUIRE(f.push(f.servers[0], f.gradient(0, 0))->reply);
  f.loses = all_of_kind<copy_part>();
  f.become(f.config({0, 1}, 2));
  f.pass(2s);
  CHECK_FALSE(f.status_of(2).complete);
  REQUIRE(f.push(f.servers[0], f.gradient(1, 0, 2))->reply);
  f.loses = nullptr;
  f.pass(8s);
  CHECK(f.status_of(2).complete);
  CHECK(f.status_of(1).joiner_synced);
  CHECK(f.copied_floats == elements); // No part was sent twice.
  CHECK(f.copied_index == 1);         // The copy is that of the first request.
  f.become(f.config({0, 1, 2}));
  f.become(f.config({2}));
  CHECK(f.read(2) == -3);
}

TEST_CASE("a_copy_that_is_begun_again_brings_the_rest") {
  fixture f;
  f.become(f.config({0, 1}));
  f.loses = [](const replica_message& x) {
    const auto* part = std::get_if<copy_part>(&x.what);
    return part != nullptr && part->part >= 2;
  };
  f.become(f.config({0, 1}, 2));
  CHECK(f.copied_floats > 0);
  CHECK(f.copied_floats < elements);
  f.loses = nullptr;
  f.become(f.config({0}, 2)); // The tail has died; the head sends the rest.
  f.pass(100ms);
  CHECK(f.status_of(2).complete);
  CHECK(f.copied_floats == elements);
}

TEST_CASE("a_sealed_head_refuses") {
  fixture f;
  f.become(f.config({0, 1}));
  const auto pending = [&] {
    f.loses = all_of_kind<entry_message>();
    return f.push(f.servers[0], f.gradient(0, 0));
  }();
  f.reconcile({f.record.active, 0, f.config({0, 1}, 2)});
  CHECK(pending->error->code == errc::not_ready);
  CHECK(f.push(f.servers[0], f.gradient(1, 0))->error->code == errc::not_ready);
  CHECK(f.refusal_of(f.pull(f.servers[0], f.first())) == errc::not_ready);
  CHECK(f.status_of(0).sealed == f.record.proposed->config);
  f.loses = nullptr;
  f.reconcile({*f.record.proposed, 0, std::nullopt});
  f.pass(200ms);
  CHECK(f.duplicate(0, f.gradient(0, 0))); // The push stayed in the log.
  CHECK(f.read(0) == -1);
}

TEST_CASE("values_are_not_read_where_the_coordinator_was_not_heard") {
  fixture f;
  f.become(f.config({0, 1}));
  f.pass(2s);
  CHECK(f.read(0) == 0);
  f.advance(900ms);
  CHECK(f.refusal_of(f.pull(f.servers[0], f.first())) == errc::not_ready);
  f.hears = false; // A desired state that echoes no report does not renew the lease.
  f.give_desired();
  CHECK(f.refusal_of(f.pull(f.servers[0], f.first())) == errc::not_ready);
  f.hears = true;
  f.give_desired();
  CHECK(f.read(0) == 0);
}

TEST_CASE("one_replica_answers_however_long_the_coordinator_is_silent") {
  fixture f;
  f.job.replicas = 1;
  f.become(f.config({0}));
  f.advance(60s, 1s);
  CHECK(f.read(0) == 0);
}

TEST_CASE("another_generation_begins_anew_on_all_replicas") {
  fixture f{{.sync = bsp()}};
  f.become(f.config({0, 1, 2}));
  REQUIRE(f.push(f.servers[0], f.gradient(0, 0))->pending());
  REQUIRE(f.push(f.servers[0], f.gradient(1, 0))->reply);
  CHECK(f.read(0) == -1);
  const auto waiting = f.push(f.servers[0], f.gradient(2, 1));
  f.generation = {2};
  f.become(f.config({1, 2, 0}, {}, 2));
  CHECK(waiting->error->code == errc::rolled_back);
  CHECK(f.read(1) == 0);
  CHECK(f.push(f.servers[0], f.gradient(0, 0))->error->code == errc::not_ready);
  REQUIRE(f.push(f.servers[1], f.gradient(0, 0))->pending());
  REQUIRE(f.push(f.servers[1], f.gradient(1, 0))->reply);
  f.become(f.config({2, 0, 1}, {}, 2));
  CHECK(f.read(2) == -1);
  CHECK(f.status_of(0).generation.value == 2);
}

TEST_CASE("a_joiner_that_leads_has_the_values_before_the_last_bsp_step") {
  for (const bool is_sparse : {false, true}) {
    fixture f{{.sync = bsp(), .is_sparse = is_sparse}};
    f.become(f.config({0, 1}));
    const auto clock = [&](std::uint32_t at, std::uint64_t number) {
      f.push(f.servers[at], f.gradient(2 * number, number));
      REQUIRE(f.push(f.servers[at], f.gradient(2 * number + 1, number))->reply);
    };
    clock(0, 0);
    f.become(f.config({0, 1}, 2));
    f.pass(200ms);
    CHECK_FALSE(f.status_of(1).joiner_synced); // A copy lacks the values before the last step.
    clock(0, 1);
    f.pass(200ms);
    REQUIRE(f.status_of(1).joiner_synced);
    f.become(f.config({0, 1, 2}));
    f.become(f.config({2}));
    CHECK(f.read(2) == -2);
    auto before = f.first();
    before.latest = false;
    before.step = {{0}, first_start(0), f.generation, {2}, 1}; // Clock 1.
    const auto answer = f.pull(f.servers[2], before);
    REQUIRE(answer->reply);
    CHECK(f.first_of(*answer->reply) == -1);
  }
}

TEST_CASE("the_head_cuts_and_a_new_head_is_asked_again") {
  fixture f{{.sync = bsp()}};
  f.become(f.config({0, 1}));
  f.checkpoint = 3;
  f.checkpoint_clock = 1;
  f.give_desired();
  f.become(f.config({1, 0}));
  f.push(f.servers[1], f.gradient(0, 0));
  REQUIRE(f.push(f.servers[1], f.gradient(1, 0))->reply);
  f.give_desired();
  REQUIRE(f.cuts.size() == 1);
  CHECK(f.report_of(1).chains.at(0).part.checkpoint == 3);
  CHECK(f.report_of(0).chains.at(0).part.checkpoint == 0);
  f.become(f.config({1}));
  CHECK(f.cuts.size() == 1);
  f.push(f.servers[1], f.gradient(2, 1));
  REQUIRE(f.push(f.servers[1], f.gradient(3, 1))->reply);
  f.checkpoint = 4; // The clock of checkpoint 4 has passed.
  f.give_desired();
  CHECK(f.report_of(1).chains.at(0).checkpoint_failed == 4);
}

} // namespace replica_runner_test
