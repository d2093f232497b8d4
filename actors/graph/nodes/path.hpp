// Declares the stages that a program can put on the path from its workers to a store.
#pragma once

#include "actors/training/trainer.hpp"
#include "serialization/encoding.hpp"
#include "serialization/ids.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

class stage_decider;       // actors/protocol/worker/stage.hpp
struct raw_stage_function; // actors/graph/nodes/raw_stage.hpp

/// A push, for a push function.
struct push_info {
  batch_id batch;
  std::uint64_t epoch = 0;
  std::uint64_t seed = 0; ///< For randomness: a function of the job's seed, batch and stage name.
  /// The number of samples of the batch.
  std::size_t samples = 0;
  /// One list for each table: the keys of the rows of a sparse table, in ascending order. Empty for
  /// a dense table.
  std::span<const std::span<const std::uint64_t>> keys = {};
  /// Takes counts and log lines of the stage. A batch that is computed again counts again.
  node_notes notes = {};
};

/// Changes a gradient in place, f32[] for each table. Must be a function of its arguments alone: a
/// batch may be computed twice, and a replay computes it again. May throw: the job then stops with
/// the text. A gradient with a value that is not finite changes no values.
using push_function = std::function<void(const push_info&, mutable_tensors)>;

/// Adds up the gradients of the workers of a process, so that the store gets one push for all.
struct reduce {
  std::chrono::milliseconds wait{100}; ///< Time that a sum waits for more workers, at most 5 s.
};

/// Sends gradients, and the values of pulls, in fewer bytes.
struct compress {
  std::map<std::string, compression> pushes = {}; ///< By table; "": all other tables.
  encoding pulls = encoding::f32;                 ///< At most int8.
};

/// Loses, repeats and delays requests on purpose, for tests of a program: each batch must count
/// exactly once nevertheless.
struct faults {
  double lost = 0;     ///< Share of the pushes that never reach the store, below 1.
  double repeated = 0; ///< Share of the applied pushes whose receipt is lost: they come again.
  std::chrono::milliseconds delay{0}; ///< Time for which each request is held, at most 5 s.
};

/// The promises of a program about a stage of its own.
struct traits {
  /// It forwards each request at once, as a function of that request alone, and answers likewise.
  /// Otherwise a run with it cannot be recorded: a replay passes its requests through the stage.
  bool pure = false;
  /// Reads push_request::others. Otherwise the stage must stand before a reducer.
  bool takes_sums = false;
};

/// One part of a path: a value that can be copied. Each process of workers gets its own.
class stage {
public:
  /// Runs on the trainer's thread, before the request exists.
  struct of_trainer {
    push_function change;
  };
  /// A state machine or an actor of the program.
  struct of_program {
    traits promises;
    std::function<std::unique_ptr<stage_decider>()> make;
    /// The actor of raw_stage(), in place of `make`.
    std::shared_ptr<const raw_stage_function> actor = {};
  };
  using kind = std::variant<of_trainer, of_program, reduce, compress, faults>;

  stage(reduce how);
  stage(compress how);
  stage(faults how);
  stage(std::string name, kind what);
  // These are not inline, so that programs compile fast.
  stage(const stage&);
  stage(stage&&) noexcept;
  stage& operator=(const stage&);
  stage& operator=(stage&&) noexcept;
  ~stage();

  const std::string& name() const { return name_; }
  const kind& what() const { return what_; }
  template <class Kind>
  const Kind* get() const {
    return std::get_if<Kind>(&what_);
  }

private:
  std::string name_;
  kind what_;
};

/// Returns a stage that changes each gradient on the trainer's thread, without a hop between
/// actors. It must stand before all stages of other kinds. `name`: as of a node (graph::add).
stage map_push(std::string name, push_function change);

/// Returns a stage that a stage_decider of the program runs. `make` is called in each process of
/// workers, once for each of its starts: the state does not outlive the process.
stage own_stage(std::string name, traits promises,
                std::function<std::unique_ptr<stage_decider>()> make);

// raw_stage(), a stage that is a CAF actor, is declared in actors/graph/nodes/raw_stage.hpp.

/// Stages in order, such as those of the command line (run_options::stages).
using stage_list = std::vector<stage>;

} // namespace troupe
