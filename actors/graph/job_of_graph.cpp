#include "actors/graph/job_of_graph.hpp"

namespace troupe {

job_spec make_job(const std::string& program, const graph& described, const run_options& options) {
  job_spec job;
  job.name = described.data().empty() ? program : program + " on " + described.data();
  job.seed = options.seed;
  job.partitions = options.partitions;
  // hogwild has one memory, whatever the number of servers.
  const bool is_shared = options.sync.mode == consistency_mode::hogwild;
  job.servers = is_shared ? 1 : options.servers;
  job.replicas = options.replicas;
  job.chains = options.chains;
  job.durability = options.durability;
  job.workers = options.workers;
  job.backup_workers = options.backup_workers;
  job.samples = described.samples();
  job.batch_samples = options.batch_samples;
  job.passes = options.passes;
  job.tables = described.tables();
  return job;
}

} // namespace troupe
