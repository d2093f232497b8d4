#include "actors/roles/peer/collector_actor.hpp"

#include "actors/detached.hpp"
#include "actors/member_port.hpp"
#include "actors/protocol/gossip/collector.hpp"
#include "actors/reply_batch.hpp"
#include "actors/roles/peer/copy_word.hpp"
#include "actors/tables/table_store.hpp"
#include "actors/training/flat_copy.hpp"

#include "fmt/format.h"

#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace troupe {

namespace {

constexpr std::chrono::milliseconds collector_tick{50};

struct collector_shell {
  using handle = server_handle::extend<caf::reacts_to<tick_atom>, caf::reacts_to<deliver_atom>,
                                       caf::reacts_to<failure>>;
  using pointer = handle::stateful_pointer<collector_shell>;
  using promise = caf::typed_response_promise<reply>;

  collector_shell() = default;

  void init(pointer owner, collector_setup how, lane_options carried,
            const coordinator_connector& connect, checkpointer files) {
    self = owner;
    options = std::move(how);
    lanes = std::move(carried);
    storage = std::move(files);
    decider.emplace(options.self, options.graph,
                    collector_options{.batches = options.job.batches()});
    port.open(self, options.self, fingerprint(options.job), connect, options.address);
    begin_ports();
    self->delayed_send(self, collector_tick, tick_atom_v);
    send_report();
  }

  void begin_ports() {
    copies.joined = [this](std::uint32_t peer) {
      decide([&](collector_effects& effects) { decider->joined({peer}, effects); });
    };
    copies.lost = [this](std::uint32_t peer) {
      decide([&](collector_effects& effects) { decider->lost({peer}, effects); });
    };
    copies.take = [this](parcel<copy_word>&& came) { take(std::move(came)); };
    using deliver_sink = caf::typed_actor<caf::reacts_to<deliver_atom>>;
    channels = begin_lanes(self, lanes, caf::actor_cast<deliver_sink>(self), {});
    lanes.room->bind(0, copies);
    lanes.room->bind(1, starts);
    self->send(self, deliver_atom_v); // Events may have come before the ports were bound.
  }

  time_point now() const { return now_of(*self); }

  // -- peers --

  void take(parcel<copy_word>&& came) {
    const worker_id peer{came.from};
    if (came.head.what == copy_word::kind::wants)
      decider->wants(peer);
    else if (came.head.what == copy_word::kind::copy && came.tensors.size() == 3)
      keep(peer, {came.head.incarnation}, came.tensors);
    answer_wants();
  }

  void keep(worker_id peer, incarnation_id incarnation, const std::vector<tensor>& what) {
    const bool fits =
      what[0].size() == flat_values(options.job) && what[1].size() == flat_state(options.job);
    const auto batches = batches_of(what[2].raw());
    if (!fits || !batches)
      return; // Of another program; the handshake compares the jobs.
    // Without credit the peer hears nothing, and sends its next copy later.
    (void)starts.send({{copy_word::kind::taken}}, peer.value);
    if (!decider->copied(peer, incarnation, *batches))
      return;
    kept[peer] = {own(what[0]), own(what[1])};
    is_mean_old = true;
    if (options.works)
      options.works();
    send_report(); // A coordinator that has just started must not give out these batches.
  }

  /// Returns a copy, as the memory of a parcel is the link's.
  parcel_tensor own(const tensor& what) {
    auto memory = pool->floats(what.size());
    std::copy_n(what.values().data(), what.size(), memory.get());
    return {std::move(memory), what.size()};
  }

  void answer_wants() {
    for (const auto peer : decider->to_start(now())) {
      const auto values = present_mean();
      parcel<copy_word> start{{copy_word::kind::start}};
      for (const auto& each : {values.values, values.state})
        start.tensors.emplace_back(each.values, each.count);
      if (starts.send(start, peer.value))
        decider->started(peer);
    }
  }

  flat_copy present_mean() {
    if (!is_mean_old)
      return mean;
    std::vector<const flat_copy*> all;
    for (const auto peer : decider->in_mean())
      all.push_back(&kept.at(peer));
    mean = all.empty() ? loaded_values : mean_of(options.job, all, *pool);
    if (all.size() > 1 && options.log)
      options.log(log_level::info,
                  fmt::format("mean of {} copies with {} batches; their distance is {:.5f} of its "
                              "norm",
                              all.size(), decider->applied().size(), distance_of(all, mean)));
    readable.reset();
    is_mean_old = false;
    return mean;
  }

  // -- requests of evaluators --

  promise ask(const request& what) {
    auto open = self->make_response_promise<reply>();
    responder by = open;
    answers.add(by, answer(what));
    answers.send(self);
    return open;
  }

  void ask(const request_list& what, const answer_sink& to) {
    for (const auto& each : what.items) {
      responder by = numbered_responder{to, each.number};
      answers.add(by, answer(each.what));
      answers.send_if_much(self);
    }
    answers.send(self);
  }

  std::variant<reply, failure> answer(const request& what) {
    if (what.push)
      return failure{errc::contract_broken, "a push came to the collector, which takes no steps"};
    if (!decider->serves(now()))
      return failure{errc::not_ready, "the collector waits for the copies of peers"};
    ++counters.pulls;
    reply made;
    made.generation = decider->generation();
    if (!what.pull)
      return made;
    const auto values = present_mean();
    if (!readable) {
      auto images = images_of(options.job, values, {}, 0);
      auto restored = images ? table_store::restored(options.job, *images, pool, options.functions)
                             : result<std::shared_ptr<table_store>>{images.error()};
      if (!restored)
        return restored.error();
      readable = *std::move(restored);
    }
    if (auto fine = readable->check(*what.pull); !fine)
      return fine.error();
    made.pulled = readable->read(*what.pull, {});
    made.pulled->version = decider->applied().size();
    return made;
  }

  // -- control path --

  void reconcile(const desired_state& what) {
    const auto* mine = port.take<desired_server>(what);
    if (mine == nullptr)
      return;
    if (what.stop)
      return self->quit(reason_to_end(what));
    self->send(channels, what.listeners);
    is_told = true;
    decide([&](collector_effects& effects) { decider->reconcile(*mine, now(), effects); });
  }

  template <class Event>
  void decide(Event event) {
    carry_out(event);
    send_report();
  }

  template <class Event>
  void carry_out(Event event) {
    collector_effects effects;
    event(effects);
    for (auto& each : effects)
      std::visit([this](auto& x) { run(x); }, each);
  }

  void run(const load_values_effect& what) {
    std::vector<partition_id> all;
    std::vector<shard_partition> whole;
    for (std::uint32_t i = 0; i < options.job.partitions; ++i) {
      all.push_back({i});
      whole.push_back({{i}, 0, std::vector<batch_set>(options.job.tables.size())});
    }
    if (what.checkpoint == 0) {
      table_store fresh{options.job, all, pool, options.functions, options.given};
      return loaded(what.load, fresh.pin(whole));
    }
    self
      ->request(storage, storage_timeout, read_atom_v, what.checkpoint, options.job, std::move(all))
      .then([this, load = what.load](
              const std::vector<partition_image>& images) { loaded(load, images); },
            [this, load = what.load](const caf::error& why) {
              (void)decider->loaded(load, from_caf(why), now());
              send_report();
            });
  }

  void loaded(std::uint64_t load, const std::vector<partition_image>& images) {
    auto applied = images.front().applied.front();
    for (const auto& image : images)
      for (const auto& each : image.applied)
        applied.intersect(each);
    if (decider->loaded(load, applied, now())) {
      loaded_values = flat_of(options.job, images, *pool);
      is_mean_old = true;
    }
    send_report();
  }

  void say(const std::string& line) {
    if (options.log)
      options.log(log_level::error, line);
  }

  void run(const graph_cut_effect& what) {
    const bool is_cut = !what.text.empty();
    const auto line = is_cut ? what.text : "the neighbour graph is connected again";
    if (options.log)
      options.log(is_cut ? log_level::warn : log_level::info, line);
    if (options.waits) // Without a topic: the line stays, though the peer is back soon.
      options.waits({is_cut ? log_level::warn : log_level::info, {}, {}, line});
  }

  void run(const write_mean_effect& what) {
    auto images =
      images_of(options.job, present_mean(), decider->applied(), decider->applied().size());
    assert(images);
    storage::cut cut{what.checkpoint, {0}, *std::move(images)};
    self->request(storage, storage_timeout, write_atom_v, std::move(cut))
      .then(
        [this, number = what.checkpoint](const checkpoint_part& part) {
          decider->written(number, part);
          send_report();
        },
        [this, number = what.checkpoint](const caf::error& why) {
          decider->written(number, from_caf(why));
          send_report();
        });
  }

  void tick() {
    carry_out([this](collector_effects& effects) { decider->tick(now(), effects); });
    answer_wants();
    const bool serves = is_told && decider->serves(now());
    if (port.due() || std::exchange(served, serves) != serves)
      send_report();
    self->delayed_send(self, collector_tick, tick_atom_v);
  }

  void send_report() {
    server_status body;
    body.clock_ns = static_cast<std::uint64_t>(options.boot_clock().count());
    if (is_told)
      body.chains.push_back(decider->report(now()));
    body.counters = counters;
    body.counters.applied = decider->applied().size();
    port.send(std::move(body));
  }

  pointer self = nullptr;
  collector_setup options;
  lane_options lanes;
  checkpointer storage;
  member_port port;
  std::optional<collector> decider;
  in<copy_word> copies{"copies"};
  out<copy_word> starts{"starts"};
  listener_sink channels;
  reply_batcher answers;
  server_counters counters;
  bool is_told = false; ///< A desired state has come.
  bool served = false;  ///< As last reported.

  std::shared_ptr<buffer_pool> pool = std::make_shared<buffer_pool>();
  std::map<worker_id, flat_copy> kept;
  flat_copy loaded_values;
  flat_copy mean;
  bool is_mean_old = true;
  std::shared_ptr<table_store> readable; ///< The mean, for pulls; null: it is to be made.

  static inline const char* name = "collector";
};

static_assert(!std::is_constructible_v<collector_shell, caf::event_based_actor*>);

collector_shell::handle::behavior_type run_collector(collector_shell::pointer self,
                                                     collector_setup setup, lane_options lanes,
                                                     const coordinator_connector& connect,
                                                     checkpointer storage) {
  auto& state = self->state;
  state.init(self, std::move(setup), std::move(lanes), connect, std::move(storage));
  return {
    [&state](const request& what) { return state.ask(what); },
    [&state](const request_list& what, const answer_sink& to) { state.ask(what, to); },
    [](const replica_message&) {}, // It has no other replicas.
    [&state](const desired_state& what) { state.reconcile(what); },
    [&state](tick_atom) { state.tick(); },
    [&state](deliver_atom) { state.lanes.room->deliver(); },
    [&state](const failure& why) { state.say(why.text); }, // The peer fails, and with it the job.
  };
}

} // namespace

std::vector<channel_end> ends_of_collector(const job_spec& job) {
  std::vector<member_id> peers;
  for (std::uint32_t i = 0; i < job.workers; ++i)
    peers.push_back({role::worker, i, {}});
  const auto head = head_type_of<copy_word>();
  return {{"copies", "copies", false, head, peers, copies_window},
          {"starts", "starts", true, head, peers, copies_window}};
}

server_handle spawn_collector(caf::actor_system& system, collector_setup setup, lane_options lanes,
                              coordinator_connector connect, checkpointer storage) {
  if (setup.own_thread)
    return spawn_detached(system, run_collector, std::move(setup), std::move(lanes),
                          std::move(connect), std::move(storage));
  return system.spawn(run_collector, std::move(setup), std::move(lanes), std::move(connect),
                      std::move(storage));
}

} // namespace troupe
