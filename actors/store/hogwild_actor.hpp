// hogwild: a kv whose values are shared with other kvs of the process and written without locks
// (Recht, Re, Wright, Niu 2011). One for each worker thread, all in front of one table memory.
#pragma once

#include "actors/kv.hpp"

#include "caf/actor_system.hpp"

#include <memory>
#include <vector>

namespace troupe {

/// Values and optimiser state that threads share. Reads and writes are relaxed atomics; an update may
/// overwrite another's, and no version, mark or clock exists.
class shared_tables {
public:
  /// Filled by the tables' initialisers.
  explicit shared_tables(const job_spec& job);

  /// Takes the optimiser step of each piece. Errors: non_finite (values may have changed), shape_mismatch.
  result<void> apply(const update& what);
  /// Copies of the ranges, each element read once.
  result<std::vector<piece>> read(const std::vector<range>& ranges) const;

  const job_spec& job() const { return job_; }

private:
  struct table;
  job_spec job_;
  std::vector<std::shared_ptr<table>> tables_;
  std::shared_ptr<buffer_pool> pool_;
};

/// A kv of its own thread in front of `tables`; spawn one for each worker. receipt::duplicate is
/// always false: a repeated push is applied again.
kv spawn_hogwild(caf::actor_system& system, std::shared_ptr<shared_tables> tables);

} // namespace troupe
