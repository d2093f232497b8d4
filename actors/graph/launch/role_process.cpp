#include "actors/graph/launch/role_process.hpp"

#include "actors/graph/launch/actor_config.hpp"
#include "actors/graph/launch/cluster_file.hpp"
#include "actors/graph/launch/import.hpp"
#include "actors/graph/launch/play.hpp"
#include "actors/graph/launch/run_setup.hpp"
#include "actors/graph/launch/slow_calls.hpp"
#include "actors/graph/processes/notice_pipe.hpp"
#include "actors/protocol/process_name.hpp"
#include "actors/roles/links/process_links.hpp"
#include "actors/roles/server/expander_actor.hpp"
#include "base/exception_text.hpp"
#include "base/log.hpp"
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
#include <map>
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
  /// `sends`: encodings of gradients that its workers pack.
  child_process(const member_plan& plan, const process_voice& heard, const cluster_file& places,
                const server_functions& functions, encoding_set sends, transport_options transport)
      : mine(plan), voice(heard), log(voice.log()), waits(voice.waits()),
        coordinator_at(places.coordinator), as{.version = wire::protocol_version,
                                               .job = fingerprint(plan.job),
                                               .secret = places.secret,
                                               .from = plan.self(),
                                               .sends = sends,
                                               .probes = probes_of(plan.job, functions)},
        how(std::move(transport)), own_system(make_actor_system()), system(*own_system.system),
        links(system, as, log, how, limits_of(plan), waits) {}

  /// Returns the links of a member of this process: a link to the coordinator is for one member.
  process_links& links_of(const member_id& who) {
    if (who == mine.self())
      return links;
    auto& its = others[who];
    if (!its) {
      auto beside = as;
      beside.from = who;
      its = std::make_unique<process_links>(system, beside, log, how, send_limits{}, waits);
    }
    return *its;
  }
  coordinator_connector connector_of(const member_id& who) {
    return coordinator_over(links_of(who));
  }
  /// Returns the links of the lanes of a member of this process.
  lane_options lanes_of(const member_id& who, bool is_reached, const std::string& host) {
    auto& its = links_of(who);
    lane_options made{.waits = waits, .log = log};
    made.carry = [this, &its](const auto& room, port_surroundings around) {
      auto owner = spawn_channels(system, room, its.lanes(), std::move(around));
      its.serve_lanes(caf::actor_cast<detail::link_owner>(owner));
      return caf::actor_cast<listener_sink>(owner);
    };
    if (!is_reached)
      return made;
    const auto listening = its.listen({host, 0}, mine.fields.ports);
    if (!listening)
      voice.give_up(listening.error().text);
    made.address = to_string(*listening);
    return made;
  }
  coordinator_connector coordinator_over(const process_links& over) const {
    return over.to_coordinator(coordinator_at,
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

  void check(const caf::error& end) {
    if (!end)
      return;
    if (const auto why = from_caf(end); why.code == errc::fenced)
      voice.end_as(traits_of(mine.self().role).leads_job ? word_kind::deposed : word_kind::hopeless,
                   why.text);
    log(log_level::error, "ended by " + system.render(end));
    _exit(EXIT_FAILURE);
  }

  member_plan mine;
  process_voice voice;
  log_sink log;
  notice_sink waits;
  endpoint coordinator_at;
  hello as;
  transport_options how;
  own_actor_system own_system;
  caf::actor_system& system;
  process_links links;
  std::map<member_id, std::unique_ptr<process_links>> others;
};

/// Opens the coordinator's store in etcd. Blocks until the process is to lead.
result<std::unique_ptr<storage::coordinator_store>> open_etcd(const child_process& self) {
  auto store = storage::etcd_store::campaign(
    {etcd_of(self.mine.fields, self.mine.checkpoints),
     name_in_etcd(self.coordinator_at, process_of(self.mine.self()), getpid()),
     [log = self.log](const std::string& what) { log(log_level::info, what); },
     [&self](const std::string& what) {
       self.waits({log_level::warn, "etcd", {}, what});
     }});
  if (!store)
    return store.error();
  return {*std::move(store)};
}

/// Says that the coordinator has done work once it has led, or stood by, for a while.
void prove_after_a_while(caf::actor_system& system, const std::function<void()>& works) {
  system.spawn([works](caf::event_based_actor* timer) -> caf::behavior {
    timer->delayed_send(timer, coordinator_proof, tick_atom_v);
    return {[timer, works](tick_atom) {
      works();
      timer->quit();
    }};
  });
}

/// Opens the process to others. Returns its address; empty if it does not listen.
std::string listen(child_process& self, const child_identity& who, const std::string& host) {
  const auto& row = traits_of(who.self.role);
  if (row.listens != listening::always)
    return {};
  auto listening = row.leads_job ? self.links.listen_on(who.inherited)
                                 : self.links.listen({host, 0}, self.mine.fields.ports);
  if (!listening)
    self.voice.give_up(listening.error().text);
  return to_string(*listening);
}

/// Spawns the actors of the process, and waits until they end. `graph`: null if no member calls it.
void play_here(child_process& self, const child_identity& who, const cluster_file& places,
               const server_functions& functions, const plan* graph) {
  const auto& mine = self.mine;
  const bool leads = traits_of(who.self.role).leads_job;
  surroundings around{
    .system = self.system,
    .graph = graph,
    .functions = functions,
    .may_start_again = true,
    .log = self.log,
    .waits = self.waits,
    .works = self.voice.works(),
    .connector_of = [&self](const member_id& member) { return self.connector_of(member); },
    .to_replicas = self.links.to_replicas(),
    .to_servers = self.links.to_servers(),
    .lanes_of =
      [&self, &places](const member_id& member, bool is_reached) {
        return self.lanes_of(member, is_reached, places.listen_host);
      },
    .window_wait = [&self] { return self.links.window_wait(); },
    .traffic = [&self] { return self.links.traffic(); }};
  if (mine.fields.etcd)
    around.open_store = [&self] { return open_etcd(self); };
  if (leads)
    prove_after_a_while(self.system, around.works);
  else
    around.address = listen(self, who, places.listen_host);
  const auto made = play(mine, around);
  if (!made && made.error().code == errc::fenced)
    self.voice.end_as(word_kind::deposed, made.error().text);
  if (!made)
    self.voice.give_up(made.error().text);
  if (made->coordinator) {
    self.links.serve_coordinator(made->coordinator);
    listen(self, who, places.listen_host); // Others must not reach it before it leads.
  }
  if (made->server)
    self.links.serve_values(made->server, made->server,
                            spawn_expander(self.system, mine.job, made->server));
  self.wait_for(made->members);
}

/// Plays the member and ends the process. It does not return, so that `self` outlives the actors:
/// waiting for idle actors would only risk a hang.
[[noreturn]] void run_here(child_process& self, const child_identity& who,
                           const cluster_file& places, const server_functions& functions,
                           const plan* graph) {
  try {
    play_here(self, who, places, functions, graph);
    self.voice.end();
  } catch (...) {
    self.voice.give_up(exception_text());
  }
}

/// Returns the text with which a process begins its log.
std::string start_text(const std::string& node) {
  return fmt::format("starts{}{}, pid {}", node.empty() ? "" : " as ", node, getpid());
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
  const auto read = read_cluster_file(options.run_directory);
  if (!read)
    voice.give_up(read.error().text);
  const auto& places = *read;
  const auto mine = places.members.of(who.self);
  if (mine.members.empty() || mine.self() != who.self)
    voice.give_up(damaged_cluster_file(options.run_directory).text);
  const auto& job = mine.job;
  if (auto has = check_functions(job, functions); !has)
    voice.give_up(has.error().text);
  voice.log()(log_level::info, start_text(mine.node));
  const bool is_worker = who.self.role == role::worker;
  const bool has_graph = is_worker || who.self.role == role::actor
                         || (who.self.role == role::server && (job.own_store || job.gossip));
  const bool has_function = std::ranges::any_of(
    job.tables, [](const auto& x) { return x.optimizer.kind == optimizer_kind::user; });
  if (has_graph || has_function) // Other processes call no code of the program.
    tell_slow_calls(process_of(who.self), voice.waits(), voice.log(),
                    [file = voice.file] { file.keep_to_size(); });
  try {
    auto graph = has_graph ? std::optional{lowered()} : std::nullopt;
    if (graph)
      take_checksums(*graph, job);
    if (graph)
      if (auto differs = graph_difference(job, graph->job); !differs.empty())
        voice.give_up(differs);
    if (graph && graph->rules().has_ranks) {
      if (auto done = run_rank(who, places, *graph, {voice.log(), voice.waits(), voice.works()});
          !done)
        voice.give_up(done.error().text);
      voice.end();
    }
    auto certificate = load_certificate(mine.fields, who.self.role);
    if (!certificate)
      voice.give_up(certificate.error().text);
    transport_options transport{.admit_without_secret = places.open_to_others,
                                .arena_bytes = arena_bytes_of(job),
                                .tls = *std::move(certificate)};
    // A Unix socket's name would stay with a leader that hangs; coordinators share the TCP socket.
    transport.unix_sockets = !traits_of(who.self.role).leads_job || !mine.fields.etcd;
    const bool pushes =
      is_worker || (graph && graph->pipeline && graph->pipeline->part_of(who.self));
    const auto* const packs = pushes && graph->compression ? &*graph->compression : nullptr;
    child_process self{
      mine, voice, places, functions, packs ? packs->sends() : 0, std::move(transport)};
    if (packs && packs->keeps_residual())
      self.log(log_level::info,
               "compresses gradients; the residue of an earlier process of this worker is dropped");
    run_here(self, who, places, functions, graph ? &*graph : nullptr);
  } catch (...) {
    voice.give_up(exception_text());
  }
}

} // namespace troupe
