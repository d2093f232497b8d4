#include "actors/roles/peer/peer_actor.hpp"

#include "actors/detached.hpp"
#include "actors/protocol/gossip/copy_cadence.hpp"
#include "actors/protocol/gossip/mixer.hpp"
#include "actors/roles/peer/copy_word.hpp"
#include "actors/training/peer_copy.hpp"

#include "caf/send.hpp"
#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"
#include "caf/typed_response_promise.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace troupe {

namespace {

constexpr std::chrono::milliseconds peer_tick{10};
/// Words under way between two neighbours; few are, as each waits for an answer.
constexpr std::uint32_t peers_window = 16;

struct peer_shell : mixer_effects {
  using handle = kv::extend<caf::reacts_to<tick_atom>, caf::reacts_to<deliver_atom>,
                            caf::reacts_to<failure>, caf::reacts_to<std::vector<member_address>>>;
  using pointer = handle::stateful_pointer<peer_shell>;
  using promise = caf::typed_response_promise<reply>;

  peer_shell() = default;

  void init(pointer owner, peer_options how, lane_options carried) {
    self = owner;
    options = std::move(how);
    lanes = std::move(carried);
    sides.resize(options.neighbours.size());
    begin_ports();
    using deliver_sink = caf::typed_actor<caf::reacts_to<deliver_atom>>;
    channels = begin_lanes(self, lanes, caf::actor_cast<deliver_sink>(self), {});
    lanes.room->bind(0, to_peers);
    lanes.room->bind(1, from_peers);
    lanes.room->bind(2, copies);
    lanes.room->bind(3, starts);
    self->send(self, deliver_atom_v); // Events may have come before the ports were bound.
    self->delayed_send(self, peer_tick, tick_atom_v);
  }

  void begin_ports() {
    to_peers.joined = [this](std::uint32_t peer) { note(peer, &side::hears_us, true); };
    to_peers.writable = [this](std::uint32_t peer) { send_waiting(peer); };
    to_peers.lost = [this](std::uint32_t peer) { note(peer, &side::hears_us, false); };
    from_peers.joined = [this](std::uint32_t peer) { note(peer, &side::is_heard, true); };
    from_peers.lost = [this](std::uint32_t peer) { note(peer, &side::is_heard, false); };
    from_peers.take = [this](parcel<peer_word>&& came) { hear(std::move(came)); };
    copies.joined = [this](std::uint32_t) {
      when.joined(now());
      talk_to_collector();
    };
    starts.take = [this](parcel<copy_word>&& came) {
      if (came.head.what == copy_word::kind::taken)
        when.taken(now());
      else
        begin(came);
    };
  }

  time_point now() const { return now_of(*self); }

  // -- the beginning --

  void begin(const parcel<copy_word>& came) {
    if (copy || came.head.what != copy_word::kind::start || came.tensors.size() != 2)
      return;
    // Copied, as the memory of a parcel is the link's.
    const auto own = [this](const tensor& what) {
      auto memory = pool->floats(what.size());
      std::copy_n(what.values().data(), what.size(), memory.get());
      return parcel_tensor{std::move(memory), what.size()};
    };
    auto made = peer_copy::made(options.job, {own(came.tensors[0]), own(came.tensors[1])}, pool,
                                options.functions, options.packed_as);
    if (!made)
      return say(made.error().text);
    copy.emplace(*std::move(made));
    when.begun();
    mixing_with = make_mixer({.kind = options.how,
                              .self = options.self.index,
                              .neighbours = options.neighbours,
                              .incarnation = options.self.incarnation.value,
                              .seed = options.job.seed});
    decide([this](mixer& with) {
      for (std::uint32_t peer = 0; peer < sides.size(); ++peer)
        if (sides[peer].is_met())
          with.joined(peer, now(), *this);
    });
  }

  /// Calls the mixer, which takes one request at a time, and hands it the requests that wait.
  template <class Event>
  void decide(Event event) {
    if (!mixing_with)
      return;
    event(*mixing_with);
    while (!open.empty() && !open.front().is_begun)
      take_open();
    if (rests && !mixing_with->is_mixing()) {
      rests = false;
      when.rests();
    }
  }

  // -- the worker --

  promise ask(request& what) {
    auto made = self->make_response_promise<reply>();
    if (broken) {
      made.deliver(to_caf(*broken));
      return made;
    }
    const auto again = std::ranges::find_if(open, [&](const open_request& x) {
      return what.push && x.what.push && what.push->step.batch == x.what.push->step.batch;
    });
    if (again != open.end()) { // The worker has waited too long, and asks again.
      again->by.deliver(to_caf({errc::timed_out, "a later request came"}));
      again->by = made;
      again->what.pull = std::move(what.pull);
    } else {
      open.push_back({made, std::move(what)});
    }
    decide([](mixer&) {});
    return made;
  }

  /// Fails all requests: another process has other lanes, so it is another program.
  void fail(const failure& why) {
    broken = why;
    for (auto& each : open)
      each.by.deliver(to_caf(why));
    open.clear();
    mixing_with.reset();
  }

  /// Hands the first open request to the mixer.
  void take_open() {
    failed.reset();
    open.front().is_begun = true;
    const auto& what = open.front().what;
    if (!what.push)
      return mixing_with->asked(now(), *this);
    if (applied.contains(what.push->step.batch)) { // The answer to the first one was lost.
      is_duplicate = true;
      return answer();
    }
    mixing_with->pushed(what.push->step.batch.value, what.pull.has_value(), now(), *this);
  }

  void step() override {
    const auto& push = *open.front().what.push;
    if (auto done = copy->step(push); !done) {
      failed = done.error();
      return;
    }
    applied.insert(push.step.batch);
    for (const auto& each : push.others)
      applied.insert(each.batch);
    when.changed();
    rests = !open.front().what.pull;
  }

  void answer() override {
    auto ended = std::move(open.front());
    open.pop_front();
    if (failed) {
      ended.by.deliver(to_caf(*failed));
      return;
    }
    reply made;
    if (ended.what.push)
      made.pushed = push_reply{applied.size(), std::exchange(is_duplicate, false)};
    if (ended.what.pull) {
      auto values = copy->read(*ended.what.pull);
      if (!values) {
        ended.by.deliver(to_caf(values.error()));
        return;
      }
      values->version = applied.size();
      made.pulled = *std::move(values);
    }
    ended.by.deliver(std::move(made));
  }

  // -- neighbours --

  struct side {
    bool hears_us = false, is_heard = false;
    std::deque<parcel<peer_word>> unsent; ///< Of the present session, which silence ends.
    bool is_met() const { return hears_us && is_heard; }
  };

  void note(std::uint32_t peer, bool side::*which, bool is_there) {
    auto& mine = sides[peer];
    mine.*which = is_there;
    if (which == &side::hears_us)
      mine.unsent.clear();
    decide([&](mixer& with) {
      if (!is_there)
        with.lost(peer, now(), *this);
      else if (mine.is_met())
        with.joined(peer, now(), *this);
    });
  }

  void hear(parcel<peer_word>&& came) {
    if (!mixing_with)
      return; // It greets when it has values.
    using kind = peer_word::kind;
    const bool has_values = came.head.what == kind::values || came.head.what == kind::answer;
    const auto raw = came.tensors.empty() ? parcel_tensor{} : came.tensors.front().raw();
    const auto values = has_values ? copy->received(raw) : std::optional{raw};
    if (!values || (came.head.what == kind::change && !copy->fits(raw)))
      return; // Of another program; the handshake compares the jobs.
    in_hand = *values;
    decide([&](mixer& with) {
      if (auto fine = with.heard(came.from, came.head, now(), *this); !fine)
        say(fine.error().text);
    });
    in_hand = {};
  }

  void send(std::uint32_t peer, const peer_word& what) override {
    parcel<peer_word> made{what};
    using kind = peer_word::kind;
    const auto add = [&](const parcel_tensor& values) {
      made.tensors.emplace_back(values.values, values.count);
    };
    if (what.what == kind::values || what.what == kind::answer)
      add(copy->sent());
    else if (what.what == kind::change)
      add(changes.at(peer));
    auto& waiting = sides[peer].unsent;
    if (!waiting.empty() || !to_peers.send(made, peer))
      waiting.push_back(std::move(made)); // The lane has no credit, and tells when it has.
  }

  void send_waiting(std::uint32_t peer) {
    auto& waiting = sides[peer].unsent;
    while (!waiting.empty() && to_peers.send(waiting.front(), peer))
      waiting.pop_front();
  }

  void mix(std::uint64_t clock, double, std::span<const peer_share> others) override {
    std::vector<weighted_values> with;
    for (const auto& each : others)
      with.push_back({static_cast<float>(each.weight), kept.at({each.neighbour, clock})});
    std::erase_if(kept, [&](const auto& x) { return x.first.second == clock; });
    if (with.empty())
      return;
    copy->mix(with);
    when.changed();
  }
  void keep_values(std::uint32_t peer, std::uint64_t clock) override {
    kept[{peer, clock}] = in_hand;
  }
  void forget_values(std::uint32_t peer, std::uint64_t clock) override {
    kept.erase({peer, clock});
  }
  void halve(std::uint32_t peer) override {
    changes[peer] = copy->halve(in_hand);
    when.changed();
  }
  void forget_change(std::uint32_t peer) override { changes.erase(peer); }
  void add_change() override {
    copy->add(in_hand);
    when.changed();
  }
  void say(const std::string& line) override {
    if (options.log)
      options.log(log_level::info, line);
  }

  // -- the collector --

  void talk_to_collector() {
    const copy_word wants{copy_word::kind::wants, 0, options.self.incarnation.value};
    if (when.asks(now()) && copies.send({wants}, 0))
      when.asked(now());
    if (when.sends(now()) && copies.ready(0))
      send_copy();
  }

  void send_copy() {
    const auto since = now();
    const auto whole = copy->whole();
    const auto batches = tensor_of(applied);
    const bool is_sent = copies.send({{copy_word::kind::copy, 0, options.self.incarnation.value},
                                      {{whole.values.values, whole.values.count},
                                       {whole.state.values, whole.state.count},
                                       {batches.values, batches.count}}},
                                     0);
    if (is_sent)
      when.sent(since);
  }

  void tick() {
    decide([this](mixer& with) { with.tick(now(), *this); });
    talk_to_collector();
    self->delayed_send(self, peer_tick, tick_atom_v);
  }

  struct open_request {
    promise by;
    request what;
    bool is_begun = false; ///< The mixer has it.
  };

  pointer self = nullptr;
  peer_options options;
  lane_options lanes;
  listener_sink channels;
  out<peer_word> to_peers{"to_peers"};
  in<peer_word> from_peers{"from_peers"};
  out<copy_word> copies{"copies"};
  in<copy_word> starts{"starts"};
  std::vector<side> sides; ///< By neighbour.

  std::shared_ptr<buffer_pool> pool = std::make_shared<buffer_pool>();
  std::optional<peer_copy> copy; ///< Absent until the collector has sent values.
  std::unique_ptr<mixer> mixing_with;
  batch_set applied;
  /// Requests of the worker. A push that ends its work is followed by a pull before its answer.
  std::deque<open_request> open;
  std::optional<failure> failed; ///< Why the step of the first request was not taken.
  std::optional<failure> broken; ///< Why no request can be answered any more.
  bool is_duplicate = false;     ///< Of the first request: its batch had been applied.

  parcel_tensor in_hand; ///< The values of the present word.
  std::map<std::pair<std::uint32_t, std::uint64_t>, parcel_tensor> kept; ///< Neighbour and clock.
  std::map<std::uint32_t, parcel_tensor> changes;                        ///< By neighbour.
  copy_cadence when;
  bool rests = false; ///< The worker has no batch, and an exchange may be open.

  static inline const char* name = "peer";
};

static_assert(!std::is_constructible_v<peer_shell, caf::event_based_actor*>);

peer_shell::handle::behavior_type run_peer(peer_shell::pointer self, peer_options options,
                                           lane_options lanes) {
  auto& state = self->state;
  state.init(self, std::move(options), std::move(lanes));
  return {
    [&state](request& what) { return state.ask(what); },
    [&state](tick_atom) { state.tick(); },
    [&state](deliver_atom) { state.lanes.room->deliver(); },
    [&state](const failure& why) { state.fail(why); },
    [self, &state](const std::vector<member_address>& all) { self->send(state.channels, all); },
  };
}

} // namespace

std::vector<channel_end> ends_of_peer(const neighbour_graph& graph, std::uint32_t self) {
  std::vector<member_id> peers;
  for (const auto each : graph.neighbours_of[self])
    peers.push_back({role::worker, each, {}});
  const auto end = [](const char* channel, const char* port, bool sends, std::string head,
                      std::vector<member_id> others, std::uint32_t window, std::size_t bytes) {
    return channel_end{channel, port, sends, std::move(head), std::move(others), window, bytes};
  };
  const auto word = head_type_of<peer_word>(), copy = head_type_of<copy_word>();
  const std::vector<member_id> collector{{role::server, 0, {}}};
  return {end("peers", "to_peers", true, word, peers, peers_window, sizeof(peer_word)),
          end("peers", "from_peers", false, word, peers, peers_window, sizeof(peer_word)),
          end("copies", "copies", true, copy, collector, copies_window, sizeof(copy_word)),
          end("starts", "starts", false, copy, collector, copies_window, sizeof(copy_word))};
}

store_client spawn_peer(caf::actor_system& system, peer_options options, lane_options lanes) {
  const auto made = options.own_thread
                      ? spawn_detached(system, run_peer, std::move(options), std::move(lanes))
                      : system.spawn(run_peer, std::move(options), std::move(lanes));
  store_client client{made};
  client.lanes = caf::actor_cast<listener_sink>(made);
  return client;
}

} // namespace troupe
