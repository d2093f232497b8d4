#include "actors/graph/launch/simulation.hpp"

#include "caf/duration.hpp"
#include "caf/scheduler/test_coordinator.hpp"
#include "caf/send.hpp"
#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"
#include "caf/typed_response_promise.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace troupe {

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds step_min = 5ms, step_max = 15ms;
constexpr std::chrono::nanoseconds line_min = 100us, line_max = 1ms;
/// Timeout of a request on a line; its sender gives up sooner.
constexpr std::chrono::minutes line_timeout{60};

struct line_state {
  using handle = kv::extend<caf::reacts_to<tick_atom>>;
  using pointer = handle::stateful_pointer<line_state>;
  using promise = caf::typed_response_promise<reply>;

  line_state() = default;

  promise ask(request& what) {
    auto open = self->make_response_promise<reply>();
    travel(last_there, [this, open, what = std::move(what)]() mutable {
      self->request(server, line_timeout, std::move(what))
        .then([this, open](reply& answer) { bring(open, std::move(answer)); },
              [this, open](const caf::error& why) { bring(open, why); });
    });
    return open;
  }

  template <class Outcome>
  void bring(promise to, Outcome what) {
    travel(last_back, [to, what = std::move(what)]() mutable { to.deliver(std::move(what)); });
  }

  /// Sends a message on its way. `last`: when the last message in this direction arrives.
  void travel(time_point& last, std::function<void()> arrive) {
    const auto now = now_of(*self);
    last = std::max(last, now + time());
    on_its_way.emplace(last, std::move(arrive));
    self->delayed_send(self, last - now, tick_atom_v);
  }

  /// Delivers the next message; one tick comes for each message on its way.
  void tick() {
    const auto arrive = on_its_way.extract(on_its_way.begin());
    arrive.mapped()();
  }

  pointer self = nullptr;
  kv server;
  drawn_time time;
  time_point last_there{0}, last_back{0};
  std::multimap<time_point, std::function<void()>> on_its_way;

  static inline const char* name = "line";
};

static_assert(!std::is_constructible_v<line_state, caf::event_based_actor*>);

line_state::handle::behavior_type run_line(line_state::pointer self, kv server, drawn_time time) {
  auto& state = self->state;
  state.self = self;
  state.server = std::move(server);
  state.time = std::move(time);
  return {
    [&state](request& what) { return state.ask(what); },
    [&state](tick_atom) { state.tick(); },
  };
}

} // namespace

simulation::simulation(caf::actor_system& system, std::uint64_t seed)
    : system_(&system),
      scheduler_(&dynamic_cast<caf::scheduler::test_coordinator&>(system.scheduler())),
      seeds_(seed) {}

simulation::~simulation() {
  for (const auto& line : lines_) // A message on its way refers to its line, which would live on.
    caf::anon_send_exit(line, caf::exit_reason::user_shutdown);
  scheduler_->run();
  scheduler_->clock().cancel_all();
}

void simulation::pass(std::chrono::nanoseconds time) {
  const auto& clock = scheduler_->clock();
  const auto end = clock.now() + time;
  scheduler_->run();
  while (clock.now() < end) {
    const auto& due = clock.schedule();
    const auto next = due.empty() ? end : std::clamp(due.begin()->first, clock.now(), end);
    scheduler_->advance_time(next - clock.now());
    scheduler_->run();
  }
}

std::function<time_point()> simulation::clock() const {
  return [system = system_] { return system->clock().now().time_since_epoch(); };
}

drawn_time simulation::between(std::chrono::nanoseconds low, std::chrono::nanoseconds high) {
  return [random = std::mt19937_64{seeds_()},
          dice = std::uniform_int_distribution{low.count(), high.count()}]() mutable {
    return std::chrono::nanoseconds{dice(random)};
  };
}

drawn_time simulation::step_times(std::chrono::nanoseconds longer) {
  return between(step_min + longer, step_max + longer);
}

drawn_time simulation::line_times() { return between(line_min, line_max); }

kv simulation::line_to(const kv& server) {
  return lines_.emplace_back(system_->spawn(run_line, server, line_times()));
}

} // namespace troupe
