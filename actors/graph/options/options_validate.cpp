// Checks which options fit together, and whether the files of a run's end can be written.
#include "actors/graph/options/options.hpp"
#include "actors/graph/options/straggler_rules.hpp"
#include "actors/protocol/coordinator/membership.hpp"
#include "actors/transport/streams/socket_address.hpp"
#include "base/system/links.hpp"
#include "base/system/output_file.hpp"
#include "storage/tensor_file.hpp"

#include "fmt/format.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <ranges>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace troupe {

namespace {

result<void> wrong(std::string text) { return {errc::invalid_argument, std::move(text)}; }

// Requires encryption on a network, unless an option explicitly allows plain text.
result<void> check_encryption(const run_options& options) {
  if (options.tls_directory && options.plaintext_on_network)
    return wrong("--tls and --allow-plaintext-on-network: choose one");
  if (options.tls_directory || options.plaintext_on_network)
    return {};
  for (const auto& [option, where] :
       {std::pair{"--listen", options.listen}, std::pair{"--join", options.join}})
    if (where && !is_loopback(*where))
      return wrong(fmt::format(
        "{} {} needs --tls DIR (troupe certs makes it), or --allow-plaintext-on-network "
        "where everyone on the network may read and change the job",
        option, to_string(*where)));
  return {};
}

/// Returns the full name of the file behind a path and its links. The file need not exist yet.
std::filesystem::path behind(const std::filesystem::path& path) {
  std::error_code none;
  const auto end = follow_links(path);
  return std::filesystem::weakly_canonical(end ? end->path : path, none);
}

/// Returns whether both names are one file, which need not exist yet.
bool is_same_file(const std::filesystem::path& one, const std::filesystem::path& other) {
  std::error_code none;
  if (is_written_through(one) && is_written_through(other)) // Such as a terminal.
    return false;
  return std::filesystem::equivalent(one, other, none) || behind(one) == behind(other);
}

/// Options that do not fit a way to run.
struct misfit {
  bool (*runs)(const run_options&);
  refused_options refused;
};

bool is_one_memory(const run_options& x) { return x.sync.traits().one_memory; }
bool is_one_process(const run_options& x) { return x.mode() != run_mode::processes; }
bool is_simulated(const run_options& x) { return x.mode() == run_mode::simulation; }
bool has_no_logs(const run_options& x) { return !x.needs_run_directory(); }
bool has_no_place(const run_options& x) {
  return x.mode() == run_mode::threads && !x.checkpoint_directory;
}
bool is_joined(const run_options& x) { return x.join.has_value(); }

constexpr std::array misfits{
  misfit{is_one_process, {"--no-key-cache", "has no links that bring keys"}},
  misfit{is_one_process, {"--push-memory", "sends no pushes that would need memory of their own"}},
  misfit{is_one_process, {"--kill --listen --join --here --ports", "is one process"}},
  misfit{is_one_process, {"--coordinator-store", "has no coordinator to lose"}},
  misfit{is_one_process, {"--tls", "has no links to encrypt"}},
  misfit{has_no_logs, {"--run-dir", "writes no logs"}},
  misfit{is_simulated,
         {"--checkpoint --checkpoint-every --checkpoint-keep --checkpoint-scrub "
          "--resume --import",
          "begins with the initial values and keeps no checkpoints"}},
  misfit{has_no_place,
         {"--checkpoint-every --checkpoint-keep --checkpoint-scrub",
          "keeps no checkpoints without --checkpoint DIR"}},
  misfit{is_joined,
         {"--listen --report --export --import --resume --coordinator-store --standbys",
          "takes part in a job that another host started"}},
};

/// Returns the option that chose a way to run. Hogwild has no other mode, so it comes first.
std::string way_of(const run_options& options) {
  if (const auto word = options.rules().sync_word; !word.empty())
    return "--sync " + std::string{word};
  if (options.join && !is_one_process(options))
    return "--join";
  return is_one_memory(options)  ? "--sync " + to_string(options.sync)
         : is_simulated(options) ? "--simulate"
                                 : "--threads";
}

/// Checks that none of some options, separated by spaces, was given.
result<void> check_absent(const run_options& options, const refused_options& refused) {
  for (const auto word : refused.options | std::views::split(' ')) {
    const std::string name{word.begin(), word.end()};
    if (options.given.contains(name))
      return wrong(fmt::format("{} {}: leave out {}", way_of(options), refused.why, name));
  }
  return {};
}

result<void> check_misfits(const run_options& options) {
  for (const auto& each : options.rules().refused)
    if (auto fine = check_absent(options, each); !fine)
      return fine;
  for (const auto& each : misfits)
    if (each.runs(options))
      if (auto fine = check_absent(options, each.refused); !fine)
        return fine;
  return {};
}

/// Checks the files and the places of a run against each other.
result<void> check_places(const run_options& options) {
  if (is_one_memory(options) && options.mode() != run_mode::threads)
    return wrong("--sync " + to_string(options.sync)
                 + " shares memory between threads: use --threads");
  if (options.standbys > 0 && !options.etcd)
    return wrong("--standbys needs --coordinator-store etcd://HOST:PORT, where they find the "
                 "state of the coordinator that they replace");
  if (options.listen && is_no_host(*options.listen))
    return wrong("--listen needs the address at which other hosts reach this one, not "
                 + options.listen->host);
  if (options.join && options.join->port == 0)
    return wrong("--join needs the port at which the main host listens, not 0");
  const bool serves = std::any_of(options.here.begin(), options.here.end(),
                                  [](const auto& x) { return traits_of(x.role).holds_values; });
  if (options.join && serves && !options.checkpoint_directory)
    return wrong("--join with a server needs --checkpoint DIR: the same directory as on the main "
                 "host, on a file system that both share");
  if (options.join && options.here.empty() && options.by_node.empty())
    return wrong("--join needs --here: say which servers and workers run on this host");
  if (options.resume && !options.checkpoint_directory && options.run_directory.empty())
    return wrong(is_one_process(options)
                   ? "--resume needs --checkpoint DIR, with checkpoints to continue from"
                   : "--resume needs --run-dir DIR or --checkpoint DIR to continue from");
  if (options.resume && options.import_file)
    return wrong("--resume and --import both say where to start: choose one");
  return {};
}

result<void> check_stragglers(const run_options& options) {
  const auto& workers = options.workers;
  if (workers.backups > 0 && !options.sync.traits().clock_updates)
    return wrong("--backup-workers needs --sync bsp: with --sync " + to_string(options.sync)
                 + " no update waits for all workers");
  if (workers.backups > workers.count)
    return wrong(fmt::format("--backup-workers must be at most --workers ({}), not {}",
                             workers.count, workers.backups));
  const auto possible = strongest_possible(options);
  if (!options.given.contains("--stragglers") || !workers.stragglers
      || *workers.stragglers <= possible)
    return {};
  return possible == straggler_measure::warned
           ? wrong("--sync " + to_string(options.sync)
                   + " would not notice that a batch is done twice: use --stragglers warn or off")
           : wrong(std::string{options.mode() == run_mode::threads ? "--threads" : "--simulate"}
                   + " cannot start a worker again: use --stragglers demote");
}

result<void> check_recording(const run_options& options) {
  if (options.replay_seconds && options.compare_file)
    return wrong("--until stops within the run, and --compare needs its end: leave one out");
  if (options.replay_directory && is_simulated(options))
    return wrong("--replay computes a record again, in its own order: leave out --simulate");
  if (!options.record_directory)
    return {};
  if (is_one_memory(options))
    return wrong("--sync " + to_string(options.sync)
                 + " applies in no order that could be recorded: leave out --record");
  if (options.resume || options.import_file)
    return wrong("--record begins with the initial values: leave out --resume and --import");
  return {};
}

result<void> check_compression(const run_options& options) {
  const std::string name = !options.codec.pushes.empty()          ? "--compress"
                           : options.codec.pulls != encoding::f32 ? "--compress-pulls"
                                                                  : "";
  if (name.empty())
    return {};
  if (is_one_memory(options))
    return wrong("--sync " + to_string(options.sync)
                 + " writes values in place and sends nothing: leave out " + name);
  if (options.record_directory)
    return wrong("--record knows the values that were pulled, not what a worker's compression made "
                 "of them: leave out "
                 + name);
  if (options.replay_directory)
    return wrong("--replay computes what was recorded, and that was not compressed: leave out "
                 + name);
  return {};
}

/// Returns the number of processes of a role that the job begins with.
std::uint32_t begun(const run_options& options, role which) {
  switch (which) {
  case role::coordinator: return options.standbys + 1;
  case role::server: return options.servers.count;
  case role::worker: return options.workers.count + options.workers.backups;
  case role::actor: return options.actors;
  case role::observer: break; // No option names it.
  }
  return 0;
}

/// Checks the processes that options name.
result<void> check_processes(const run_options& options) {
  for (auto one = options.here.begin(); one != options.here.end(); ++one) {
    const auto& row = traits_of(one->role);
    // A host that joins may bring more servers and workers than the job began with.
    const bool may_be_new = options.join && one->role != role::actor;
    const auto count = may_be_new ? row.members_max : begun(options, one->role);
    if (row.leads_job)
      return wrong("--here: the job has no second coordinator");
    if (count == 0)
      return wrong("--here: the job has no " + std::string{row.process} + "s");
    if (one->index >= count)
      return wrong(
        fmt::format("--here: the job has no {}, only 0 to {}", to_string(*one), count - 1));
    if (std::find(options.here.begin(), one, *one) != one)
      return wrong("--here: a process is listed twice");
  }
  if (!options.here.empty() && !options.listen && !options.join)
    return wrong("--here without --listen or --join: no host would start the other processes");
  for (const auto& [worker, unused] : options.slow_workers)
    if (worker >= begun(options, role::worker))
      return wrong(fmt::format("--slow: the job has no worker {}, only 0 to {}", worker,
                               begun(options, role::worker) - 1));
  for (const auto& [who, unused] : options.kills) {
    if (options.rules().has_ranks && who.role != role::worker)
      return wrong(way_of(options) + " has workers only: leave out --kill " + to_string(who));
    if (who.index < begun(options, who.role))
      continue;
    if (traits_of(who.role).leads_job)
      return wrong(fmt::format("--kill: the job has only coordinators 0 to {}", options.standbys));
    auto present =
      fmt::format("workers 0 to {}{} servers 0 to {}", begun(options, role::worker) - 1,
                  options.actors == 0 ? " and" : ",", options.servers.count - 1);
    if (options.actors > 0)
      present += fmt::format(" and actors 0 to {}", options.actors - 1);
    return wrong("--kill: the job has only " + present);
  }
  return {};
}

/// Checks the fields of nodes against the consistency and the way to run.
result<void> check_nodes(const run_options& options) {
  const auto& servers = options.servers;
  const auto& workers = options.workers;
  const auto word = std::string{options.rules().sync_word};
  const auto sync = "--sync " + (word.empty() ? to_string(options.sync) : word);
  const auto& mode = options.sync.traits();
  struct rule {
    bool broken;
    std::string text;
  };
  const rule rules[] = {
    {servers.replicas > servers.count,
     fmt::format("--replicas {} needs as many --servers, not {}", servers.replicas, servers.count)},
    {servers.reads == read_target::any && servers.replicas == 1,
     "--reads any spreads pulls over replicas: needs --replicas, or leave it out"},
    {servers.verify_replicas > 0 && servers.replicas == 1,
     "--verify-replicas compares replicas: needs --replicas, or leave it out"},
    {servers.reads == read_target::any && mode.bounded_lead,
     fmt::format("--sync {}", mode.name)
       + " has one server wait for the slowest worker: leave out --reads any"},
    {servers.apply_batch > 1 && mode.clock_updates,
     sync + " applies each clock's pushes together anyway: leave out --apply-batch"},
    {servers.apply_batch > 1 && mode.one_memory,
     sync + " applies no pushes together, as none waits: leave out --apply-batch"},
    {servers.durability == durability_mode::log && is_one_process(options),
     way_of(options) + " ends as a whole: leave out --durability"},
    {workers.delta_pulls && mode.one_memory,
     sync
       + " writes values in place, so none are known to be unchanged: leave out "
         "--delta-pulls"},
    {workers.ahead > 0 && mode.pulls_wait(),
     sync + " waits for other workers: leave out --pull-ahead"},
    {workers.per_process > 1 && mode.one_memory,
     sync
       + " has one memory for all workers and sends nothing: leave out "
         "--workers-per-process"},
    {workers.per_process > 1 && options.record_directory,
     "--record names the values that each gradient was computed from, which a sum of several does "
     "not say: leave out --workers-per-process"},
  };
  for (const auto& each : rules)
    if (each.broken)
      return wrong(each.text);
  return {};
}

} // namespace

result<void> validate_without_graph(const run_options& options) {
  for (auto* const check : {check_misfits, check_places, check_stragglers, check_recording,
                            check_compression, check_encryption})
    if (auto fine = check(options); !fine)
      return fine;
  return {};
}

result<void> validate(const run_options& options) {
  for (auto* const check : {validate_without_graph, check_nodes, check_processes})
    if (auto fine = check(options); !fine)
      return fine;
  return {};
}

result<void> check_outputs(const run_options& options, const std::vector<std::string>& inputs) {
  std::vector<std::pair<std::string, std::filesystem::path>> outputs;
  for (const auto& [option, file] : {std::pair{"--report", options.report_file},
                                     {"--events", options.events_file},
                                     {"--export", options.export_file},
                                     {"--checkpoint", options.checkpoint_directory}})
    if (file)
      outputs.emplace_back(option, *file);
  auto read = inputs;
  if (options.import_file)
    read.push_back(*options.import_file);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& [option, path] = outputs[i];
    for (const auto& file : read)
      if (is_same_file(path, file))
        return {errc::invalid_argument, option + " " + path.string()
                                          + " would overwrite a file that is read: choose another"};
    for (std::size_t j = 0; j < i; ++j)
      if (is_same_file(path, outputs[j].second))
        return {errc::invalid_argument, outputs[j].first + " and " + option + " are both "
                                          + path.string() + ": choose two names"};
  }
  for (const auto* file : {&options.export_file, &options.import_file})
    if (auto known = *file ? storage::check_extension(**file) : result<void>{}; !known)
      return known;
  return {};
}

result<void> check_writable(const run_options& options) {
  for (const auto* file : {&options.report_file, &options.events_file, &options.export_file})
    if (auto writable = *file ? check_output(**file) : result<void>{}; !writable)
      return writable;
  return {};
}

} // namespace troupe
