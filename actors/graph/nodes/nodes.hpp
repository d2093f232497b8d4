// Declares the nodes of a graph. A store has the tables and answers requests; a source asks it. The
// fields of a node are those that the command line can set (run_options::store and the like).
#pragma once

#include "actors/graph/nodes/actors.hpp"
#include "actors/graph/nodes/neighbours.hpp"
#include "actors/protocol/gossip/mixing.hpp"
#include "actors/protocol/pipeline/micro_order.hpp"
#include "actors/protocol/session/supervision.hpp"
#include "actors/protocol/coordinator/checkpoint_options.hpp"
#include "actors/protocol/coordinator/straggler_measure.hpp"
#include "actors/protocol/worker/read_target.hpp"
#include "actors/training/keeper.hpp"
#include "actors/training/local_steps.hpp"
#include "actors/training/part.hpp"
#include "actors/training/trainer.hpp"
#include "serialization/job.hpp"

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace troupe {

// -- stores --

/// Server processes, which hold the shards of the tables and their replicas.
struct servers {
  std::vector<table_spec> tables = {};
  std::uint32_t count = 2;    ///< Servers at the start of the job, 1 .. 256.
  std::uint32_t replicas = 1; ///< Servers that hold each shard; at most `count`, and 16.
  std::uint32_t shards = 0;   ///< Parts of the tables that are placed; 0: one for each server.
  durability_mode durability = durability_mode::memory;
  std::size_t apply_batch = 1; ///< Waiting pushes that a server applies together, 1 .. 1024.
  read_target reads = read_target::head; ///< The replicas that answer pulls.
  /// Versions after which the replicas of a shard compare their values; 0: never.
  std::uint64_t verify_replicas = 0;
  checkpoint_options checkpoints = {};
  std::chrono::milliseconds scrub_interval{600'000}; ///< 0: checkpoints are not read again.
  supervision on_death = {};
};

/// The memory of one process, to which all workers write in place (hogwild). A batch counts at
/// least once, and concurrent writes to an element may lose one of them.
struct shared_memory {
  std::vector<table_spec> tables = {};
};

/// Each worker process holds all values, and the workers add up their gradients (bsp).
struct all_reduce {
  std::vector<table_spec> tables = {};
  checkpoint_options checkpoints = {};
};

/// One server process, whose values a keeper of the program has. Each batch counts exactly once,
/// also after a death: the keeper's state and the batches that it has are one checkpoint part.
struct own_store {
  std::vector<table_spec> tables = {}; ///< Workers pull and push these: asp, without optimisers.
  /// The keeper takes sums of gradients (update::batches). Otherwise a path with a reducer is
  /// refused.
  bool takes_sums = false;
  keeper_factory make = {}; ///< Called in the server's process: load data there.
  checkpoint_options checkpoints = {};
  supervision on_death = {};
};

/// A copy of the values in each worker, called a peer, which mixes it with those of its neighbours.
/// A batch counts exactly once, except that those of a peer that dies count partly.
struct gossip {
  std::vector<table_spec> tables = {}; ///< Dense. Each peer takes the steps of its own batches.
  neighbours with = neighbours::ring();
  mixing how = mixing::pairwise;
  checkpoint_options checkpoints = {}; ///< A checkpoint has the mean of all peers.
  supervision on_death = {};           ///< Of the collector, which makes that mean.
};

/// The kinds of stores.
enum class store_kind : std::uint8_t { servers, shared_memory, all_reduce, own_store, gossip };

/// A store of any kind, such as the one that the command line chose (run_options::store).
class any_store {
public:
  any_store(servers what) : fields_(std::move(what)) {}
  any_store(shared_memory what) : kind_(store_kind::shared_memory) {
    fields_.tables = std::move(what.tables);
  }
  any_store(all_reduce what) : kind_(store_kind::all_reduce) {
    fields_.tables = std::move(what.tables);
    fields_.checkpoints = what.checkpoints;
  }

  any_store(own_store what)
      : kind_(store_kind::own_store), keeper_(std::move(what.make)),
        keeper_takes_sums_(what.takes_sums) {
    fields_.tables = std::move(what.tables);
    fields_.checkpoints = what.checkpoints;
    fields_.count = 1;
    fields_.on_death = what.on_death;
  }

  any_store(gossip what)
      : kind_(store_kind::gossip), gossip_(std::pair{std::move(what.with), what.how}) {
    fields_.tables = std::move(what.tables);
    fields_.checkpoints = what.checkpoints;
    fields_.count = 1;
    fields_.on_death = what.on_death;
  }

  store_kind kind() const { return kind_; }
  std::vector<table_spec>& tables() { return fields_.tables; }
  const std::vector<table_spec>& tables() const { return fields_.tables; }
  /// Returns the fields of servers. Requires: the kind has servers.
  const servers& as_servers() const { return fields_; }
  /// Requires: kind() is not shared_memory.
  const checkpoint_options& checkpoints() const { return fields_.checkpoints; }

  /// Returns the maker of the keepers; empty: the values are in tables.
  const keeper_factory& keeper() const { return keeper_; }
  bool keeper_takes_sums() const { return keeper_takes_sums_; }

  /// Returns the neighbours and the mixing. Requires: kind() is gossip.
  const std::pair<neighbours, mixing>& as_gossip() const { return *gossip_; }

private:
  store_kind kind_ = store_kind::servers;
  servers fields_; ///< Other kinds have some of its fields.
  keeper_factory keeper_;
  bool keeper_takes_sums_ = false;
  std::optional<std::pair<neighbours, mixing>> gossip_;
};

// -- sources --

/// A class that is known only to those who made this object, for questions at run time.
class made_type {
public:
  made_type() = default;
  template <class Type>
  static made_type of() {
    made_type made;
    made.type_ = &typeid(Type);
    made.throw_pointer_ = [] { throw static_cast<Type*>(nullptr); };
    return made;
  }

  /// Returns whether the class is known.
  explicit operator bool() const { return type_ != nullptr; }
  /// Requires: it is known.
  const std::type_info& type() const { return *type_; }
  /// Returns whether it is `Base`, or derives from it. Requires: it is known.
  template <class Base>
  bool is() const {
    try { // Handlers are what C++ has to ask this at run time without an object.
      throw_pointer_();
    } catch (const Base*) {
      return true;
    } catch (...) {
    }
    return false;
  }

private:
  const std::type_info* type_ = nullptr;
  void (*throw_pointer_)() = nullptr;
};

/// Makes trainers. It is made of any callable that returns a unique_ptr of a trainer, and takes
/// either no argument or the number of the worker.
class trainer_maker {
public:
  trainer_maker() = default;
  template <class Make>
  requires std::invocable<Make&> || std::invocable<Make&, std::uint32_t> trainer_maker(Make make) {
    if constexpr (std::invocable<Make&, std::uint32_t>) {
      note<std::invoke_result_t<Make&, std::uint32_t>>();
      make_ = std::move(make);
    } else {
      note<std::invoke_result_t<Make&>>();
      make_ = [make = std::move(make)](std::uint32_t) { return make(); };
    }
  }

  explicit operator bool() const { return static_cast<bool>(make_); }
  /// Returns the class of its trainers; unknown if the callable returns a unique_ptr<trainer>.
  const made_type& makes() const { return makes_; }
  /// Returns the options of local_steps(), or null.
  const local_step_options* local() const { return local_ ? &*local_ : nullptr; }
  /// Returns the factory of one worker, of trainers without local steps.
  trainer_factory of(std::uint32_t worker) const {
    return [make = make_, worker] { return make(worker); };
  }

private:
  friend trainer_maker local_steps(trainer_maker make, const local_step_options& options);

  template <class Made>
  void note() {
    if constexpr (requires { typename Made::element_type; })
      if constexpr (!std::is_same_v<typename Made::element_type, trainer>)
        makes_ = made_type::of<typename Made::element_type>();
  }

  made_type makes_;
  std::function<std::unique_ptr<trainer>(std::uint32_t worker)> make_;
  std::optional<local_step_options> local_;
};

/// Makes each batch of these trainers an outer step of `options.steps` inner steps
/// (actors/training/local_steps.hpp). --batch counts the samples of all inner steps together: each
/// takes --batch / steps of them, rounded up. The optimiser of the tables then takes the outer
/// steps, such as nesterov, or sgd with a learning rate of 1. Errors of the graph: a sparse table;
/// a wrong optimiser or number of steps; more steps than samples; `keep` in a run with --record.
inline trainer_maker local_steps(trainer_maker make, const local_step_options& options) {
  make.local_ = options;
  return make;
}

/// Workers, which compute the gradients of the batches of all epochs.
struct workers {
  std::uint64_t samples = 0; ///< Samples of an epoch.
  trainer_maker make = {};   ///< Called on each worker's thread: load data there.
  std::uint32_t count = 4;   ///< Workers at the start of the job, 1 .. 1024.
  /// Workers that share a process, and its path to the store; 1 .. 32.
  std::uint32_t per_process = 1;
  std::uint32_t ahead = 0;   ///< asp: batches whose values are pulled ahead, at most 2.
  std::uint32_t backups = 0; ///< bsp: workers beyond `count`, and at most as many.
  bool delta_pulls = false;  ///< Blocks that did not change are not pulled again.
  /// MiB of a process's pushes that are not acknowledged; later pushes wait. 1 .. 1,048,576.
  std::uint32_t push_memory_mib = 1024;
  /// The strongest measure against a slow worker; nullopt: workers' speeds are not compared.
  std::optional<straggler_measure> stragglers = straggler_measure::evicted;
  double straggler_time_scale = 1.0; ///< Divides the times of the rules for stragglers; 1 .. 20.
  supervision on_death = {};
};

/// How the parts of a line compute a batch.
struct micro_batching {
  std::uint32_t count = 4; ///< Micro-batches of a batch, 1 .. 1000.
  /// Says which computation comes first. More ahead (0 .. 1000) keeps slow links busy, and needs
  /// more memory.
  micro_schedule schedule = {};
};

/// Lines of processes, in place of workers. A model is cut into parts, and each part has a process
/// of its own in each line. To the job a line is one worker, and its batches count exactly once.
struct pipeline {
  std::uint64_t samples = 0;         ///< Samples of an epoch.
  std::vector<part_spec> parts = {}; ///< From the data to the loss, 2 .. 64.
  std::uint32_t lines = 1;           ///< Lines of the job, 1 .. 1024.
  micro_batching micro = {};
  /// MiB of a process's pushes that are not acknowledged; later pushes wait. 1 .. 1,048,576.
  std::uint32_t push_memory_mib = 1024;
  /// The strongest measure against a slow line, of which a line gets a warning at most: its first
  /// part cannot tell which part is slow. Nullopt: their speeds are not compared.
  std::optional<straggler_measure> stragglers = straggler_measure::evicted;
  double straggler_time_scale = 1.0; ///< Divides the times of the rules for stragglers; 1 .. 20.
  supervision on_death = {};         ///< Of each process.
};

/// An evaluation of the parameters after each epoch, in the launcher. A graph may have several. The
/// first evaluator that was added gives the result of the run. Each other one gives measures with
/// the name of its node, such as "train.rmse".
struct evaluate {
  evaluator_factory make = {}; ///< Called once, on the thread of the evaluations.
};

template <class Node>
concept is_store = std::convertible_to<Node, any_store>;
template <class Node>
concept is_source = std::same_as<Node, workers> || std::same_as<Node, pipeline> || std::same_as<
  Node, evaluate> || is_actors<Node>;

} // namespace troupe
