#include "actors/graph/launch/role_process.hpp"

#include "actors/graph/launch/actor_config.hpp"
#include "actors/graph/launch/build_workers.hpp"
#include "actors/graph/launch/cluster_file.hpp"
#include "actors/graph/launch/import.hpp"
#include "actors/graph/launch/run_setup.hpp"
#include "actors/graph/launch/slow_calls.hpp"
#include "actors/graph/launch/take_fields.hpp"
#include "actors/graph/options/recording.hpp"
#include "actors/graph/processes/notice_pipe.hpp"
#include "actors/graph/worker_groups.hpp"
#include "actors/protocol/process_name.hpp"
#include "actors/roles/coordinator/coordinator_actor.hpp"
#include "actors/roles/links/process_links.hpp"
#include "actors/roles/server/expander_actor.hpp"
#include "actors/roles/server/server_actor.hpp"
#include "base/exception_text.hpp"
#include "base/log.hpp"
#include "base/system/directory_lock.hpp"
#include "base/system/resource_limits.hpp"
#include "serialization/wire.hpp"
#include "storage/coordinator_store.hpp"
#include "storage/etcd_store.hpp"

#include "caf/actor_system.hpp"
#include "caf/event_based_actor.hpp"
#include "caf/scoped_actor.hpp"

#include "fmt/core.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

namespace troupe {

namespace {

/// Writes a process's log, and its notices to the launcher's console while it waits.
struct process_voice {
  process_voice(const child_identity& who, const run_options& options)
      : notices{notice_writer{who.notices, process_of(who.self)}},
        file{{.file = log_path(options.run_directory, process_of(who.self)),
              .member = to_string(process_of(who.self)),
              .least = options.log_level,
              .takes_output = true}} {}

  /// Ends the process, and tells the launcher why.
  [[noreturn]] void end_as(word_kind kind, const std::string& why) const {
    const auto text = with_limits(why);
    notices.tell(kind, text);
    log()(log_level::fatal, text);
    std::fflush(nullptr);
    _exit(EXIT_FAILURE);
  }
  [[noreturn]] void give_up(const std::string& why) const { end_as(word_kind::hopeless, why); }

  /// Ends the process, as its work is over: the coordinator has told it to end.
  [[noreturn]] void end() const {
    notices.tell(word_kind::dismissed);
    log()(log_level::info, "ends");
    std::fflush(nullptr);
    _exit(EXIT_SUCCESS);
  }

  /// A full disk must not end the process, so the launcher hears of a line that cannot be written.
  log_sink log() const {
    return [to = notices, into = file](log_level level, const std::string& text) {
      if (const auto written = into.write(level, text); !written)
        to.say({level, "log", {}, written.error().text + "; it would say: " + text});
    };
  }
  /// Returns a function for work that is done. It tells the launcher once. If the pipe is full, the
  /// next call tries again, as an actor must not wait.
  std::function<void()> works() const {
    return [to = notices, told = std::make_shared<std::atomic<bool>>(false)] {
      if (!told->load() && to.try_to_tell(word_kind::works))
        told->store(true);
    };
  }
  notice_sink waits() const {
    return [to = notices](notice what) {
      what.text = with_limits(what.text);
      to.say(what);
    };
  }

  notice_writer notices;
  log_file file;
};

/// Time for the other workers of a process to end: they are told to stop over several links.
constexpr std::chrono::seconds end_of_others{3};
/// Time as the leader, or as a standby, after which a coordinator has done work.
constexpr std::chrono::seconds coordinator_proof{10};

struct child_process {
  child_process(const child_identity& identity, const process_voice& heard, cluster_file from,
                server_functions of_program, std::optional<codec_options> compression,
                const send_limits& limits, transport_options transport)
      : who(identity.self), voice(heard), log(voice.log()), waits(voice.waits()),
        cluster(std::move(from)), functions(std::move(of_program)),
        probes(probes_of(cluster.job, functions)), compressed(std::move(compression)),
        how(std::move(transport)), own_system(make_actor_system()), system(*own_system.system),
        links(system, introduction(who), log, how, limits, waits) {}

  hello introduction(const member_id& as) const {
    return {.version = wire::protocol_version,
            .job = fingerprint(cluster.job),
            .secret = cluster.secret,
            .from = as,
            .sends = compressed ? compressed->sends() : 0,
            .probes = probes};
  }

  coordinator_connector coordinator() const { return coordinator_over(links); }
  /// Returns a connector for a worker of this process: a link to the coordinator is for one member.
  coordinator_connector coordinator(const member_id& beside) {
    if (beside == who)
      return coordinator();
    others.push_back(std::make_unique<process_links>(system, introduction(beside), log, how,
                                                     send_limits{}, waits));
    return coordinator_over(*others.back());
  }
  coordinator_connector coordinator_over(const process_links& over) const {
    return over.to_coordinator(cluster.coordinator,
                               [to = voice](const failure& why) { to.give_up(why.text); });
  }

  /// Blocks until all members have ended as they were told to. If one has ended, waits at most
  /// `end_of_others` for each of the others; the process then ends and is started again. If a
  /// member ends in another way, exits at once.
  void wait_for(const std::vector<caf::actor>& members) {
    caf::scoped_actor self{system};
    for (const auto& each : members)
      self->monitor(each);
    bool goes_on = true;
    for (std::size_t ended = 0; goes_on && ended < members.size(); ++ended) {
      const auto follow = [this](const caf::down_msg& end) { check(end.reason); };
      if (ended == 0)
        self->receive(follow);
      else
        self->receive(
          follow, caf::after(end_of_others) >> [&] { goes_on = false; });
    }
  }
  template <class Handle>
  void wait_for(const Handle& handle) {
    wait_for(std::vector{caf::actor_cast<caf::actor>(handle)});
  }

  void check(const caf::error& end) {
    if (!end)
      return;
    if (const auto why = from_caf(end); why.code == errc::fenced)
      voice.end_as(traits_of(who.role).leads_job ? word_kind::deposed : word_kind::hopeless,
                   why.text);
    log(log_level::error, "ended by " + system.render(end));
    _exit(EXIT_FAILURE);
  }

  member_id who;
  process_voice voice;
  log_sink log;
  notice_sink waits;
  cluster_file cluster;
  server_functions functions;
  std::vector<function_probe> probes;
  std::optional<codec_options> compressed; ///< Set for a worker that compresses.
  transport_options how;
  own_actor_system own_system;
  caf::actor_system& system;
  process_links links;
  std::vector<std::unique_ptr<process_links>> others;
};

/// Opens the coordinator's store. With etcd, blocks until the process is to lead.
std::unique_ptr<storage::coordinator_store> open_store(const child_process& self,
                                                       const run_options& options) {
  const auto& checkpoints = self.cluster.checkpoint_directory;
  if (options.etcd) {
    auto store = storage::etcd_store::campaign(
      {etcd_of(options, checkpoints),
       name_in_etcd(self.cluster.coordinator, process_of(self.who), getpid()),
       [log = self.log](const std::string& what) { log(log_level::info, what); },
       [&self](const std::string& what) {
         self.waits({log_level::warn, "etcd", {}, what});
       }});
    if (!store)
      self.voice.give_up(store.error().text);
    return *std::move(store);
  }
  auto store = storage::coordinator_store::open(checkpoints);
  if (!store)
    self.voice.give_up(store.error().text);
  return *std::move(store);
}

void run_coordinator_process(child_process& self, const run_options& options, int inherited) {
  const auto& fields = self.cluster.for_coordinator;
  const auto works = self.voice.works();
  self.system.spawn([works](caf::event_based_actor* timer) -> caf::behavior {
    timer->delayed_send(timer, coordinator_proof, tick_atom_v);
    return {[timer, works](tick_atom) {
      works();
      timer->quit();
    }};
  });
  coordinator_setup setup;
  setup.job = self.cluster.job;
  take_fields(fields, setup);
  setup.options.resume = self.cluster.resume;
  setup.options.index = self.who.index;
  setup.options.directory_mark =
    storage::directory_mark(self.cluster.checkpoint_directory).value_or(0);
  setup.store = open_store(self, options);
  setup.last_checkpoint = storage::last_number(self.cluster.checkpoint_directory);
  setup.log = self.log;
  setup.works = works;
  auto files = spawn_checkpointer(
    self.system, {self.cluster.checkpoint_directory, {}, fields.servers.checkpoints.keep});
  auto service = spawn_coordinator(self.system, std::move(setup), files);
  if (!service)
    self.voice.end_as(service.error().code == errc::fenced ? word_kind::deposed
                                                           : word_kind::hopeless,
                      service.error().text);
  self.links.serve_coordinator(*service);
  if (auto listening = self.links.listen_on(inherited); !listening)
    self.voice.give_up(listening.error().text);
  self.wait_for(*service);
}

/// Ends the process if it made another graph than the launcher.
void check_graph(const child_process& self, const plan& what) {
  if (auto differs = graph_difference(self.cluster.job, what.job); !differs.empty())
    self.voice.give_up(differs);
}

/// `what`: the plan, for an own store; else null.
void run_server_process(child_process& self, const run_options& options, const plan* what) {
  if (what)
    check_graph(self, *what);
  const auto& fields = self.cluster.for_servers;
  auto listening = self.links.listen({self.cluster.listen_host, 0});
  if (!listening)
    self.voice.give_up(listening.error().text);
  auto files = spawn_checkpointer(
    self.system,
    {self.cluster.checkpoint_directory, {self.who.index}, fields.servers.checkpoints.keep});
  server_options how{self.who, fingerprint(self.cluster.job), to_string(*listening),
                     self.links.to_replicas()};
  take_fields(fields, how);
  if (what)
    how.keeper = keeper_of(*what, self.log);
  how.directory = self.cluster.checkpoint_directory;
  how.functions = self.functions;
  how.log = self.log;
  how.waits = self.waits;
  how.works = self.voice.works();
  how.record = recording_of(options, self.log);
  auto server = spawn_server(self.system, std::move(how), self.coordinator(), files);
  self.links.serve_values(server, server, spawn_expander(self.system, self.cluster.job, server));
  self.wait_for(server);
}

void run_worker_process(child_process& self, const plan& what) {
  check_graph(self, what);
  if (self.compressed && self.compressed->keeps_residual())
    self.log(log_level::info,
             "compresses gradients; the residue of an earlier process of this worker is dropped");
  const auto router =
    spawn_router(self.system, self.cluster.job, self.links.to_servers(), routing_of(what.options));
  const auto built =
    build_workers({.system = self.system,
                   .what = what,
                   .job = self.cluster.job,
                   .log = self.log,
                   .connector_of = [&self](const member_id& who) { return self.coordinator(who); },
                   .works = self.voice.works(),
                   .first =
                     [&self](worker_options& how) {
                       how.window_wait = [&self] { return self.links.window_wait(); };
                       how.traffic = [&self] { return self.links.traffic(); };
                     }},
                  workers_of(what.options, self.who), {router, router});
  self.wait_for(built.workers);
}

/// Returns "starts as learners:1, pid 17", or without a name for a process that no node has.
std::string start_text(const child_identity& who, const cluster_file& cluster) {
  const auto role = to_string(process_name{who.self.role, 0});
  const auto node =
    std::ranges::find_if(cluster.nodes, [&](const auto& x) { return role == x.second + " 0"; });
  const auto name =
    node == cluster.nodes.end() ? "" : fmt::format(" as {}:{}", node->first, who.self.index);
  return fmt::format("starts{}, pid {}", name, getpid());
}

/// Plays the role and ends the process. Waiting for idle actors would only risk a hang.
[[noreturn]] void run_role(child_process& self, const child_identity& who,
                           const run_options& options, const plan* what) {
  try {
    self.log(log_level::info, start_text(who, self.cluster));
    switch (who.self.role) {
    case role::coordinator: run_coordinator_process(self, options, who.inherited); break;
    case role::server: run_server_process(self, options, what); break;
    default: run_worker_process(self, *what); break;
    }
    self.voice.end();
  } catch (...) {
    self.voice.give_up(exception_text());
  }
}

// Sets the name in ps and top, which otherwise show the name of the executed file, `exe`.
void show_name(const process_name& who) {
  auto name = to_string(who);
  std::ranges::replace(name, ' ', '-');
  pthread_setname_np(pthread_self(), name.c_str()); // All names have at most 15 characters.
}

} // namespace

int run_child(const child_identity& who, const run_options& options,
              const server_functions& functions, const std::function<plan()>& lowered,
              const rank_runner& run_rank) {
  show_name(process_of(who.self));
  const process_voice voice{who, options};
  auto cluster = read_cluster_file(options.run_directory);
  if (!cluster)
    voice.give_up(cluster.error().text);
  if (auto has = check_functions(cluster->job, functions); !has)
    voice.give_up(has.error().text);
  const bool is_worker = who.self.role == role::worker;
  const bool has_keeper = who.self.role == role::server && cluster->job.own_store;
  const bool has_function = std::ranges::any_of(
    cluster->job.tables, [](const auto& x) { return x.optimizer.kind == optimizer_kind::user; });
  if (is_worker || has_keeper || has_function) // Other processes call no code of the program.
    tell_slow_calls(process_of(who.self), voice.waits(), voice.log(),
                    [file = voice.file] { file.keep_to_size(); });
  try {
    auto what = is_worker || has_keeper ? std::optional{lowered()} : std::nullopt;
    if (what)
      take_checksums(*what, cluster->job);
    if (what && what->rules().has_ranks) {
      const auto log = voice.log();
      log(log_level::info, start_text(who, *cluster));
      if (auto done = run_rank(who, *cluster, *what, {log, voice.waits(), voice.works()}); !done)
        voice.give_up(done.error().text);
      voice.end();
    }
    auto certificate = load_certificate(options, who.self.role);
    if (!certificate)
      voice.give_up(certificate.error().text);
    send_limits limits;
    const auto& fields = what                            ? what->options
                         : who.self.role == role::server ? cluster->for_servers
                                                         : cluster->for_coordinator;
    limits.memory_bytes = std::uint64_t{fields.workers.push_memory_mib} << 20;
    limits.key_cache = options.key_cache;
    limits = limits_of(cluster->job, limits);
    transport_options transport{.admit_without_secret = cluster->open_to_others,
                                .arena_bytes = arena_bytes_of(cluster->job),
                                .tls = *std::move(certificate)};
    // A Unix socket's name would stay with a leader that hangs; coordinators share the TCP socket.
    transport.unix_sockets = !traits_of(who.self.role).leads_job || !options.etcd;
    child_process self{who,
                       voice,
                       *std::move(cluster),
                       functions,
                       is_worker ? what->compression : std::nullopt,
                       limits,
                       std::move(transport)};
    run_role(self, who, options, what ? &*what : nullptr);
  } catch (...) {
    voice.give_up(exception_text());
  }
}

} // namespace troupe
