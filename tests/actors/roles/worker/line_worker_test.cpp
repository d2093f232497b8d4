// Runs a line of two parts as actors: a worker with the first part, and a member with the second.
#include "actors/graph/launch/local_lanes.hpp"
#include "actors/roles/actor/own_actor_member.hpp"
#include "actors/roles/worker/line_gradient_actor.hpp"
#include "actors/roles/worker/worker_actor.hpp"
#include "actors/training/line_actor.hpp"
#include "tests/actors/actor_fixture.hpp"
#include "tests/actors/training/line_fixture.hpp"

#include <limits>
#include <stdexcept>

namespace line_worker_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t micros = 2;

/// Throws for a batch.
struct failing_part final : part {
  void forward(const micro_batch& micro, const_tensors, std::span<const float>,
               part_output&) override {
    throw std::runtime_error{"no data for batch " + std::to_string(micro.of.id.value)};
  }
  double backward(const micro_batch&, const_tensors, std::span<const float>, std::span<const float>,
                  mutable_tensors, std::span<float>) override {
    return 0;
  }
};

/// Is the last part, and computes gradients that are not finite.
struct infinite_part final : part {
  void forward(const micro_batch&, const_tensors, std::span<const float>, part_output&) override {}
  double backward(const micro_batch&, const_tensors, std::span<const float>, std::span<const float>,
                  mutable_tensors gradients, std::span<float> in_gradient) override {
    for (const auto each : gradients)
      std::ranges::fill(each, std::numeric_limits<float>::infinity());
    std::ranges::fill(in_gradient, 0.0f);
    return 0;
  }
};

part_maker layer(std::uint32_t number) {
  return [number] {
    return std::make_unique<linear_part>(line_widths[number], line_widths[number + 1], number == 1);
  };
}

/// Returns the end of the lane that leads down or up.
channel_end end_of(bool leads_down, bool sends, const member_id& peer) {
  channel_end made;
  made.channel = leads_down ? "first>second" : "second>first";
  made.sends = sends;
  made.head = in<part_word>::type();
  made.head_bytes = sizeof(part_word);
  made.peers = {{peer.role, peer.index, {}}};
  return made;
}

struct fixture : actor_fixture {
  explicit fixture(part_maker first = layer(0), part_maker second = layer(1),
                   std::chrono::milliseconds slowness = 0ms)
      : makers{std::move(first), std::move(second)}, takes(slowness), kv(*this),
        coordinator(*this) {
    kv.on_pull([this](const pull_request& x) { return values(x); });
    kv.on_push([](const push_request&) { return push_reply{}; });
    begin_worker();
    begin_actor(21);
    advance(20ms);
  }

  std::optional<fake_kv::pull_answer> values(const pull_request& asked) const {
    pull_reply made{7, {}};
    for (const auto& each : asked.ranges)
      made.pieces.push_back({each, line_values(job)[each.table.value]});
    return made;
  }

  line_part_options options_of(std::uint32_t number, const member_id& self) const {
    line_part_options how{.job = job, .tables = line_tables(number)};
    how.part = number;
    how.parts = 2;
    how.micros = micros;
    how.incarnation = self.incarnation.value;
    return how;
  }

  /// Returns the time of a computation; null: none.
  std::function<std::chrono::nanoseconds()> slowness() const {
    if (takes == 0ms)
      return {};
    return [takes = takes] { return takes; };
  }

  lane_options lanes_of(const member_id& self, std::vector<channel_end> ends) {
    lane_options made;
    made.room = std::make_shared<port_room>(self, std::move(ends));
    made.carry = [this, self](const auto& room, port_surroundings around) {
      auto owner = spawn_channels(system, room, lanes->network_of(self), std::move(around));
      lanes->serve(self, caf::actor_cast<detail::link_owner>(owner));
      return caf::actor_cast<listener_sink>(owner);
    };
    made.address = std::string{own_process_address};
    return made;
  }

  void begin_worker() {
    worker_options how;
    how.self = worker_id_;
    how.job = job;
    how.own_thread = false;
    how.tables = line_tables(0);
    how.ports = lanes_of(how.self, {end_of(true, true, actor_id), end_of(false, false, actor_id)});
    how.gradients = [this, room = how.ports.room](caf::actor_system& in, gradient_thread where) {
      line_gradient_options of_line;
      of_line.ports = room;
      of_line.slowness = slowness();
      of_line.log = [this](log_level, const std::string& text) { said.push_back(text); };
      of_line.make = [this](line_shell& shell, port_room& ports) {
        auto made = std::make_unique<line_part>(options_of(0, worker_id_), makers[0], shell);
        ports.bind(0, made->below()->to_below);
        ports.bind(1, made->below()->from_below);
        return made;
      };
      return spawn_line_gradient_actor(in, std::move(of_line), where);
    };
    worker =
      owned(spawn_worker(system, how, {}, {kv.handle(), kv.handle()}, coordinator.connector()));
  }

  void begin_actor(std::uint64_t incarnation) {
    actor_id.incarnation.value = incarnation;
    own_actor_options how;
    how.self = actor_id;
    how.job = job;
    how.own_thread = false;
    how.slowness = slowness();
    how.ports =
      lanes_of(how.self, {end_of(true, false, worker_id_), end_of(false, true, worker_id_)});
    how.make = [this](port_room& ports) {
      auto made = std::make_unique<line_actor>(options_of(1, actor_id), makers[1]);
      ports.bind(0, made->part().above()->from_above);
      ports.bind(1, made->part().above()->to_above);
      return made;
    };
    actor =
      owned(spawn_own_actor(system, how, {kv.handle(), kv.handle()}, coordinator.connector()));
  }

  std::vector<member_address> listeners() const {
    return {{worker_id_, std::string{own_process_address}},
            {actor_id, std::string{own_process_address}}};
  }

  /// Gives the worker batches, and tells both of each other.
  void order(std::uint32_t batches, std::uint64_t first = 0, std::uint64_t generation = 1) {
    coordinator.order(actor, desired_actor{}, false, listeners());
    desired_worker what;
    what.view = {{++config}, {generation}, {}, {}};
    what.leases = {{first + 1, {first}, batches, 1}};
    what.admitted = true;
    coordinator.order(worker, what, false, listeners());
  }

  /// Returns the last failure that a member of a role reported.
  template <class Status>
  std::optional<failure> failed() const {
    std::optional<failure> last;
    for (const auto& each : coordinator.reports())
      if (const auto* const status = std::get_if<Status>(&each.body); status && status->failed)
        last = status->failed;
    return last;
  }

  job_spec job = line_job(2);
  part_maker makers[2];
  std::chrono::milliseconds takes;
  member_id worker_id_{role::worker, 0, {11}}, actor_id{role::actor, 0, {21}};
  std::shared_ptr<local_lanes> lanes = std::make_shared<local_lanes>(system);
  fake_kv kv;
  fake_coordinator coordinator;
  std::uint64_t config = 0;
  std::vector<std::string> said;
  member_handle worker, actor;
};

/// Checks that a push has the gradients of a part, to the byte.
void check_push(const push_request& push, std::uint32_t number, std::uint64_t batch) {
  CHECK(push.step.batch.value == batch);
  CHECK(push.step.incarnation.value == 11);
  CHECK(push.step.is_partial == (number > 0));
  CHECK(push.tables == line_tables(number));
  const auto expected = whole_gradient(2, {batch}, micros);
  REQUIRE(push.pieces.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& wanted = expected.tables[line_tables(number)[i].value];
    CHECK(push.pieces[i].where == range{line_tables(number)[i], 0, wanted.size()});
    CHECK(std::memcmp(push.pieces[i].values.get(), wanted.data(), wanted.size() * sizeof(float))
          == 0);
  }
}

} // namespace

TEST_CASE("a worker and a member of its line push each batch, the later part first") {
  fixture f;
  f.order(4);
  f.advance(500ms);
  REQUIRE(f.kv.pushes().size() == 8);
  for (std::uint32_t i = 0; i < 8; ++i)
    check_push(f.kv.pushes()[i], i % 2 == 0 ? 1 : 0, i / 2);
  for (const auto& each : f.kv.pulls())
    for (const auto& where : each.ranges)
      CHECK(where.table.value / 2 == each.ranges[0].table.value / 2); // The own tables alone.
  const auto& told = f.coordinator.last<actor_status>();
  CHECK(told.failed == std::nullopt);
  CHECK(told.counters.requests.pushes_sent == 4);
  CHECK(told.counters.requests.pushes_acknowledged == 4);
  CHECK(told.counters.requests.pushes_refused == 0);
  CHECK(told.counters.requests.bytes_sent == 4 * sizeof(float) * (5 * 4 + 4));
  CHECK(told.counters.requests.bytes_received == 4 * sizeof(float) * (5 * 4 + 4));
  CHECK(told.counters.requests.request_times.count() == 8); // Pulls and pushes.
  CHECK_FALSE(f.failed<worker_status>());
}

TEST_CASE("a member counts a sum that is not finite as a refused push") {
  const part_maker infinite = [] { return std::make_unique<infinite_part>(); };
  fixture f{layer(0), infinite};
  f.order(2);
  f.advance(500ms);
  const auto& requests = f.coordinator.last<actor_status>().counters.requests;
  CHECK(requests.pushes_acknowledged == 2);
  CHECK(requests.pushes_refused == 2);
}

TEST_CASE("computations take their time in virtual time") {
  fixture f{layer(0), layer(1), 50ms};
  f.order(1);
  // The second part begins after the first one's first forward, and needs four times 50 ms. Then
  // the first part computes its last backward.
  f.advance(240ms);
  CHECK(f.kv.pushes().empty());
  f.advance(50ms);
  CHECK(f.kv.pushes().size() <= 1);
  f.advance(200ms);
  CHECK(f.kv.pushes().size() == 2);
}

TEST_CASE("the successor of a dead member gives the same bytes") {
  fixture f;
  f.kv.on_push([](const push_request& x) {
    return x.step.is_partial ? std::nullopt : std::optional<fake_kv::push_answer>{push_reply{}};
  });
  f.order(1);
  f.advance(100ms);
  REQUIRE(f.kv.pushes().size() == 1); // It is not answered.
  f.coordinator.order(f.actor, desired_actor{}, true);
  f.advance(20ms);
  f.kv.on_push([](const push_request&) { return push_reply{.duplicate = true}; });
  f.begin_actor(22);
  f.order(1);
  f.advance(2s);
  CHECK(f.said
        == std::vector<std::string>{
          "a later part has lost batch 0: it begins anew when the line is whole"});
  REQUIRE(f.kv.pushes().size() == 3);
  check_push(f.kv.pushes()[0], 1, 0);
  check_push(f.kv.pushes()[1], 1, 0);
  check_push(f.kv.pushes()[2], 0, 0);
}

TEST_CASE("a line ends a batch whose lease is gone, or whose generation has ended") {
  for (const std::uint64_t generation : {1, 2}) {
    CAPTURE(generation);
    fixture f;
    f.kv.on_push([](const push_request& x) -> std::optional<fake_kv::push_answer> {
      if (x.step.batch.value == 0)
        return failure{errc::rolled_back, "another history"};
      return push_reply{};
    });
    f.order(1);
    f.advance(500ms);
    CHECK(f.kv.pushes().size() > 1); // The later part pushes batch 0 again and again.
    f.order(1, 1, generation);
    f.advance(500ms);
    const auto& pushes = f.kv.pushes();
    REQUIRE(pushes.size() > 2);
    check_push(pushes[pushes.size() - 2], 1, 1);
    check_push(pushes.back(), 0, 1);
    CHECK(pushes.back().step.generation.value == generation);
    CHECK(f.said.empty());
    CHECK_FALSE(f.failed<worker_status>());
    CHECK_FALSE(f.failed<actor_status>());
  }
}

TEST_CASE("a member repeats a pull that time cures, and fails for other errors") {
  fixture f;
  int left = 2;
  f.kv.on_pull([&](const pull_request& x) -> std::optional<fake_kv::pull_answer> {
    if (x.ranges[0].table.value >= 2 && left-- > 0)
      return failure{errc::not_ready, "it restores"};
    return f.values(x);
  });
  f.order(1);
  f.advance(150ms);
  CHECK(f.kv.pushes().empty());
  f.advance(500ms);
  CHECK(f.kv.pushes().size() == 2);

  fixture g;
  g.kv.on_pull([&](const pull_request& x) -> std::optional<fake_kv::pull_answer> {
    if (x.ranges[0].table.value >= 2)
      return failure{errc::shape_mismatch, "no such range"};
    return g.values(x);
  });
  g.order(1);
  g.advance(300ms);
  CHECK(g.failed<actor_status>() == failure{errc::shape_mismatch, "part 1: no such range"});
}

TEST_CASE("an exception of a part ends the job, wherever it runs") {
  const part_maker failing = [] { return std::make_unique<failing_part>(); };
  fixture first{failing};
  first.order(1);
  first.advance(300ms);
  CHECK(first.failed<worker_status>() == failure{errc::job_failed, "part 0: no data for batch 0"});
  fixture second{layer(0), failing};
  second.order(1);
  second.advance(300ms);
  CHECK(second.failed<actor_status>() == failure{errc::job_failed, "part 1: no data for batch 0"});
  const part_maker none = []() -> std::unique_ptr<part> { throw std::runtime_error{"no file"}; };
  fixture third{none};
  third.order(1);
  third.advance(300ms);
  CHECK(third.failed<worker_status>() == failure{errc::job_failed, "part 0: no file"});
}

} // namespace line_worker_test
