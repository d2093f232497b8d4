#include "actors/graph/launch/take_fields.hpp"

#include "actors/graph/options/straggler_rules.hpp"

namespace troupe {

void take_fields(const run_options& fields, coordinator_setup& setup) {
  setup.options.checkpointing = fields.servers.checkpoints;
  setup.options.stragglers = straggler_rules(fields);
  setup.scrub_interval = fields.servers.scrub_interval;
}

void take_fields(const run_options& fields, server_options& how) {
  how.apply_batch = fields.servers.apply_batch;
  how.verify_replicas = fields.servers.verify_replicas;
}

} // namespace troupe
