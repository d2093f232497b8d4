#include "actors/graph/make_job.hpp"

#include "storage/job_difference.hpp"

#include "fmt/format.h"

#include <vector>

namespace troupe {

job_spec make_job(const std::string& program, const graph& described, const run_options& options) {
  job_spec job;
  job.name = described.data().empty() ? program : program + " on " + described.data();
  job.seed = options.seed;
  job.partitions = options.partitions;
  // hogwild has one memory for any number of servers. Without servers, each partition counts as one
  // server, which allows the largest tables.
  const bool is_shared = options.sync.mode == consistency_mode::hogwild;
  job.servers = is_shared ? 1 : options.allreduce ? options.partitions : options.servers;
  job.replicas = options.replicas;
  job.chains = options.shards;
  job.durability = options.durability;
  job.workers = options.workers;
  job.backup_workers = options.backup_workers;
  job.samples = described.samples();
  job.batch_samples = options.batch_samples;
  job.epochs = options.epochs;
  job.tables = described.tables();
  return job;
}

std::string graph_difference(const job_spec& theirs, const graph& described,
                             const run_options& options) {
  auto mine = make_job({}, described, options);
  if (theirs.name.ends_with(mine.name))
    mine.name = theirs.name; // Their name begins with the program's.
  else
    mine.name = theirs.name.substr(0, theirs.name.find(" on ")) + mine.name;
  if (fingerprint(mine) == fingerprint(theirs))
    return {};
  return "this worker's graph belongs to another " + storage::job_difference(theirs, mine);
}

std::string overruled(const run_options& options, const job_spec& mine, const job_spec& theirs) {
  std::vector<std::string> differing;
  const auto compare = [&](const char* name, const auto& here, const auto& there) {
    if (options.given.contains(name) && here != there)
      differing.push_back(fmt::format("{} {}", name, there));
  };
  compare("--epochs", mine.epochs, theirs.epochs);
  if (!mine.tables.empty() && !theirs.tables.empty()) {
    const auto& here = mine.tables.front();
    const auto& there = theirs.tables.front();
    compare("--sync", to_string(here.sync), to_string(there.sync));
    compare("--lr", here.optimizer.learning_rate, there.optimizer.learning_rate);
  }
  if (differing.empty())
    return "";
  return fmt::format("using the main host's {}; this host's value is ignored",
                     fmt::join(differing, ", "));
}

} // namespace troupe
