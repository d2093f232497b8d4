// Describes a program: tables on servers, workers in front of them, an evaluator of the result.
// program::run carries the description out, in one process or in many.
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

/// Makes the trainer of worker `worker`.
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
  /// Adds the workers. `samples`: samples of one pass over the training data. `make` is called on
  /// each worker's thread.
  workers_node workers(std::uint64_t samples, trainer_factory make);
  /// Adds workers that differ, such as workers with devices of their own.
  workers_node workers(std::uint64_t samples, numbered_trainer_factory make);
  /// Adds an evaluation after each pass. The launcher calls `make` once, on a separate thread, at
  /// the first evaluation.
  evaluator_node evaluator(evaluator_factory make);

  /// Sets a text that identifies the training data, such as a checksum; at most 40 printable ASCII
  /// characters. It is part of the job's name, so workers with other data are refused, and so is a
  /// checkpoint of other data.
  void dataset_id(std::string text) { data_ = std::move(text); }

  /// Adds a line for the user at the start, such as a remark on the data.
  void remark(std::string line) { remarks_.push_back(std::move(line)); }
  /// Names a file from which the graph was made; the run must not overwrite it.
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
  /// Returns whether nodes of this graph may lead to `target`.
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
  std::string mistake_; ///< The first mistake that no later call can correct.
};

} // namespace troupe
