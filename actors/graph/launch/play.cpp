#include "actors/graph/launch/play.hpp"

#include "actors/graph/nodes/raw_stage.hpp"
#include "actors/graph/options/recording.hpp"
#include "actors/graph/options/straggler_rules.hpp"
#include "actors/protocol/worker/fault_stage.hpp"
#include "actors/roles/actor/own_actor_member.hpp"
#include "actors/roles/peer/collector_actor.hpp"
#include "actors/roles/peer/peer_actor.hpp"
#include "actors/roles/worker/compress_stage.hpp"
#include "actors/roles/worker/line_gradient_actor.hpp"
#include "actors/roles/worker/reduce_stage.hpp"
#include "actors/roles/worker/stage_actor.hpp"
#include "actors/training/line_actor.hpp"
#include "base/splitmix64.hpp"
#include "base/system/directory_lock.hpp"
#include "base/system/machine_name.hpp"
#include "base/user_code.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <cassert>
#include <ranges>
#include <utility>

namespace troupe {

namespace {

using namespace std::chrono_literals;

template <class Handle>
caf::actor untyped(const Handle& handle) {
  return caf::actor_cast<caf::actor>(handle);
}

/// Spawns the checkpointer of the member; null if the job keeps no checkpoints.
checkpointer files_of(const member_plan& what, const surroundings& in) {
  if (what.checkpoints.empty())
    return {};
  return spawn_checkpointer(in.system, options_of_files(what));
}

result<played> play_coordinator(const member_plan& what, const surroundings& in) {
  auto setup = setup_of(what, in);
  if (!what.checkpoints.empty()) {
    auto store =
      in.open_store ? in.open_store() : storage::coordinator_store::open(what.checkpoints);
    if (!store)
      return store.error();
    setup.store = *std::move(store);
    // Another coordinator may have written checkpoints until this one leads.
    setup.last_checkpoint = storage::last_number(what.checkpoints);
  }
  auto service = spawn_coordinator(in.system, std::move(setup), files_of(what, in));
  if (!service)
    return service.error();
  return played{.members = {untyped(*service)}, .coordinator = *service};
}

collector_setup setup_of_collector(const member_plan& what, const surroundings& in) {
  collector_setup how{.self = what.self(),
                      .job = what.job,
                      .graph = in.graph->peers->graph,
                      .address = in.address,
                      .functions = in.functions,
                      .given = in.given,
                      .log = in.log,
                      .waits = in.waits,
                      .works = in.works};
  if (in.simulated) {
    how.own_thread = false;
    how.boot_clock = in.simulated->clock();
  }
  return how;
}

played play_server(const member_plan& what, const surroundings& in) {
  const auto connect = in.connector_of(what.self());
  if (in.shared)
    return {.members = {untyped(spawn_hogwild_server(in.system, what.self(), in.shared, connect))}};
  if (what.job.gossip) {
    auto lanes = in.lanes_of(what.self(), false);
    lanes.room = std::make_shared<port_room>(what.self(), ends_of_collector(what.job));
    const auto collector = spawn_collector(in.system, setup_of_collector(what, in),
                                           std::move(lanes), connect, files_of(what, in));
    return {.members = {untyped(collector)}, .server = collector};
  }
  const auto server =
    spawn_server(in.system, options_of_server(what, in), connect, files_of(what, in));
  return {.members = {untyped(server)}, .server = server};
}

/// The stages between the workers of one process and the store.
struct worker_path {
  store_client store;
  std::vector<caf::actor> stages;       ///< In the order in which they were spawned.
  std::shared_ptr<reducer_tally> tally; ///< Null: there is no reducer.
  std::shared_ptr<program_notes> notes;
  bool keeps_on_device = false; ///< Gradients reach the first stage on their device.
};

/// Puts a stage in front of the path.
void put(const surroundings& in, stage_options how, std::unique_ptr<stage_decider> stage,
         worker_path& path) {
  path.store.values = spawn_stage(in.system, std::move(how), std::move(stage), path.store.values);
  path.stages.push_back(untyped(path.store.values));
}

/// Puts a stage of the program in front of the path.
void put_own(const surroundings& in, const stage::of_program& own, const std::string& name,
             worker_path& path) {
  const user_call here{{"stage", name}};
  stage_options how{.name = name, .notes = path.notes, .is_program = true};
  if (!own.actor)
    return put(in, std::move(how), own.make(), path);
  path.store.values = spawn_raw_stage(in.system, std::move(how), own.actor->make, path.store.values,
                                      in.simulated != nullptr);
  path.stages.push_back(untyped(path.store.values));
}

/// Spawns the stages in front of `store`, from the store to the workers.
worker_path build_path(const member_plan& what, const surroundings& in, store_client store) {
  const auto& job = what.job;
  const auto& graph = *in.graph;
  worker_path path{std::move(store), {}, {}, std::make_shared<program_notes>(in.log)};
  // In bsp the server adds up each slot by itself. Other stages need gradients on the host.
  path.keeps_on_device = graph.has<reduce>() && !goes_by_clocks(job)
                         && std::ranges::all_of(graph.path, [](const stage& x) {
                              return x.get<reduce>() || x.get<compress>();
                            });
  for (const auto& part : graph.path | std::views::reverse) {
    const stage_options how{part.name(), path.notes};
    if (part.get<compress>() && graph.compression && !job.gossip) // Peers pack for each other.
      put(in, how, make_compress_stage(job, *graph.compression), path);
    if (const auto* const sum = part.get<reduce>()) {
      path.tally = std::make_shared<reducer_tally>(job.workers + job.backup_workers);
      put(in, {part.name(), path.notes, path.keeps_on_device && !in.simulated},
          make_reduce_stage(job, {sum->wait}, path.tally), path);
    }
    if (const auto* const wanted = part.get<faults>()) {
      // Incarnations differ between simulations, which must not.
      const auto own = in.simulated ? what.self().index : what.self().incarnation.value;
      put(in, how,
          make_fault_stage({wanted->lost, wanted->repeated, wanted->delay},
                           splitmix64_of(job.seed ^ own)),
          path);
    }
    if (const auto* const own = part.get<stage::of_program>())
      put_own(in, *own, part.name(), path);
  }
  return path;
}

/// Returns the time that --slow adds to the steps of a worker.
std::chrono::milliseconds slowness_of(const member_plan& what, const member_id& who) {
  const auto& slow = what.fields.slow_workers;
  const auto found = slow.find(who.index);
  return found == slow.end() ? 0ms : found->second;
}

/// Returns the room of a member's ports, and its links. Without ports it has no room.
lane_options lanes_of(const member_id& who, const std::string& node, const surroundings& in) {
  std::vector<channel_end> ends;
  for (auto& each : channels_of(*in.graph, who))
    ends.push_back(std::move(each.end));
  if (ends.empty() && who.role == role::worker)
    return {};
  const bool is_reached =
    std::ranges::any_of(ends, [](const channel_end& each) { return !each.sends; });
  auto lanes = in.lanes_of(who, is_reached);
  lanes.node = node;
  lanes.room = std::make_shared<port_room>(who, std::move(ends));
  return lanes;
}

/// Connects the ports of a program's object with the room of its member.
void bind(const member_ports& found, port_room& room) {
  for (std::size_t i = 0; i < found.joined.size(); ++i)
    room.bind(i, *found.joined[i]);
  for (auto* const each : found.pulls)
    room.bind_pulls(*each);
}

/// Returns the options of a member's part of a line.
line_part_options options_of_part(const member_plan& what, const surroundings& in,
                                  std::uint32_t part, const std::shared_ptr<program_notes>& notes) {
  const auto& planned = *in.graph->pipeline;
  return {.job = what.job,
          .tables = planned.tables[part],
          .part = part,
          .parts = planned.count(),
          .micros = planned.micro.count,
          .schedule = planned.micro.schedule,
          .worker = {planned.line_of(what.self())},
          .incarnation = what.self().incarnation.value,
          .whose = what.node,
          .notes = {notes.get(), in.graph->workers_name},
          .change = changes_of_part(*in.graph, what.self(), notes)};
}

/// Connects the ports of a part with the room of its member, whose ends have the order in which
/// take_pipeline() adds channels.
void bind(line_part& part, port_room& room) {
  std::size_t end = 0;
  if (auto* const above = part.above()) {
    room.bind(end++, above->from_above);
    room.bind(end++, above->to_above);
  }
  if (auto* const below = part.below()) {
    room.bind(end++, below->to_below);
    room.bind(end++, below->from_below);
  }
}

/// Returns the times of a part's computations in virtual time: those of a line last as long as a
/// worker's step.
std::function<std::chrono::nanoseconds()> times_of_part(const planned_pipeline& planned,
                                                        const surroundings& in,
                                                        std::chrono::milliseconds longer) {
  if (!in.simulated)
    return {};
  const auto own = 2 * planned.micro.count; // Computations of a part for a batch.
  return [step = in.simulated->step_times({}), extra = std::chrono::nanoseconds{longer} / own,
          all = own * planned.count()] { return step() / all + extra; };
}

/// Has the first part of a line compute the gradients of its worker.
void compute_by_line(const member_plan& what, const surroundings& in,
                     const std::shared_ptr<program_notes>& notes, worker_options& how) {
  const auto& planned = *in.graph->pipeline;
  how.tables = planned.tables.front();
  line_gradient_options first;
  // Keeps the notes, as a part that is within a call outlives its worker.
  first.make = [options = options_of_part(what, in, 0, notes), make = planned.parts.front().make,
                notes](line_shell& shell, port_room& room) {
    auto made = std::make_unique<line_part>(options, make, shell);
    bind(*made, room);
    return made;
  };
  first.ports = how.ports.room;
  first.slowness = times_of_part(planned, in, slowness_of(what, what.self()));
  first.log = in.log;
  if (in.simulated)
    how.slowness = {}; // It is that of the computations.
  how.gradients = [first](caf::actor_system& system, gradient_thread where) {
    return spawn_line_gradient_actor(system, first, where);
  };
}

/// Spawns a later part of a line.
played play_part(const member_plan& what, const surroundings& in, std::uint32_t part) {
  const auto& planned = *in.graph->pipeline;
  const auto path = build_path(what, in, spawn_client(what, in));
  played made{.path = {untyped(path.store.values)}};
  made.path.insert(made.path.end(), path.stages.begin(), path.stages.end());
  own_actor_options how{.self = what.self(), .job = what.job, .host = machine_name()};
  how.ports = lanes_of(what.self(), in.graph->workers_name, in);
  how.notes = path.notes;
  auto options = options_of_part(what, in, part, path.notes);
  how.make = [options = std::move(options), make = planned.parts[part].make,
              index = planned.line_of(what.self()) * planned.count() + part,
              count = planned.lines * planned.count()](port_room& room) {
    auto own = std::make_unique<line_actor>(options, make);
    own->put({.index = index, .count = count, .seed = options.job.seed, .notes = options.notes});
    bind(own->part(), room);
    return own;
  };
  how.works = in.works;
  how.traffic = in.traffic;
  how.slowness = times_of_part(planned, in, {});
  how.own_thread = !in.simulated;
  made.members.push_back(
    untyped(spawn_own_actor(in.system, std::move(how), path.store, in.connector_of(what.self()))));
  return made;
}

played play_actor(const member_plan& what, const surroundings& in) {
  assert(in.graph != nullptr);
  const auto& graph = *in.graph;
  if (graph.pipeline)
    if (const auto part = graph.pipeline->part_of(what.self()))
      return play_part(what, in, *part);
  const auto& node = node_of_actor(graph, what.self().index);
  played made;
  store_client store;
  if (node.has_store) {
    store = spawn_client(what, in);
    made.path.push_back(untyped(store.values));
  }
  own_actor_options how{.self = what.self(), .job = what.job, .host = machine_name()};
  how.ports = lanes_of(what.self(), node.name, in);
  how.notes = std::make_shared<program_notes>(in.log);
  how.make = [&graph, index = what.self().index, notes = how.notes](port_room& room) {
    auto [own, ports] = make_actor(graph, index, notes.get());
    bind(ports, room);
    return std::move(own);
  };
  how.works = in.works;
  how.own_thread = !in.simulated;
  made.members.push_back(untyped(
    spawn_own_actor(in.system, std::move(how), std::move(store), in.connector_of(what.self()))));
  return made;
}

/// Spawns the peer of a worker. `lanes`: gets the address at which others reach it. `moved`: gets
/// the counts of its lanes.
store_client spawn_peer_of(const member_plan& what, const surroundings& in, lane_options& lanes,
                           std::function<request_traffic()>& moved) {
  const auto& peers = *in.graph->peers;
  auto carried = in.lanes_of(what.self(), true);
  lanes.address = carried.address;
  carried.room =
    std::make_shared<port_room>(what.self(), ends_of_peer(peers.graph, what.self().index));
  moved = [room = carried.room] {
    request_traffic all;
    const auto counted = room->counters("");
    for (std::size_t end = 0; end < counted.size(); ++end)
      (room->ends()[end].sends ? all.sent_bytes : all.received_bytes) += counted[end].bytes;
    return all;
  };
  peer_options how{.self = what.self(),
                   .job = what.job,
                   .how = peers.how,
                   .neighbours = peers.graph.neighbours_of[what.self().index]};
  if (in.graph->compression)
    how.packed_as = in.graph->compression->pulls;
  how.functions = in.graph->functions;
  how.own_thread = !in.simulated;
  how.log = in.log;
  return spawn_peer(in.system, std::move(how), std::move(carried));
}

played play_workers(const member_plan& what, const surroundings& in) {
  assert(in.graph != nullptr);
  lane_options lanes;
  std::function<request_traffic()> moved;
  auto store = what.job.gossip ? spawn_peer_of(what, in, lanes, moved) : spawn_client(what, in);
  played made{.path = {untyped(store.values)}};
  const auto path = build_path(what, in, std::move(store));
  made.path.insert(made.path.end(), path.stages.begin(), path.stages.end());
  for (const auto& who : what.members) {
    const bool is_first = who == what.self();
    auto how = options_of_worker(what, who, in);
    how.keep_on_device = path.keeps_on_device;
    how.moved = moved;
    if (is_first)
      how.notes = path.notes;
    if (path.tally)
      how.reduced = [tally = path.tally, index = who.index, is_first](worker_counters& counters) {
        count(*tally, index, is_first, counters);
      };
    how.ports = what.job.gossip ? lanes : lanes_of(who, in.graph->workers_name, in);
    const auto take = [room = how.ports.room](const member_ports& found) { bind(found, *room); };
    trainer_factory make; // Stays empty for a line, which has parts.
    if (in.graph->pipeline)
      compute_by_line(what, in, path.notes, how);
    else
      make = trainer_of(*in.graph, what.job, who.index, path.notes, take);
    made.members.push_back(untyped(
      spawn_worker(in.system, std::move(how), std::move(make), path.store, in.connector_of(who))));
  }
  return made;
}

} // namespace

result<played> play(const member_plan& what, const surroundings& in) {
  switch (what.self().role) {
  case role::coordinator: return play_coordinator(what, in);
  case role::server: return play_server(what, in);
  case role::worker: return play_workers(what, in);
  case role::actor: return play_actor(what, in);
  case role::observer: break;
  }
  assert(false); // No launcher starts it.
  return {errc::invalid_argument, "no plan has a " + to_string(process_of(what.self()))};
}

coordinator_setup setup_of(const member_plan& what, const surroundings& in) {
  const auto& fields = what.fields;
  coordinator_setup setup{.job = what.job, .log = in.log, .works = in.works};
  setup.options.checkpoints = !what.checkpoints.empty();
  setup.options.checkpointing = fields.servers.checkpoints;
  setup.options.stragglers = straggler_rules(fields);
  setup.options.index = what.self().index;
  // Values of files are in a checkpoint, unless this process has them for its servers.
  setup.options.resume = what.resume || (any_from_file(what.job) && in.given.empty());
  if (!what.checkpoints.empty())
    setup.options.directory_mark = storage::directory_mark(what.checkpoints).value_or(0);
  setup.scrub_interval = fields.servers.scrub_interval;
  return setup;
}

server_options options_of_server(const member_plan& what, const surroundings& in) {
  server_options how{what.self(), fingerprint(what.job), in.address, in.to_replicas};
  how.apply_batch = what.fields.servers.apply_batch;
  how.verify_replicas = what.fields.servers.verify_replicas;
  how.record = recording_of(what.fields, in.waits);
  if (in.graph && in.graph->make_keeper)
    how.keeper = {in.graph->make_keeper, in.graph->store_name,
                  std::make_shared<program_notes>(in.log)};
  if (in.may_start_again)
    how.directory = what.checkpoints;
  how.functions = in.functions;
  how.given = in.given;
  how.log = in.log;
  how.waits = in.waits;
  how.works = in.works;
  if (in.simulated) {
    how.own_thread = false;
    how.boot_clock = in.simulated->clock();
  }
  return how;
}

worker_options options_of_worker(const member_plan& what, const member_id& who,
                                 const surroundings& in) {
  const auto& fields = what.fields;
  worker_options how{.self = who, .job = what.job, .host = machine_name()};
  how.step_planner.ahead_max = fields.workers.ahead;
  how.delta_pulls = fields.workers.delta_pulls;
  how.own_thread = !in.simulated;
  how.works = in.works;
  if (who == what.self()) {
    how.window_wait = in.window_wait;
    how.traffic = in.traffic;
  }
  const auto longer = slowness_of(what, who);
  if (in.simulated)
    how.slowness = in.simulated->step_times(longer);
  else if (longer > 0ms)
    how.slowness = [longer] { return longer; };
  return how;
}

checkpointer_options options_of_files(const member_plan& what) {
  const server_id server{what.self().role == role::server ? what.self().index : 0};
  return {what.checkpoints, server, what.fields.servers.checkpoints.keep};
}

send_limits limits_of(const member_plan& what) {
  send_limits limits;
  limits.memory_bytes = std::uint64_t{what.fields.workers.push_memory_mib} << 20;
  limits.key_cache = what.fields.key_cache;
  return limits_of(what.job, limits);
}

store_client spawn_client(const member_plan& what, const surroundings& in) {
  if (in.shared)
    return {spawn_hogwild(in.system, in.shared)};
  const auto router = spawn_router(in.system, what.job, in.to_servers, routing_of(what.fields));
  return {router, router};
}

} // namespace troupe
