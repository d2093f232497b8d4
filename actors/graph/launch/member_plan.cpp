#include "actors/graph/launch/member_plan.hpp"

#include "actors/graph/worker_groups.hpp"

#include "fmt/format.h"

namespace troupe {

member_plan member_plans::of(const member_id& process) const {
  const auto& own = fields.at(process.role);
  const auto* const node = node_of(nodes, process_of(process));
  auto name = node == nullptr ? "" : fmt::format("{}:{}", node->node, process.index - node->first);
  if (const auto found = names.find(to_string(process_of(process))); found != names.end())
    name = found->second;
  return {.members = members_of(own, process),
          .node = std::move(name),
          .job = job,
          .fields = own,
          .checkpoints = checkpoints,
          .resume = resume};
}

member_plans member_plans_of(const plan& what, const field_table& table) {
  member_plans made{.job = what.job,
                    .checkpoints = what.options.checkpoint_directory.value_or(""),
                    .resume = what.options.resume || what.options.import_file,
                    .nodes = node_roles_of(what),
                    .names = names_in_options(what)};
  for (const role reader : started_roles())
    made.fields.emplace(reader, carried_to(reader, what.options, table));
  return made;
}

} // namespace troupe
