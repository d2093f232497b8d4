#include "cli/plan/sizing.hpp"

#include "cli/plan/units.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <cmath>

namespace troupe::planning {

server_sizes sizes_of(const server_needs& x) {
  server_sizes made;
  const double network = x.network_per_second;
  made.push_bytes = x.parameter_bytes / x.compress;
  made.pull_bytes = x.parameter_bytes;
  const double of_worker = made.push_bytes + made.pull_bytes;
  // Each replica of a parameter receives each push; one answers the pull.
  const double of_servers = x.workers * (made.push_bytes * x.replicas + made.pull_bytes);
  made.worker_seconds = of_worker / network;
  made.server_seconds = of_servers / x.servers / network;
  made.talk_seconds = std::max(made.worker_seconds, made.server_seconds);
  made.worker_rate = of_worker / x.step_seconds;
  made.servers = std::max<double>(std::ceil(of_servers / network / x.step_seconds), x.replicas);
  made.ring_seconds = 2.0 * (x.workers - 1) / x.workers * x.parameter_bytes / network;
  const double kept = x.parameter_bytes * (1 + x.state_per_weight);
  const double share = kept * x.replicas / x.servers;
  made.read_seconds = x.replicas > 1 ? 0 : share / x.disk_per_second;
  made.refill_seconds =
    x.replicas > 1 ? share / network : x.workers * x.parameter_bytes / x.servers / network;
  made.disk_bytes = kept * x.checkpoints;
  return made;
}

namespace {

/// Limits of communication as a share of a step's time: below the first it costs little, below the
/// second it can be hidden.
constexpr double talk_is_little = 0.1, talk_can_be_hidden = 1.0;
/// An all-reduce that takes less than this share of the servers' time is worth being without
/// servers.
constexpr double is_worth_it = 0.9;
/// Limits of the slowest step over the others' steps: above the first, workers are uneven; above
/// the second, one is slow.
constexpr double workers_are_uneven = 1.05, one_is_slow = 1.25;

std::string consistency_for(const server_needs& needs, const server_sizes& sizes) {
  const double talk = sizes.talk_seconds / needs.step_seconds;
  if (needs.slowest >= one_is_slow)
    return fmt::format("asp: with bsp, and in the end with ssp, each step would take {:.2g} times "
                       "as long, as the slowest worker's",
                       needs.slowest);
  if (talk > talk_can_be_hidden)
    return fmt::format("asp, but communication takes {:.2g} times as long as a step, which no "
                       "choice hides: --compress, {}",
                       talk,
                       sizes.server_seconds > sizes.worker_seconds ? "or more servers"
                                                                   : "or a faster network");
  if (talk > talk_is_little)
    return fmt::format("asp with --pull-ahead 1: communication takes {:.0f} % of a step's time, "
                       "and runs beside the next step",
                       100 * talk);
  if (needs.slowest > workers_are_uneven)
    return "ssp:3: communication costs little, but workers are uneven; 3 steps of slack even that "
           "out";
  return fmt::format("bsp: communication takes {:.2g} % of a step's time, so waiting for everyone "
                     "costs little, and runs can be repeated bit by bit",
                     100 * talk);
}

} // namespace

server_advice advice_for(const server_needs& needs, const server_sizes& sizes) {
  server_advice made;
  made.consistency = consistency_for(needs, sizes);
  const bool waits_for_all = made.consistency.starts_with("bsp");
  if (waits_for_all && needs.workers > 1 && sizes.ring_seconds < is_worth_it * sizes.talk_seconds)
    made.strategy = fmt::format("all-reduce in a ring of the workers: {} against {} through {} "
                                "servers",
                                show_seconds(sizes.ring_seconds), show_seconds(sizes.talk_seconds),
                                needs.servers);
  else
    made.strategy =
      fmt::format("parameter server: {}",
                  waits_for_all ? "about as fast as an all-reduce, and survives the loss of workers"
                                : "an all-reduce would wait for all workers each step");
  return made;
}

std::string sizing_text(const server_needs& x) {
  const auto sizes = sizes_of(x);
  const auto advice = advice_for(x, sizes);
  std::string text;
  const auto line = [&](std::string_view what, std::string_view value, const std::string& why) {
    text += fmt::format("  {:<26} {:>11}   {}\n", what, value, why);
  };
  text += fmt::format("parameter server: {} of parameters, {} worker{}, {} server{}, {} each, "
                      "steps of {}\n",
                      show_bytes(x.parameter_bytes), x.workers, x.workers == 1 ? "" : "s",
                      x.servers, x.servers == 1 ? "" : "s", show_bits(x.network_per_second),
                      show_seconds(x.step_seconds));
  line("communication of a step", show_seconds(sizes.talk_seconds),
       fmt::format("worker {} (push {}, pull {}), server {}", show_seconds(sizes.worker_seconds),
                   show_bytes(sizes.push_bytes), show_bytes(sizes.pull_bytes),
                   show_seconds(sizes.server_seconds)));
  line("bandwidth of a worker", show_bits(sizes.worker_rate),
       fmt::format("to push and pull in the time of a step; it has {}",
                   show_bits(x.network_per_second)));
  line(
    "servers", fmt::format("{:.0f}", sizes.servers),
    fmt::format("answer {} workers in the time of a step; a server's load is O(workers / servers)",
                x.workers));
  line("recovery of a server", show_seconds(sizes.read_seconds + sizes.refill_seconds),
       x.replicas > 1
         ? fmt::format("copied from other replicas, while those answer")
         : fmt::format("read its share {}, send values to all workers {}",
                       show_seconds(sizes.read_seconds), show_seconds(sizes.refill_seconds)));
  line("disk", show_bytes(sizes.disk_bytes),
       fmt::format("{} checkpoints of {}", x.checkpoints,
                   show_bytes(sizes.disk_bytes / x.checkpoints)));
  text += "  strategy     " + advice.strategy + "\n";
  return text + "  consistency  " + advice.consistency + "\n";
}

} // namespace troupe::planning
