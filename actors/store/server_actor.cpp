#include "actors/store/server_actor.hpp"

#include "actors/clock.hpp"
#include "actors/process_memory.hpp"
#include "actors/store/block_store.hpp"

#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"
#include "caf/typed_response_promise.hpp"

#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

namespace troupe {

namespace {

std::uint64_t payload_bytes(const std::vector<piece>& pieces) {
  std::uint64_t count = 0;
  for (const auto& x : pieces)
    count += x.where.count;
  return count * sizeof(float);
}

std::vector<table_id> tables_of(const std::vector<range>& ranges) {
  std::vector<table_id> tables;
  for (const auto& x : ranges)
    if (std::find(tables.begin(), tables.end(), x.table) == tables.end())
      tables.push_back(x.table);
  return tables;
}

struct server_shell {
  using handle = server_handle::extend<caf::reacts_to<tick_atom>>;
  using pointer = handle::stateful_pointer<server_shell>;

  server_shell() = default;

  void init(pointer owner, server_options how, const coordinator_connector& connect,
            checkpointer files) {
    self = owner;
    options = std::move(how);
    coordinator = connect(caf::actor_cast<member>(self));
    storage = std::move(files);
    pool = std::make_shared<buffer_pool>();
    self->delayed_send(self, tick_interval, tick_atom_v);
    send_report();
  }

  // -- data path --

  caf::typed_response_promise<receipt> push(update what) {
    auto promise = self->make_response_promise<receipt>();
    if (!decide) {
      promise.deliver(to_caf({errc::not_ready, "the server has no partitions yet"}));
      return promise;
    }
    bytes_received += payload_bytes(what.pieces);
    auto valid = values->check(what.pieces);
    if (valid && any_bsp)
      valid = values->check_finite(what);
    if (!valid) {
      if (reaction_to(valid.error().code) != reaction::retry)
        decide->count_refused();
      promise.deliver(to_caf(valid.error()));
      return promise;
    }
    const request_token token{next_token++};
    const auto step = what.step;
    const auto tables = what.tables;
    const auto base = what.base_version;
    pushes.emplace(token.value, open_push{promise, std::move(what)});
    shard_effects effects;
    decide->push(token, step, tables, base, effects);
    carry_out(effects);
    // A second copy of a slot waits with the first; its payload is of no use.
    if (auto open = pushes.find(token.value); open != pushes.end() && !decide->holds(token))
      open->second.what.pieces.clear();
    return promise;
  }

  caf::typed_response_promise<troupe::values> pull(query what) {
    auto promise = self->make_response_promise<troupe::values>();
    if (!decide) {
      promise.deliver(to_caf({errc::not_ready, "the server has no partitions yet"}));
      return promise;
    }
    if (auto valid = values->check(what.ranges); !valid) {
      promise.deliver(to_caf(valid.error()));
      return promise;
    }
    const request_token token{next_token++};
    const auto step = what.step;
    const auto latest = what.latest;
    const auto tables = tables_of(what.ranges);
    pulls.emplace(token.value, open_pull{promise, std::move(what)});
    shard_effects effects;
    decide->pull(token, step, latest, tables, now_of(*self), effects);
    carry_out(effects);
    return promise;
  }

  // Carrying out an effect may append more.
  void carry_out(shard_effects& effects) {
    for (std::size_t i = 0; i < effects.size(); ++i) {
      const auto effect = std::move(effects[i]);
      std::visit([&](const auto& x) { run(x, effects); }, effect);
    }
  }

  void run(const apply_effect& effect, shard_effects& more) {
    std::vector<const update*> updates;
    for (const auto token : effect.pushes)
      updates.push_back(&pushes.at(token.value).what);
    if (auto done = values->apply(effect, updates); done)
      decide->applied(more);
    else
      decide->discarded(done.error(), more);
  }

  void run(const acknowledge_effect& effect, shard_effects&) {
    auto open = pushes.extract(effect.push.value);
    open.mapped().promise.deliver(effect.receipt);
  }

  void run(const refuse_effect& effect, shard_effects&) {
    if (auto push = pushes.extract(effect.request.value))
      push.mapped().promise.deliver(to_caf(effect.why));
    if (auto pull = pulls.extract(effect.request.value))
      pull.mapped().promise.deliver(to_caf(effect.why));
  }

  void run(const answer_effect& effect, shard_effects&) {
    auto open = pulls.extract(effect.pull.value);
    troupe::values answer{effect.version, values->read(open.mapped().what.ranges, effect.previous)};
    bytes_sent += payload_bytes(answer.pieces);
    open.mapped().promise.deliver(std::move(answer));
  }

  void run(const cut_effect& effect, shard_effects&) {
    storage::cut what{effect.checkpoint, server_id{options.self.index},
                      values->pin(decide->partitions()), decide->clocks()};
    self->request(storage, storage_timeout, write_atom_v, std::move(what))
      .then(
        [this, during = assignment](const checkpoint_part& written) {
          if (during != assignment)
            return; // Those partitions are not ours any more.
          part = written;
          send_report();
        },
        [this, number = effect.checkpoint](const caf::error& why) {
          checkpoint_failed = number;
          checkpoint_failure = from_caf(why).text;
          send_report();
        });
  }

  // -- control path --

  void obey(const orders& what) {
    const auto* mine = std::get_if<server_orders>(&what.body);
    if (mine == nullptr || std::pair{what.term, what.sequence} <= last_orders)
      return;
    last_orders = {what.term, what.sequence};
    if (what.stop) {
      fail_open({errc::peer_lost, "the server ends"});
      self->quit(reason_to_end(what));
      return;
    }
    if (mine->assignment != 0 && mine->assignment != wanted_assignment)
      load(*mine);
    if (!decide)
      return;
    shard_effects effects;
    if (mine->workers != workers) {
      workers = mine->workers;
      decide->set_workers(workers, effects);
    }
    if (mine->checkpoint > checkpoint_asked && storage) {
      checkpoint_asked = mine->checkpoint;
      if (any_bsp && decide->bsp_clocks() > mine->checkpoint_clock)
        checkpoint_missed(mine->checkpoint); // The others may have cut at that clock.
      else
        decide->request_cut(mine->checkpoint, mine->checkpoint_clock, effects);
    }
    const bool admitting =
      std::any_of(workers.begin(), workers.end(), [](const clock_entry& x) { return !x.known; });
    carry_out(effects);
    if (admitting)
      send_report();
  }

  void checkpoint_missed(std::uint64_t number) {
    checkpoint_failed = number;
    checkpoint_failure = "the clock of the cut had passed when the order came";
    send_report();
  }

  void load(const server_orders& what) {
    wanted_assignment = what.assignment;
    drop_everything();
    if (fingerprint(what.job) != options.job) {
      failed = "the coordinator runs another job";
      send_report();
      return;
    }
    if (what.restore != 0 && !storage) {
      failed = "there are no checkpoints to restore from";
      send_report();
      return;
    }
    if (what.restore == 0) {
      std::vector<shard_partition> fresh;
      for (const auto id : what.partitions)
        fresh.push_back({id, 0, std::vector<batch_set>(what.job.tables.size())});
      begin(what, std::move(fresh), block_store{what.job, what.partitions, pool});
      return;
    }
    self->request(storage, storage_timeout, read_atom_v, what.restore, what.job, what.partitions)
      .then(
        [this, what](const std::vector<storage::partition_image>& images) {
          if (what.assignment != wanted_assignment)
            return;
          if (auto whole = block_store::complete(what.job, images); !whole) {
            failed = whole.error().text;
            send_report();
            return;
          }
          std::vector<shard_partition> restored;
          for (const auto& image : images)
            restored.push_back({image.partition, image.version, image.marks});
          begin(what, std::move(restored), block_store{what.job, images, pool});
        },
        [this, number = what.assignment](const caf::error& why) {
          if (number != wanted_assignment)
            return;
          failed = from_caf(why).text;
          send_report();
        });
  }

  void begin(const server_orders& what, std::vector<shard_partition> partitions,
             block_store filled) {
    values.emplace(std::move(filled));
    decide.emplace(what.job, what.generation, std::move(partitions), options.shard);
    any_bsp = std::any_of(what.job.tables.begin(), what.job.tables.end(), [](const auto& table) {
      return table.sync.mode == consistency_mode::bsp;
    });
    assignment = what.assignment;
    workers = what.workers;
    shard_effects effects;
    decide->set_workers(workers, effects);
    carry_out(effects);
    send_report();
  }

  void fail_open(const failure& why) {
    for (auto& [unused, open] : std::exchange(pushes, {}))
      open.promise.deliver(to_caf(why));
    for (auto& [unused, open] : std::exchange(pulls, {}))
      open.promise.deliver(to_caf(why));
  }

  void drop_everything() {
    fail_open({errc::rolled_back, "the server restores its partitions"});
    decide.reset();
    values.reset();
    assignment = 0;
    part = {};
    failed.clear();
  }

  void tick() {
    if (decide) {
      shard_effects effects;
      decide->tick(now_of(*self), effects);
      carry_out(effects);
    }
    if (now_of(*self) - last_report >= report_interval)
      send_report();
    self->delayed_send(self, tick_interval, tick_atom_v);
  }

  void send_report() {
    server_report body;
    body.address = options.address;
    body.assignment = assignment;
    body.failed = failed;
    body.part = part;
    body.checkpoint_failed = checkpoint_failed;
    body.checkpoint_failure = checkpoint_failure;
    if (decide) {
      body.generation = decide->generation();
      body.marks = decide->marks();
      body.clocks = decide->clocks();
      body.pull_clock_max = decide->pull_clock_max();
      body.version = decide->version();
      body.counters = decide->counters();
    }
    body.counters.bytes_sent = bytes_sent;
    body.counters.bytes_received = bytes_received;
    self->send(coordinator,
               report{options.self, options.job, ++sequence, peak_rss_bytes(), std::move(body)},
               caf::actor_cast<member>(self));
    last_report = now_of(*self);
  }

  struct open_push {
    caf::typed_response_promise<receipt> promise;
    update what;
  };
  struct open_pull {
    caf::typed_response_promise<troupe::values> promise;
    query what;
  };

  // Also the resolution of a waiting pull's patience.
  static constexpr std::chrono::milliseconds tick_interval{50};

  pointer self = nullptr;
  server_options options;
  coordinator_handle coordinator;
  checkpointer storage;
  std::shared_ptr<buffer_pool> pool;

  std::optional<shard> decide;
  std::optional<block_store> values;
  bool any_bsp = false;
  std::unordered_map<std::uint64_t, open_push> pushes;
  std::unordered_map<std::uint64_t, open_pull> pulls;
  std::uint64_t next_token = 1;

  std::pair<std::uint64_t, std::uint64_t> last_orders{0, 0}; // term, sequence
  std::uint64_t wanted_assignment = 0;
  std::uint64_t assignment = 0;
  std::vector<clock_entry> workers;
  std::uint64_t checkpoint_asked = 0;
  std::uint64_t checkpoint_failed = 0;
  std::string checkpoint_failure;
  checkpoint_part part;
  std::string failed;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t sequence = 0;
  time_point last_report{0};

  static inline const char* name = "server";
};

static_assert(!std::is_constructible_v<server_shell, caf::event_based_actor*>);

server_shell::handle::behavior_type run_server(server_shell::pointer self, server_options options,
                                               coordinator_connector connect,
                                               checkpointer storage) {
  self->state.init(self, std::move(options), std::move(connect), std::move(storage));
  auto& state = self->state;
  return {
    [&state](push_atom, update& what) { return state.push(std::move(what)); },
    [&state](pull_atom, query& what) { return state.pull(std::move(what)); },
    [&state](const orders& what) { state.obey(what); },
    [&state](tick_atom) { state.tick(); },
  };
}

} // namespace

server_handle spawn_server(caf::actor_system& system, server_options options,
                           coordinator_connector connect, checkpointer storage) {
  return system.spawn(run_server, std::move(options), std::move(connect), std::move(storage));
}

} // namespace troupe
