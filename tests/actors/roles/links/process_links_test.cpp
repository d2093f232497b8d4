// Tests remote, gateway, uplink and downlink over real sockets: two actor systems in one process.
#include "actors/graph/launch/actor_config.hpp"
#include "actors/roles/links/process_links.hpp"
#include "serialization/wire.hpp"
#include "tests/actors/answering_kv.hpp"

#include "caf/actor_system.hpp"
#include "caf/scoped_actor.hpp"
#include "caf/send.hpp"
#include "caf/typed_event_based_actor.hpp"
#include "caf/typed_response_promise.hpp"
#include "doctest/doctest.h"

#include <condition_variable>
#include <mutex>

namespace process_links_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace {

const member_id server_0{role::server, 0, {10}};
const member_id worker_3{role::worker, 3, {20}};
const member_id chief{role::coordinator, 0, {30}};

hello hello_of(const member_id& who, std::uint64_t job = 7, encoding_set sends = 0) {
  return {.version = wire::protocol_version, .job = job, .secret = 5, .from = who, .sends = sends};
}

/// Records lines from any thread.
class record {
public:
  void note(std::string line) {
    const std::lock_guard lock{mutex_};
    lines_.push_back(std::move(line));
    changed_.notify_all();
  }
  /// Waits until the line was noted `times` times; returns false after 10 s.
  bool wait(const std::string& line, std::size_t times = 1) {
    std::unique_lock lock{mutex_};
    return changed_.wait_for(lock, 10s, [&] { return count_of(line) >= times; });
  }
  std::size_t count(const std::string& line) {
    const std::lock_guard lock{mutex_};
    return count_of(line);
  }

private:
  std::size_t count_of(const std::string& line) const {
    return static_cast<std::size_t>(std::count(lines_.begin(), lines_.end(), line));
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

std::shared_ptr<float> numbers(std::size_t count) {
  auto made = buffer_pool{}.floats(count);
  for (std::size_t i = 0; i < count; ++i)
    made.get()[i] = static_cast<float>(i);
  return made;
}

/// Returns a piece with more values than one message can carry. They must not be read.
piece beyond_a_frame() { return {{{9}, 0, std::size_t{1} << 29}, numbers(1)}; }

/// Returns as many numbers as asked for or, for table 9, 2 GiB that are not there.
pull_reply numbers_for(const pull_request& what) {
  pull_reply answer{1, {}};
  if (!what.ranges.empty() && what.ranges[0].table.value == 9)
    return pull_reply{1, {beyond_a_frame()}};
  for (const auto& where : what.ranges)
    answer.pieces.push_back({where, numbers(where.count)});
  return answer;
}

/// Answers a request; a push reply has the batch as version. Batch 666 is refused, batch 999 never
/// answered.
std::optional<std::variant<reply, failure>> answer_to(const request& what, record& seen) {
  reply answer;
  if (what.pull)
    answer.pulled = numbers_for(*what.pull);
  if (what.push) {
    const auto batch = what.push->step.batch.value;
    seen.note("push " + std::to_string(batch));
    answer.pushed = push_reply{batch, false};
    if (batch == 999)
      return std::nullopt;
    if (batch == 666)
      return failure{errc::non_finite, "not a number"};
  }
  return answer;
}

kv_service spawn_server_of(caf::actor_system& system, record& seen) {
  return test::spawn_answering(
    system, [&seen](const request& what) { return answer_to(what, seen); },
    [&seen](std::size_t count) { seen.note("requests " + std::to_string(count)); });
}

struct process {
  explicit process(const member_id& who, std::uint64_t job = 7, const send_limits& limits = {},
                   encoding_set sends = 0)
      : links(std::make_unique<process_links>(
        system, hello_of(who, job, sends),
        [this](log_level, const std::string& line) {
          log.note(line.find("another job") == std::string::npos ? line : "another job");
        },
        transport_options{}, limits)) {}

  record log;
  actor_config config;
  caf::actor_system system{config};
  std::unique_ptr<process_links> links;
};

struct server_process : process {
  explicit server_process(record& seen, const endpoint& where = {"127.0.0.1", 0})
      : process(server_0) {
    links->serve_values(spawn_server_of(system, seen));
    const auto listening = links->listen(where);
    REQUIRE(listening);
    address = *listening;
  }
  endpoint address;
};

/// Returns the kv that stands for server 0 at that address.
kv_service remote_of(const process& from, const endpoint& where,
                     incarnation_id incarnation = server_0.incarnation) {
  const member_id head{server_0.role, server_0.index, incarnation};
  return from.links->to_servers()({head, to_string(where)});
}

/// Pushes the batch; returns the version of the push reply, or the error.
std::variant<std::uint64_t, failure> push(process& from, const kv& to, std::uint64_t batch,
                                          std::size_t elements = 0) {
  push_request what;
  what.step.batch = {batch};
  what.tables = {{0}};
  if (elements > 0)
    what.pieces = {{{{0}, 0, elements}, numbers(elements)}};
  std::variant<std::uint64_t, failure> found;
  caf::scoped_actor self{from.system};
  self->request(to, 60s, request{what, {}})
    .receive([&](const reply& answer) { found = answer.pushed->version; },
             [&](const caf::error& why) { found = from_caf(why); });
  return found;
}

errc code_of(const std::variant<std::uint64_t, failure>& found) {
  REQUIRE(std::holds_alternative<failure>(found));
  return std::get<failure>(found).code;
}

std::uint64_t version_of(const std::variant<std::uint64_t, failure>& found) {
  if (const auto* why = std::get_if<failure>(&found))
    FAIL(why->text);
  return std::get<std::uint64_t>(found);
}

status_message report_of(std::uint64_t sequence, const member_id& from = worker_3) {
  return {from, 7, sequence, 0, worker_status{}};
}

/// Answers each report with a desired state of the same sequence number.
coordinator_service spawn_chief(caf::actor_system& system, record& seen) {
  return system.spawn([&seen](
                        coordinator_service::pointer self) -> coordinator_service::behavior_type {
    return {
      [self, &seen](const status_message& what, const member_handle& from) {
        seen.note("report " + std::to_string(what.sequence));
        desired_state answer;
        answer.to = what.from;
        answer.sequence = what.sequence;
        self->send(from, answer);
      },
      [&seen](lost_atom, const member_id& who) { seen.note("lost " + std::to_string(who.index)); },
    };
  });
}

struct chief_process : process {
  explicit chief_process(record& seen, const endpoint& where = {"127.0.0.1", 0}) : process(chief) {
    links->serve_coordinator(spawn_chief(system, seen));
    const auto listening = links->listen(where);
    REQUIRE(listening);
    address = *listening;
  }
  endpoint address;
};

struct worker_process : process {
  explicit worker_process(const endpoint& where, std::uint64_t job = 7) : process(worker_3, job) {
    self = system.spawn([this](member_handle::pointer) -> member_handle::behavior_type {
      return {[this](const desired_state& what) {
        seen.note("desired " + std::to_string(what.sequence));
      }};
    });
    up = links->to_coordinator(where, [this](const failure& why) {
      seen.note(std::string{"refused "} + to_string(why.code));
    })(self);
  }
  void send(const status_message& what) { caf::anon_send(up, what, self); }

  record seen;
  member_handle self;
  coordinator_handle up;
};

} // namespace

TEST_CASE("requests_of_a_peer_that_may_pack_go_to_the_expander") {
  record plain, expanded;
  process server{server_0};
  server.links->serve_values(spawn_server_of(server.system, plain), {},
                             spawn_server_of(server.system, expanded));
  const auto where = server.links->listen({"127.0.0.1", 0});
  REQUIRE(where);
  process worker{worker_3}, packing{{role::worker, 4, {21}}, 7, {}, only(encoding::int8)};
  CHECK(version_of(push(worker, remote_of(worker, *where), 1)) == 1);
  CHECK(version_of(push(packing, remote_of(packing, *where), 2)) == 2);
  CHECK(plain.count("push 1") == 1);
  CHECK(plain.count("push 2") == 0);
  CHECK(expanded.count("push 2") == 1);
}

TEST_CASE("pushes_and_pulls_reach_a_kv_in_another_process") {
  record seen;
  server_process server{seen};
  process client{worker_3};
  const auto remote = remote_of(client, server.address);
  CHECK(version_of(push(client, remote, 1)) == 1);
  CHECK(version_of(push(client, remote, 2, 100'000)) == 2);
  CHECK(code_of(push(client, remote, 666)) == errc::non_finite);
  caf::scoped_actor self{client.system};
  self->request(remote, 10s, request{{}, pull_request{{}, false, {{{0}, 0, 50'000}, {{1}, 3, 2}}}})
    .receive(
      [](const reply& answer) {
        REQUIRE(answer.pulled->pieces.size() == 2);
        CHECK(answer.pulled->pieces[0].values.get()[49'999] == 49'999);
        CHECK(answer.pulled->pieces[1].where == range{{1}, 3, 2});
      },
      [](const caf::error& why) { FAIL(from_caf(why).text); });
}

TEST_CASE("requests_of_one_sender_arrive_in_order_also_before_the_link_is_open") {
  record seen;
  server_process server{seen};
  process client{worker_3};
  const auto remote = remote_of(client, server.address);
  caf::scoped_actor self{client.system};
  std::vector<std::uint64_t> answers;
  for (std::uint64_t batch = 1; batch <= 50; ++batch) {
    push_request what;
    what.step.batch = {batch};
    self->send(remote, request{what, {}});
  }
  for (int i = 0; i < 50; ++i)
    self->receive([&](const reply& answer) { answers.push_back(answer.pushed->version); },
                  caf::after(10s) >> [] { FAIL("no answer"); });
  CHECK(std::is_sorted(answers.begin(), answers.end()));
}

TEST_CASE("a_list_of_requests_travels_as_few_messages_and_each_of_it_is_answered_by_its_number") {
  record seen;
  server_process server{seen};
  process client{worker_3};
  const auto to = remote_of(client, server.address);
  REQUIRE(version_of(push(client, to, 1)) == 1);
  record answers;
  const answer_sink sink =
    client.system.spawn([&answers](answer_sink::pointer) -> answer_sink::behavior_type {
      return {[&answers](const answer_list& what) {
        for (const auto& each : what.items)
          if (const auto* came = std::get_if<reply_message>(&each))
            answers.note(std::to_string(came->number) + " is "
                         + std::to_string(came->what.pushed->version));
          else
            answers.note(std::to_string(std::get<failure_message>(each).number) + " failed");
      }};
    });
  const auto send = [&](std::vector<std::uint64_t> batches) {
    request_list list;
    for (const auto batch : batches) {
      push_request what;
      what.step.batch = {batch};
      list.items.push_back({batch + 1000, {what, {}}});
    }
    caf::anon_send(to, std::move(list), sink);
  };
  std::vector<std::uint64_t> forty;
  for (std::uint64_t i = 100; i < 140; ++i)
    forty.push_back(i);
  send(forty);
  for (const auto batch : forty)
    CHECK(answers.wait(std::to_string(batch + 1000) + " is " + std::to_string(batch)));
  CHECK(seen.count("requests 16") == 2);
  CHECK(seen.count("requests 8") == 1);

  send({200, 666, 999, 201});
  CHECK(answers.wait("1200 is 200"));
  CHECK(answers.wait("1666 failed"));
  CHECK(answers.wait("1201 is 201"));
  server.links.reset();
  CHECK(answers.wait("1999 failed"));
}

TEST_CASE("what_is_never_answered_frees_the_window_for_others_when_its_time_is_over") {
  record seen;
  server_process server{seen};
  process client{worker_3, 7, {.window_bytes = 100'000}};
  const auto to = remote_of(client, server.address);
  caf::scoped_actor self{client.system};
  push_request unanswered;
  unanswered.step.batch = {999};
  unanswered.pieces = {{{{0}, 0, 20'000}, numbers(20'000)}};
  const auto begin = std::chrono::steady_clock::now();
  auto open = self->request(to, 20s, request{unanswered, {}});
  REQUIRE(seen.wait("push 999"));
  CHECK(version_of(push(client, to, 1, 20'000)) == 1);
  CHECK(std::chrono::steady_clock::now() - begin >= request_timeout);
  open.receive([](const reply&) { FAIL("an answer"); },
               [](const caf::error& why) { CHECK(from_caf(why).code == errc::timed_out); });
}

TEST_CASE("requests_to_a_kv_that_is_gone_fail_with_their_link") {
  record seen;
  process server{server_0};
  const auto target = spawn_server_of(server.system, seen);
  server.links->serve_values(target);
  const auto where = server.links->listen({"127.0.0.1", 0});
  REQUIRE(where);
  process client{worker_3};
  const auto to = remote_of(client, *where);
  REQUIRE(version_of(push(client, to, 1)) == 1);
  caf::anon_send_exit(target, caf::exit_reason::kill);
  CHECK(code_of(push(client, to, 2)) == errc::peer_lost);
  CHECK(code_of(push(client, to, 3)) == errc::peer_lost);
}

TEST_CASE("a_server_that_is_gone_is_peer_lost_and_works_again_when_it_is_back") {
  record seen;
  auto server = std::make_unique<server_process>(seen);
  const auto address = server->address;
  process client{worker_3};
  const auto remote = remote_of(client, address);
  CHECK(version_of(push(client, remote, 1)) == 1);
  server.reset();
  CHECK(code_of(push(client, remote, 2)) == errc::peer_lost);
  server = std::make_unique<server_process>(seen, address);
  // The first push may still fail with the old link.
  auto found = push(client, remote, 3);
  if (std::holds_alternative<failure>(found))
    found = push(client, remote, 3);
  CHECK(version_of(found) == 3);
}

TEST_CASE("what_is_open_when_the_link_breaks_is_peer_lost") {
  record seen;
  auto server = std::make_unique<server_process>(seen);
  process client{worker_3};
  const auto remote = remote_of(client, server->address);
  caf::scoped_actor self{client.system};
  push_request unanswered;
  unanswered.step.batch = {999};
  auto open = self->request(remote, 10s, request{unanswered, {}});
  REQUIRE(seen.wait("push 999"));
  server.reset();
  open.receive([](const reply&) { FAIL("an answer"); },
               [](const caf::error& why) { CHECK(from_caf(why).code == errc::peer_lost); });
}

TEST_CASE("values_beyond_one_message_are_refused_for_good_and_harm_no_other_request") {
  record seen;
  server_process server{seen};
  process client{worker_3};
  const auto to = remote_of(client, server.address);
  REQUIRE(version_of(push(client, to, 1)) == 1);
  const failure expected{errc::shape_mismatch, "too many values for one message: 2147483648 bytes, "
                                               "at most 1073741824"};
  std::vector<failure> found;
  const auto note = [&](const caf::error& why) { found.push_back(from_caf(why)); };
  caf::scoped_actor self{client.system};
  push_request pushed;
  pushed.pieces = {beyond_a_frame()};
  self->request(to, 10s, request{pushed, {}}).receive([](const reply&) {}, note);
  pull_request pulled;
  pulled.ranges = {{{9}, 0, 1}};
  self->request(to, 10s, request{{}, pulled}).receive([](const reply&) {}, note);
  CHECK(found == std::vector<failure>{expected, expected});
  CHECK(version_of(push(client, to, 2)) == 2);
}

TEST_CASE("another_incarnation_at_the_address_is_peer_lost") {
  record seen;
  server_process server{seen};
  process client{worker_3};
  const auto remote = remote_of(client, server.address, {11});
  CHECK(code_of(push(client, remote, 1)) == errc::peer_lost);
  CHECK(code_of(push(client, remote, 2)) == errc::peer_lost);
  CHECK(seen.count("push 1") == 0);
}

TEST_CASE("requests_after_the_end_of_the_own_links_are_peer_lost") {
  record seen;
  server_process server{seen};
  process client{worker_3};
  const auto remote = remote_of(client, server.address);
  const auto unused = remote_of(client, server.address);
  CHECK(version_of(push(client, remote, 1)) == 1);
  client.links.reset();
  CHECK(code_of(push(client, remote, 2)) == errc::peer_lost);
  CHECK(code_of(push(client, unused, 3)) == errc::peer_lost);
}

TEST_CASE("connectors_lead_to_those_they_name_and_outlive_their_node") {
  record seen;
  server_process server{seen};
  process client{worker_3};
  const auto connect = client.links->to_servers();
  const member_address there{server_0, to_string(server.address)};
  CHECK(version_of(push(client, connect(there), 1)) == 1);
  auto nowhere = there;
  nowhere.address = "no address";
  CHECK(code_of(push(client, connect(nowhere), 2)) == errc::peer_lost);
  const auto report_to =
    client.links->to_coordinator(server.address, [](const failure&) { FAIL("refused"); });
  client.links.reset();
  CHECK(code_of(push(client, connect(there), 3)) == errc::peer_lost);
  caf::anon_send(report_to({}), status_message{}, member_handle{}); // The report is dropped.
}

TEST_CASE("a_process_that_serves_nothing_closes_links") {
  process idle{server_0};
  const auto address = idle.links->listen({"127.0.0.1", 0});
  REQUIRE(address);
  process client{worker_3};
  CHECK(code_of(push(client, remote_of(client, *address), 1)) == errc::peer_lost);
}

TEST_CASE("reports_reach_the_coordinator_and_its_desired_states_come_back") {
  record seen;
  chief_process coordinator{seen};
  worker_process worker{coordinator.address};
  worker.send(report_of(1));
  CHECK(seen.wait("report 1"));
  CHECK(worker.seen.wait("desired 1"));
  worker.links.reset();
  CHECK(seen.wait("lost 3"));
}

TEST_CASE("an_uplink_connects_again_and_sends_the_newest_report") {
  record seen;
  record later;
  auto coordinator = std::make_unique<chief_process>(seen);
  const auto address = coordinator->address;
  worker_process worker{address};
  worker.send(report_of(1));
  REQUIRE(worker.seen.wait("desired 1"));
  coordinator.reset();
  coordinator = std::make_unique<chief_process>(later, address);
  // Members report repeatedly too: reports sent before the old link's end is noticed are lost.
  std::uint64_t newest = 1;
  while (newest < 500 && later.count("report " + std::to_string(newest)) == 0) {
    worker.send(report_of(++newest));
    std::this_thread::sleep_for(20ms);
  }
  CHECK(newest < 500);
  CHECK(worker.seen.wait("desired " + std::to_string(newest)));
}

TEST_CASE("a_report_in_another_s_name_ends_the_link") {
  record seen;
  chief_process coordinator{seen};
  worker_process worker{coordinator.address};
  worker.send(report_of(1, server_0));
  CHECK(seen.wait("lost 3"));
  CHECK(seen.count("report 1") == 0);
}

TEST_CASE("a_refused_uplink_says_so_once_and_stays_away") {
  record seen;
  chief_process coordinator{seen};
  worker_process unknown_member{coordinator.address, 8};
  REQUIRE(unknown_member.seen.wait("refused wrong_job"));
  for (std::uint64_t i = 1; i < 5; ++i)
    unknown_member.send(report_of(i));
  worker_process worker{coordinator.address};
  worker.send(report_of(9));
  REQUIRE(worker.seen.wait("desired 9"));
  CHECK(unknown_member.seen.count("refused wrong_job") == 1);
  CHECK(coordinator.log.count("another job") <= 1);
}

TEST_CASE("an_uplink_to_a_process_that_is_no_coordinator_stays_away") {
  record seen;
  server_process server{seen};
  worker_process worker{server.address};
  CHECK(worker.seen.wait("refused untrusted"));
}

TEST_CASE("an_uplink_whose_open_link_ends_with_an_error_connects_again") {
  record seen;
  std::mutex made; // Held until `links` exists.
  std::unique_lock making{made};
  std::unique_ptr<transport> links;
  link_events events{.opened =
                       [&](link_id link, const hello&, const std::string&) {
                         const std::lock_guard lock{made};
                         seen.note("opened");
                         links->send(link, rejection{{errc::malformed, "that was garbage"}});
                         links->close(link);
                       },
                     .received = [](link_id, const message&) {},
                     .lost = [](link_id, const failure&) {},
                     .rejected = [](const std::string&, const failure&) {},
                     .settle = [] {}};
  links = std::make_unique<transport>(hello_of(chief), events);
  const auto where = links->listen({"127.0.0.1", 0});
  making.unlock();
  REQUIRE(where);
  worker_process worker{*where};
  CHECK(seen.wait("opened", 2));
  CHECK(worker.seen.count("refused malformed") == 0);
}

} // namespace process_links_test
