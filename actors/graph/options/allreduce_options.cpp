#include "actors/graph/options/allreduce_options.hpp"

#include <array>
#include <string>
#include <utility>

namespace troupe {

namespace {

struct misfit {
  const char* option;
  const char* why;
};

constexpr const char* no_servers = "has no servers";
constexpr const char* in_step = "has all workers wait for each other in every step";
constexpr const char* no_coordinator = "has no coordinator";
constexpr const char* one_host = "runs on one host so far";
constexpr const char* processes = "has a process for each worker";
constexpr const char* whole = "adds up whole gradients";

constexpr std::array misfits{
  misfit{"--servers", no_servers},
  misfit{"--replicas", no_servers},
  misfit{"--shards", no_servers},
  misfit{"--durability", no_servers},
  misfit{"--apply-batch", no_servers},
  misfit{"--delta-pulls", no_servers},
  misfit{"--reads", no_servers},
  misfit{"--push-memory", no_servers},
  misfit{"--no-key-cache", no_servers},
  misfit{"--record", no_servers},
  misfit{"--replay", no_servers},
  misfit{"--pull-ahead", in_step},
  misfit{"--staleness-lr", in_step},
  misfit{"--backup-workers", in_step},
  misfit{"--stragglers", in_step},
  misfit{"--straggler-time-scale", in_step},
  misfit{"--slow", in_step},
  misfit{"--coordinator-store", no_coordinator},
  misfit{"--standbys", no_coordinator},
  misfit{"--checkpoint-scrub", no_coordinator},
  misfit{"--listen", one_host},
  misfit{"--join", one_host},
  misfit{"--here", one_host},
  misfit{"--tls", one_host},
  misfit{"--compress", whole},
  misfit{"--compress-pulls", no_servers},
  misfit{"--workers-per-process", processes},
  misfit{"--reduce-wait", processes},
  misfit{"--threads", processes},
  misfit{"--simulate", processes},
};

} // namespace

result<void> validate_allreduce(const run_options& options) {
  if (!options.allreduce)
    return {};
  for (const auto& [option, why] : misfits)
    if (options.given.contains(option))
      return {errc::invalid_argument,
              std::string{"--sync allreduce "} + why + ": leave out " + option};
  for (const auto& plan : options.kills)
    if (plan.who.role != role::worker)
      return {errc::invalid_argument,
              "--sync allreduce has workers only: leave out --kill " + to_string(plan.who)};
  return {};
}

} // namespace troupe
