// Lowers a pipeline: its lines become workers, actors and channels of a plan.
#pragma once

#include "actors/graph/graph.hpp"
#include "base/error.hpp"
#include "serialization/ids.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

struct plan;

/// A pipeline, as its lines run. Part 0 of a line is a worker; the later parts are actors.
struct planned_pipeline {
  std::vector<part_spec> parts;
  std::vector<std::vector<table_id>> tables; ///< Of each part, in the order of its spec.
  micro_batching micro;
  std::uint32_t lines = 0;
  std::uint32_t first = 0; ///< Index of the first actor that is a part.

  /// Returns the number of parts of a line.
  std::uint32_t count() const { return static_cast<std::uint32_t>(parts.size()); }
  /// Returns the part of a member; nullopt: it is none.
  std::optional<std::uint32_t> part_of(const member_id& who) const;
  /// Returns the line of a member that is a part.
  std::uint32_t line_of(const member_id& who) const;
  /// Returns the member that is process `index` of all lines: line x parts + part.
  member_id member_of(std::uint32_t index) const;
};

/// Takes the pipeline of a graph, if it has one, into a plan that has its nodes and channels.
/// Errors: invalid_argument (a store without servers; tables that are in no part, in two, or
/// unknown).
result<void> take_pipeline(const graph& described, plan& made);
/// Returns the names by which options call the processes of the pipeline, such as "line:2" for
/// "actor 1". Returns an empty map without a pipeline.
std::map<std::string, std::string> names_in_options(const plan& what);
/// Checks the pipeline against the tables, the path and the way to run. Errors: invalid_argument.
result<void> check_pipeline(const plan& what);

} // namespace troupe
