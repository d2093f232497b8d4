#include "actors/store/server_actor.hpp"

#include "actors/askers.hpp"
#include "actors/clock.hpp"
#include "actors/member_port.hpp"
#include "actors/store/table_store.hpp"

#include "caf/stateful_actor.hpp"
#include "caf/typed_event_based_actor.hpp"
#include "caf/typed_response_promise.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(std::shared_ptr<troupe::table_store>)

namespace troupe {

namespace {

std::vector<table_id> tables_of(const query& pull) {
  std::vector<table_id> tables;
  const auto add = [&](const auto& all) {
    for (const auto& x : all)
      if (std::find(tables.begin(), tables.end(), x.table) == tables.end())
        tables.push_back(x.table);
  };
  add(pull.ranges);
  add(pull.rows);
  return tables;
}

/// Makes one store, then ends. Drawing the numbers of a large model takes many seconds, in
/// which the server has to report.
using filler =
  caf::typed_actor<caf::replies_to<read_atom, job_spec,
                                   std::vector<partition_id>>::with<std::shared_ptr<table_store>>>;

filler::behavior_type run_filler(filler::pointer self, const std::shared_ptr<buffer_pool>& pool) {
  return {[self, pool](read_atom, const job_spec& job, const std::vector<partition_id>& here) {
    self->quit();
    return std::make_shared<table_store>(job, here, pool);
  }};
}

struct server_shell {
  using handle = server_handle::extend<caf::reacts_to<tick_atom>, caf::reacts_to<step_atom>>;
  using pointer = handle::stateful_pointer<server_shell>;
  using promise = caf::typed_response_promise<reply>;

  server_shell() = default;

  void init(pointer owner, server_options how, const coordinator_connector& connect,
            checkpointer files) {
    self = owner;
    options = std::move(how);
    port.open(self, options.self, options.job, connect);
    storage = std::move(files);
    pool = std::make_shared<buffer_pool>();
    self->delayed_send(self, tick_interval, tick_atom_v);
    send_report();
  }

  // -- data path --

  promise ask(request what) {
    auto open = self->make_response_promise<reply>();
    accept(open, std::move(what));
    answers.send(self);
    return open;
  }

  void ask(request_list& what, const answer_sink& to) {
    for (auto& each : what.items) {
      accept(numbered_asker{to, each.number}, std::move(each.what));
      answers.send_if_much(self);
    }
    answers.send(self);
  }

  void accept(asker by, request what) {
    if (auto valid = check(what); !valid)
      return answers.add(by, valid.error());
    const request_token token{next_token++};
    requests.emplace(token.value, open_request{std::move(by), std::move(what), {}});
    shard_effects effects;
    if (requests.at(token.value).what.push)
      push(token, effects);
    else
      pull(token, effects);
    carry_out(effects);
    if (admitted.size() >= options.apply_batch)
      end_gathering();
    // A second copy of a slot waits with the first; its payload is of no use.
    if (auto kept = requests.find(token.value);
        kept != requests.end() && kept->second.what.push && !decide->holds(token))
      drop_payload(*kept->second.what.push);
  }

  static void drop_payload(update& push) {
    push.pieces.clear();
    push.rows.clear();
  }

  result<void> check(const request& what) {
    if (!decide)
      return {errc::not_ready, "the server has no partitions yet"};
    auto valid = what.push ? check(*what.push) : result<void>{};
    if (valid && what.pull)
      valid = values->check(*what.pull);
    return valid;
  }

  result<void> check(const update& push) {
    bytes_received += payload_bytes(push);
    auto valid = values->check(push);
    if (valid && is_bsp)
      valid = values->check_finite(push);
    if (!valid && reaction_to(valid.error().code) != reaction::retry)
      decide->count_refused();
    return valid;
  }

  void push(request_token token, shard_effects& effects) {
    const auto& what = *requests.at(token.value).what.push;
    decide->push(token, what.step, what.tables, what.base_version, effects);
  }

  void pull(request_token token, shard_effects& effects) {
    const auto& what = *requests.at(token.value).what.pull;
    decide->pull(token, what.step, what.latest, tables_of(what), now_of(*self), effects);
  }

  // Carrying out an effect may append more. A pull follows when the push of its request is done.
  void carry_out(shard_effects& effects) {
    for (std::size_t i = 0;;) {
      while (i < effects.size()) {
        const auto effect = std::move(effects[i++]);
        std::visit([&](const auto& x) { run(x, effects); }, effect);
      }
      if (!admitted.empty() || pulls_due.empty())
        return;
      const auto token = pulls_due.front();
      pulls_due.pop_front();
      pull(token, effects);
    }
  }

  // A chain of one: what is in its log is final.
  void run(const propose_effect& effect, shard_effects& more) {
    std::vector<update> entry;
    entry.reserve(effect.pushes.size());
    for (const auto token : effect.pushes) {
      auto& push = *requests.at(token.value).what.push;
      if (decide->holds(token))
        entry.push_back(push); // Another entry needs it too.
      else
        entry.push_back(std::move(push));
    }
    log.push_back(std::move(entry));
    decide->commit(more);
  }

  void run(const apply_effect& effect, shard_effects& more) {
    auto entry = std::move(log.front());
    log.pop_front();
    if (options.apply_batch > 1 && !is_bsp)
      return admit(effect, std::move(entry.front()), more);
    std::vector<const update*> updates;
    for (const update& push : entry)
      updates.push_back(&push);
    if (auto done = values->apply(effect, updates); done)
      decide->applied(more);
    else
      decide->discarded(done.error(), more);
  }

  /// The update buffer: what has passed all checks counts as applied, and is before anyone looks.
  void admit(const apply_effect& effect, update push, shard_effects& more) {
    if (auto valid = values->admit(effect, push); !valid) {
      decide->discarded(valid.error(), more);
      return;
    }
    if (admitted.empty())
      self->send(self, step_atom_v); // Behind the requests that wait already.
    gathered.push_back(std::move(push));
    admitted.push_back({effect, &gathered.back()});
    decide->applied(more);
  }

  void apply_admitted() {
    if (admitted.empty())
      return;
    values->apply_admitted(admitted);
    admitted.clear();
    gathered.clear();
  }

  /// Nobody waits in the mailbox any more, or the buffer is full.
  void end_gathering() {
    apply_admitted();
    shard_effects none;
    carry_out(none);
    answers.send(self);
  }

  void run(const acknowledge_effect& effect, shard_effects&) {
    auto& open = requests.at(effect.push.value);
    open.answer.pushed = effect.receipt;
    open.what.push.reset();
    if (open.what.pull)
      pulls_due.push_back(effect.push);
    else
      deliver(effect.push);
  }

  void run(const refuse_effect& effect, shard_effects&) {
    auto& open = requests.at(effect.request.value);
    if (open.answer.pushed && effect.why.code == errc::not_yet)
      deliver(effect.request);
    else if (auto ended = requests.extract(effect.request.value))
      answers.add(ended.mapped().by, effect.why);
  }

  void run(const answer_effect& effect, shard_effects&) {
    apply_admitted();
    auto& open = requests.at(effect.pull.value);
    open.answer.pulled = values->read(*open.what.pull, effect.previous);
    open.answer.pulled->version = effect.version;
    bytes_sent += payload_bytes(*open.answer.pulled);
    deliver(effect.pull);
  }

  void deliver(request_token token) {
    auto open = requests.extract(token.value);
    answers.add(open.mapped().by, std::move(open.mapped().answer));
  }

  void run(const cut_effect& effect, shard_effects&) {
    apply_admitted();
    storage::cut what{effect.checkpoint, server_id{options.self.index},
                      values->pin(decide->partitions())};
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
    const auto* mine = port.take<server_orders>(what);
    if (mine == nullptr)
      return;
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
      if (is_bsp && decide->bsp_clocks() > mine->checkpoint_clock)
        checkpoint_missed(mine->checkpoint); // The others may have cut at that clock.
      else
        decide->request_cut(mine->checkpoint, mine->checkpoint_clock, effects);
    }
    const bool admitting =
      std::any_of(workers.begin(), workers.end(), [](const clock_entry& x) { return !x.known; });
    carry_out(effects);
    answers.send(self);
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
      give_up("the coordinator runs another job");
      return;
    }
    if (what.restore != 0 && !storage) {
      give_up("there are no checkpoints to restore from");
      return;
    }
    if (what.restore == 0)
      fill(what);
    else
      restore(what);
  }

  void fill(const server_orders& what) {
    const auto by = options.own_thread ? self->spawn<caf::detached>(run_filler, pool)
                                       : self->spawn(run_filler, pool);
    self->request(by, storage_timeout, read_atom_v, what.job, what.partitions)
      .then(
        [this, what](std::shared_ptr<table_store>& filled) {
          if (what.assignment != wanted_assignment)
            return;
          std::vector<shard_partition> fresh;
          for (const auto id : what.partitions)
            fresh.push_back({id, 0, std::vector<batch_set>(what.job.tables.size())});
          begin(what, std::move(fresh), std::move(filled));
        },
        [this, number = what.assignment](const caf::error&) {
          if (number == wanted_assignment)
            give_up("the partitions could not be filled");
        });
  }

  void restore(const server_orders& what) {
    self->request(storage, storage_timeout, read_atom_v, what.restore, what.job, what.partitions)
      .then(
        [this, what](const std::vector<storage::partition_image>& images) {
          if (what.assignment != wanted_assignment)
            return;
          auto read = table_store::restored(what.job, images, pool);
          if (!read) {
            give_up(read.error().text, what.restore);
            return;
          }
          std::vector<shard_partition> restored;
          for (const auto& image : images)
            restored.push_back({image.partition, image.version, image.marks});
          begin(what, std::move(restored), *std::move(read));
        },
        [this, number = what.assignment, checkpoint = what.restore](const caf::error& error) {
          if (number != wanted_assignment)
            return;
          const auto why = from_caf(error);
          const bool is_rotten = why.code == errc::damaged || why.code == errc::io_failed;
          give_up(why.text, is_rotten ? checkpoint : 0);
        });
  }

  /// The assignment cannot be carried out; `bad_checkpoint`: because of that one, if not 0.
  void give_up(std::string why, std::uint64_t bad_checkpoint = 0) {
    failed = std::move(why);
    unreadable = bad_checkpoint;
    send_report();
  }

  void begin(const server_orders& what, std::vector<shard_partition> partitions,
             std::shared_ptr<table_store> filled) {
    values = std::move(filled);
    decide.emplace(what.job, what.generation, std::move(partitions), options.shard);
    is_bsp = any_bsp(what.job);
    assignment = what.assignment;
    workers = what.workers;
    shard_effects effects;
    decide->set_workers(workers, effects);
    carry_out(effects);
    send_report();
  }

  void fail_open(const failure& why) {
    for (auto& [unused, open] : std::exchange(requests, {}))
      answers.add(open.by, why);
    answers.send(self);
    pulls_due.clear();
  }

  void drop_everything() {
    fail_open({errc::rolled_back, "the server restores its partitions"});
    admitted.clear();
    gathered.clear();
    log.clear();
    decide.reset();
    values.reset();
    assignment = 0;
    part = {};
    failed.clear();
    unreadable = 0;
  }

  void tick() {
    if (decide) {
      shard_effects effects;
      decide->tick(now_of(*self), effects);
      carry_out(effects);
      answers.send(self);
    }
    if (port.due())
      send_report();
    self->delayed_send(self, tick_interval, tick_atom_v);
  }

  void send_report() {
    server_report body;
    body.address = options.address;
    body.assignment = assignment;
    body.failed = failed;
    body.unreadable = unreadable;
    body.part = part;
    body.checkpoint_failed = checkpoint_failed;
    body.checkpoint_failure = checkpoint_failure;
    if (decide) {
      body.generation = decide->generation();
      body.marks = decide->marks();
      body.clocks = decide->clocks();
      body.version = decide->version();
      body.counters = decide->counters();
    }
    body.counters.bytes_sent = bytes_sent;
    body.counters.bytes_received = bytes_received;
    port.send(std::move(body));
  }

  struct open_request {
    asker by;
    request what; ///< Without the push once that was acknowledged.
    reply answer;
  };

  // Also the resolution of a waiting pull's patience.
  static constexpr std::chrono::milliseconds tick_interval{50};

  pointer self = nullptr;
  server_options options;
  member_port port;
  checkpointer storage;
  std::shared_ptr<buffer_pool> pool;

  std::optional<shard> decide;
  std::shared_ptr<table_store> values;
  bool is_bsp = false; ///< Some table is.
  std::unordered_map<std::uint64_t, open_request> requests;
  ready_answers answers;
  std::deque<request_token> pulls_due; ///< Their pushes are done.
  std::deque<std::vector<update>> log; ///< The updates of each pending entry, oldest first.
  std::vector<block_store::admitted_push> admitted;
  std::deque<update> gathered; ///< Those of `admitted`.
  std::uint64_t next_token = 1;

  std::uint64_t wanted_assignment = 0;
  std::uint64_t assignment = 0;
  std::vector<clock_entry> workers;
  std::uint64_t checkpoint_asked = 0;
  std::uint64_t checkpoint_failed = 0;
  std::string checkpoint_failure;
  checkpoint_part part;
  std::string failed;
  std::uint64_t unreadable = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;

  static inline const char* name = "server";
};

static_assert(!std::is_constructible_v<server_shell, caf::event_based_actor*>);

server_shell::handle::behavior_type run_server(server_shell::pointer self, server_options options,
                                               coordinator_connector connect,
                                               checkpointer storage) {
  self->state.init(self, std::move(options), std::move(connect), std::move(storage));
  auto& state = self->state;
  return {
    [&state](request& what) { return state.ask(std::move(what)); },
    [&state](request_list& what, const answer_sink& to) { state.ask(what, to); },
    [&state](const orders& what) { state.obey(what); },
    [&state](step_atom) { state.end_gathering(); },
    [&state](tick_atom) { state.tick(); },
  };
}

} // namespace

server_handle spawn_server(caf::actor_system& system, server_options options,
                           coordinator_connector connect, checkpointer storage) {
  return system.spawn(run_server, std::move(options), std::move(connect), std::move(storage));
}

} // namespace troupe
