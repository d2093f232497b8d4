#include "actors/graph/nodes/raw_stage.hpp"

#include <memory>
#include <utility>

namespace troupe {

stage raw_stage(std::string name, traits promises, raw_stage_maker make) {
  stage::of_program what{promises, {}, {}};
  if (make)
    what.actor = std::make_shared<const raw_stage_function>(raw_stage_function{std::move(make)});
  return {std::move(name), std::move(what)};
}

} // namespace troupe
