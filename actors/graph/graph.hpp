// What a program consists of: tables on servers, workers in front of them, a judge of the result.
// A description only; program::run brings it to life, in one process or in many.
#pragma once

#include "actors/roles/worker/worker_actor.hpp"
#include "actors/training/trainer.hpp"
#include "serialization/job.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// Makes the trainer of the worker with that number.
using numbered_trainer_factory = std::function<std::unique_ptr<trainer>(std::uint32_t worker)>;

/// ~~~
/// troupe::graph g;
/// auto parameters = g.servers(tables);
/// g.workers(60'000, make_trainer).into(parameters);
/// g.evaluator(make_evaluator).of(parameters);
/// ~~~
///
/// Wiring mistakes (no servers, workers that lead nowhere, a node of another graph) are errors of
/// validate(), never hangs.
class graph {
public:
  /// Stands for the kv in front of all servers.
  class servers_node {
    friend class graph;
    const graph* owner_ = nullptr;
  };

  class workers_node {
  public:
    void into(const servers_node& target);

  private:
    friend class graph;
    explicit workers_node(graph& owner) : owner_(owner) {}
    graph& owner_;
  };

  class evaluator_node {
  public:
    void of(const servers_node& target);

  private:
    friend class graph;
    explicit evaluator_node(graph& owner) : owner_(owner) {}
    graph& owner_;
  };

  servers_node servers(std::vector<table_spec> tables);
  /// `samples`: samples of one pass over the training data. `make` is called on each worker's
  /// thread.
  workers_node workers(std::uint64_t samples, trainer_factory make);
  /// The same for workers that are not alike, such as those that have devices of their own.
  workers_node workers(std::uint64_t samples, numbered_trainer_factory make);
  /// `make` is called in the launcher, on a thread of its own, when it first evaluates: after each
  /// pass.
  evaluator_node evaluator(evaluator_factory make);

  /// What tells the training data from others, such as a checksum; at most 40 printable ASCII
  /// characters. Part of the job's name: workers that bring other data are refused, and so is a
  /// checkpoint of other data.
  void dataset_id(std::string text) { data_ = std::move(text); }

  /// Adds a line that the user is to see at the start, such as what was read.
  void remark(std::string line) { remarks_.push_back(std::move(line)); }
  /// Names a file that the graph was made from, which the run must not overwrite.
  void reads(std::filesystem::path file) { files_.push_back(std::move(file)); }

  result<void> validate() const;

  const std::vector<table_spec>& tables() const { return tables_; }
  std::uint64_t samples() const { return samples_; }
  const std::string& data() const { return data_; }
  const std::vector<std::string>& remarks() const { return remarks_; }
  const std::vector<std::filesystem::path>& files() const { return files_; }
  trainer_factory make_trainer(std::uint32_t worker) const;
  const evaluator_factory& make_evaluator() const { return make_evaluator_; } ///< May be empty.

private:
  /// Whether the nodes of this graph may lead there.
  bool owns(const servers_node& target);
  void note_mistake(const std::string& what);

  std::vector<table_spec> tables_;
  std::uint64_t samples_ = 0;
  std::string data_;
  std::vector<std::string> remarks_;
  std::vector<std::filesystem::path> files_;
  numbered_trainer_factory make_trainer_;
  evaluator_factory make_evaluator_;
  bool workers_wired_ = false;
  bool evaluator_wired_ = false;
  std::string mistake_; ///< The first one that no later call can mend.
};

} // namespace troupe
