// Server processes, which hold the shards of the tables and their replicas.
#include "actors/graph/nodes/store_rules.hpp"
#include "actors/graph/plan.hpp"

#include "fmt/format.h"

#include <utility>

namespace troupe {

namespace of_servers {

static any_store make(std::vector<table_spec> tables, const servers& fields) {
  auto made = fields;
  made.tables = std::move(tables);
  return made;
}

static std::string text(const plan& what) {
  const auto& some = what.options.servers;
  auto text = fmt::format("servers x{}", some.count);
  if (some.replicas > 1)
    text += fmt::format(", {} replicas", some.replicas);
  if (some.durability == durability_mode::log)
    text += ", logs";
  return text;
}

static std::string lost_at_death(const plan& what) {
  if (what.options.servers.replicas > 1)
    return "nothing";
  return what.options.servers.durability == durability_mode::log
           ? "updates that no log has"
           : "updates since the newest checkpoint, which are computed again";
}

static void settle(const any_store& store, plan& made) {
  made.options.servers = store.as_servers();
  made.options.servers.tables.clear(); // They are in the job.
}

static void fill(plan& made) { made.job.servers = made.options.servers.count; }

static result<void> check(const plan& what) {
  for (const auto& table : what.job.tables)
    if (table.sync.traits().one_memory)
      return {errc::invalid_argument,
              fmt::format("{} is made of servers, and its table '{}' is {}: use "
                          "troupe::shared_memory",
                          what.store_name, table.name, to_string(table.sync))};
  return {};
}

} // namespace of_servers

const store_rules rules_of_servers{.kind = store_kind::servers,
                                   .make = of_servers::make,
                                   .has_servers = true,
                                   .text = of_servers::text,
                                   .lost_at_death = of_servers::lost_at_death,
                                   .settle = of_servers::settle,
                                   .fill = of_servers::fill,
                                   .check = of_servers::check};

} // namespace troupe
