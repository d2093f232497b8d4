// Lowers a graph to a plan: the job, its nodes and its path. Processes, threads, simulations and
// replays run the same plan.
#pragma once

#include "actors/graph/channels.hpp"
#include "actors/graph/graph.hpp"
#include "actors/graph/nodes/store_rules.hpp"
#include "actors/graph/options/options.hpp"
#include "actors/graph/pipelines.hpp"
#include "actors/protocol/gossip/neighbour_graph.hpp"
#include "actors/tables/codec.hpp"
#include "actors/tables/initial_values.hpp"
#include "actors/tables/server_functions.hpp"
#include "actors/training/evaluators.hpp"
#include "base/error.hpp"
#include "base/notice.hpp"
#include "serialization/job.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The peers of a gossip store.
struct planned_gossip {
  neighbours with; ///< As the program names it.
  mixing how = mixing::pairwise;
  neighbour_graph graph; ///< Of all workers.
};

/// A value, equal in every process that lowers the same graph with the same command line.
struct plan {
  std::string program;
  /// The options of the command line, with `servers`, `workers`, `reducer`, `codec` and `sync` of
  /// the graph in place of its own.
  run_options options;
  job_spec job;
  server_functions functions; ///< Of the program.
  /// The file that each table begins with. The job has a checksum in its place.
  std::vector<std::optional<values_file>> values;
  given_values given; ///< Their values; empty in processes that the launcher starts.
  const store_rules* store = &rules_of_servers;
  std::string store_name, workers_name;
  stage_list path;                          ///< From the workers to the store.
  std::vector<named_evaluator> evaluators;  ///< In the order of the graph.
  std::vector<planned_actors> actor_nodes;  ///< In the order of the graph.
  std::vector<planned_channel> channels;    ///< In the order of the graph.
  keeper_factory make_keeper;               ///< Of an own store; else empty.
  bool keeper_takes_sums = false;           ///< Of an own store.
  std::optional<planned_gossip> peers;      ///< Set for a gossip store.
  std::optional<planned_pipeline> pipeline; ///< Set for a pipeline.
  std::optional<codec_options> compression; ///< Of the codec in `path`; nullopt: f32 is sent.
  std::vector<notice> notices;              ///< For the start of the run.
  std::vector<std::string> files;           ///< Files that were read for the graph.
  /// Those of them whose checksum identifies the data; empty if the graph has a dataset_id().
  std::vector<std::string> data_files;

  const store_rules& rules() const { return *store; }
  /// Returns whether a stage of `path` is of this kind.
  template <class Kind>
  bool has() const {
    for (const auto& each : path)
      if (each.get<Kind>() != nullptr)
        return true;
    return false;
  }
};

/// Returns the nodes of a plan: first that of the workers, then the store, then those of actors.
node_roles node_roles_of(const plan& what);

/// Makes the plan. `functions`: those of the program. Errors: invalid_argument (wrong wiring, nodes
/// that contradict each other or the way to run, an option that has no effect on this graph, and a
/// function that the program lacks), in one line.
result<plan> lower(const std::string& program, const graph& described, const run_options& options,
                   const server_functions& functions = {});

/// Returns the factory of a worker's trainer, which takes the local steps of the graph, and whose
/// gradients pass the push functions of the path. `job`: of the launcher or of a record, which may
/// have another batch size than `what`. `notes`: takes the notes of both; null drops them.
/// `take`: takes the ports that the program's trainer has; not called if it has none. The factory
/// throws std::invalid_argument for wrong ports.
trainer_factory trainer_of(const plan& what, const job_spec& job, std::uint32_t worker,
                           std::shared_ptr<program_notes> notes = {}, ports_taker take = {});

/// Returns the push functions of the path for a member's part of a line; null: there are none.
/// `notes`: takes their notes; null drops them.
std::function<void(const batch&, mutable_tensors)>
changes_of_part(const plan& what, const member_id& who, std::shared_ptr<program_notes> notes);

/// Returns a text of several lines for people: the nodes, the path, and their promises.
std::string to_text(const plan& what);
/// Returns the graph in the language of graphviz.
std::string to_dot(const plan& what);

/// Returns the difference between the job of this process and that of its launcher, including the
/// data that it names; empty if there is none.
std::string graph_difference(const job_spec& theirs, const job_spec& mine);

/// Returns a line for the user on options of this host that the joined job overrules; empty if
/// there are none. `mine`: this host's job.
std::string overruled(const run_options& options, const job_spec& mine, const job_spec& theirs);

} // namespace troupe
