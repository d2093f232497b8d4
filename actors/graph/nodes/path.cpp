#include "actors/graph/nodes/path.hpp"

#include "actors/protocol/worker/stage.hpp"
#include "base/exception_text.hpp"

#include <stdexcept>

namespace troupe {

stage::stage(reduce how) : stage("reducer", how) {}
stage::stage(compress how) : stage("codec", std::move(how)) {}
stage::stage(faults how) : stage("faults", how) {}
stage::stage(std::string name, kind what) : name_(std::move(name)), what_(std::move(what)) {}
stage::stage(const stage&) = default;
stage::stage(stage&&) noexcept = default;
stage& stage::operator=(const stage&) = default;
stage& stage::operator=(stage&&) noexcept = default;
stage::~stage() = default;

stage map_push(std::string name, push_function change) {
  return {std::move(name), stage::of_trainer{std::move(change)}};
}

stage own_stage(std::string name, traits promises,
                std::function<std::unique_ptr<stage_decider>()> make) {
  if (make)
    make = [title = "stage '" + name + "'", make = std::move(make)] {
      auto made = titled(title, make);
      if (!made)
        throw std::runtime_error{"the maker of " + title + " made no stage"};
      return made;
    };
  return {std::move(name), stage::of_program{promises, std::move(make), {}}};
}

} // namespace troupe
