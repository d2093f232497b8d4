#include "examples/03_count_batches/raw_stages.hpp"

#include "actors/graph/nodes/raw_stage.hpp"
#include "examples/03_count_batches/stages.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

namespace count_batches {

namespace {

using troupe::kv;
using troupe::reply;
using troupe::request;

/// Halves the gradients, and counts pushes.
kv::behavior_type run_halves(kv::pointer self, const kv& next, const troupe::stage_notes& notes) {
  return {
    [=](request& what) -> caf::result<reply> {
      if (what.push) {
        notes.count("pushes");
        halve(*what.push);
      }
      return self->delegate(next, std::move(what));
    },
  };
}

/// Passes requests on, and makes one kind of mistake at the 20th push.
kv::behavior_type run_mistaken(kv::pointer self, const kv& next, const std::string& kind) {
  return {
    [=, pushes = 0](request& what) mutable -> caf::result<reply> {
      if (what.push && ++pushes == 20) {
        if (kind == "raw-double")
          self->request(next, std::chrono::minutes{1}, what).then([](const reply&) {});
        if (kind == "raw-throw")
          throw std::runtime_error{"an actor that fails on purpose"};
        if (kind == "raw-quit")
          self->quit();
      }
      return self->delegate(next, std::move(what));
    },
  };
}

} // namespace

std::vector<std::string> raw_mistakes() { return {"raw-double", "raw-throw", "raw-quit"}; }

troupe::stage_list raw_stages_of(const std::string& graph) {
  if (graph == "raw")
    return {troupe::raw_stage(
      "halves", {}, [](caf::actor_system& system, const kv& next, const troupe::stage_notes& to) {
        return system.spawn(run_halves, next, to);
      })};
  const auto wrong = raw_mistakes();
  if (std::ranges::find(wrong, graph) == wrong.end())
    return {};
  return {troupe::raw_stage(
    graph.substr(4), {},
    [graph](caf::actor_system& system, const kv& next, const troupe::stage_notes&) {
      return system.spawn(run_mistaken, next, graph);
    })};
}

} // namespace count_batches
