// Checks which options fit together, and whether the files of a run's end can be written.
#include "actors/graph/options/allreduce_options.hpp"
#include "actors/graph/options/compression_flags.hpp"
#include "actors/graph/options/options.hpp"
#include "actors/graph/options/recording.hpp"
#include "actors/graph/options/straggler_flags.hpp"
#include "actors/protocol/coordinator/membership.hpp"
#include "storage/tensor_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace troupe {

namespace {

// Requires encryption on a network, unless an option explicitly allows plain text.
result<void> check_encryption(const run_options& options) {
  const auto leaves_host = [](const std::optional<endpoint>& where) {
    return where && !is_loopback(*where);
  };
  if (options.tls_directory && options.plaintext_on_network)
    return {errc::invalid_argument, "--tls and --allow-plaintext-on-network: choose one"};
  if (options.tls_directory || options.plaintext_on_network
      || (!leaves_host(options.listen) && !leaves_host(options.join)))
    return {};
  const bool listens = leaves_host(options.listen);
  return {errc::invalid_argument,
          std::string{listens ? "--listen " : "--join "}
            + to_string(listens ? *options.listen : *options.join)
            + " needs --tls DIR (troupe certs makes it), or --allow-plaintext-on-network where "
              "everyone on the network may read and change the job"};
}

/// Checks that a file can be made; a message names the file `wanted`.
result<void> check_creation(const std::filesystem::path& path,
                            const std::filesystem::path& wanted) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0 && (errno != EEXIST || access(path.c_str(), W_OK) != 0))
    return {errc::io_failed, "cannot write " + wanted.string() + ": " + std::strerror(errno)};
  if (file >= 0) {
    close(file);
    unlink(path.c_str());
  }
  return {};
}

/// Returns whether both names are one file, which need not exist yet.
bool is_same_file(const std::filesystem::path& one, const std::filesystem::path& other) {
  std::error_code none;
  return std::filesystem::equivalent(one, other, none)
         || std::filesystem::weakly_canonical(one, none)
              == std::filesystem::weakly_canonical(other, none);
}

} // namespace

result<void> validate(const run_options& options) {
  const auto invalid = [](std::string text) {
    return result<void>{errc::invalid_argument, std::move(text)};
  };
  const auto first_given = [&](std::initializer_list<const char*> names) {
    const auto* const found = std::find_if(
      names.begin(), names.end(), [&](const auto* name) { return options.given.contains(name); });
    return std::string{found == names.end() ? "" : *found};
  };
  const bool hogwild = options.sync.mode == consistency_mode::hogwild;
  const bool threads = options.mode() != run_mode::processes; // Or one: roles in this process.
  const bool simulated = options.mode() == run_mode::simulation;
  if (hogwild && options.mode() != run_mode::threads)
    return invalid("--sync hogwild shares memory between threads: use --threads");
  if (const auto name = first_given({"--checkpoint", "--checkpoint-every", "--checkpoint-keep",
                                     "--checkpoint-scrub", "--resume", "--import"});
      hogwild && !name.empty())
    return invalid("--sync hogwild keeps no record of batches, so it has no checkpoints: leave out "
                   + name);
  if (const auto name = first_given({"--servers", "--replicas", "--shards"});
      hogwild && !name.empty())
    return invalid("--sync hogwild has one memory and no servers: leave out " + name);
  if (options.replicas > options.servers)
    return invalid("--replicas " + std::to_string(options.replicas)
                   + " needs as many --servers, not " + std::to_string(options.servers));
  if (options.reads == read_target::any && options.replicas == 1)
    return invalid("--reads any spreads pulls over replicas: needs --replicas, or leave it out");
  if (options.reads == read_target::any && options.sync.mode == consistency_mode::ssp)
    return invalid("--sync ssp has one server wait for the slowest worker: leave out --reads any");
  if (hogwild && options.delta_pulls)
    return invalid("--sync hogwild writes values in place, so none are known to be unchanged: "
                   "leave out --delta-pulls");
  const bool bsp = options.sync.mode == consistency_mode::bsp;
  const auto sync = "--sync " + (options.allreduce ? "allreduce" : to_string(options.sync));
  if (options.pull_ahead > 0 && (bsp || options.sync.mode == consistency_mode::ssp))
    return invalid(sync + " waits for other workers: leave out --pull-ahead");
  if (options.apply_batch > 1 && bsp)
    return invalid(sync + " applies each clock's pushes together anyway: leave out --apply-batch");
  if (options.apply_batch > 1 && hogwild)
    return invalid(sync + " applies no pushes together, as none waits: leave out --apply-batch");
  if (options.workers_per_process > 1 && hogwild)
    return invalid("--sync hogwild has one memory for all workers and sends nothing: leave out "
                   "--workers-per-process");
  if (options.workers_per_process > 1 && options.record_directory)
    return invalid("--record names the values that each gradient was computed from, which a sum of "
                   "several does not say: leave out --workers-per-process");
  if (options.workers_per_process == 1 && options.given.contains("--reduce-wait"))
    return invalid("--reduce-wait is the time that workers of one process wait for each other: "
                   "needs --workers-per-process, or leave it out");
  // hogwild has no other mode, so messages name it.
  const auto single = hogwild ? sync : simulated ? "--simulate" : "--threads";
  if (threads && !options.key_cache)
    return invalid(single + " has no links that bring keys: leave out --no-key-cache");
  if (threads && !options.kills.empty())
    return invalid(hogwild ? single + " is one process: leave out --kill"
                           : "--kill ends processes: use --processes");
  if (threads && (options.listen || options.join || !options.here.empty()))
    return invalid(single + " is one process: leave out --listen, --join and --here");
  if (threads && options.durability == durability_mode::log)
    return invalid(single + " ends as a whole: leave out --durability");
  if (threads && options.etcd)
    return invalid(single + " has no coordinator to lose: leave out --coordinator-store");
  if (options.standbys > 0 && !options.etcd)
    return invalid("--standbys needs --coordinator-store etcd://HOST:PORT, where they find the "
                   "state of the coordinator that they replace");
  if (threads && options.tls_directory)
    return invalid(single + " has no links to encrypt: leave out --tls");
  if (!options.needs_run_directory() && options.given.contains("--run-dir"))
    return invalid(single + " writes no logs: leave out --run-dir");
  if (const auto name = first_given({"--checkpoint", "--checkpoint-every", "--checkpoint-keep",
                                     "--checkpoint-scrub", "--resume", "--import"});
      simulated && !name.empty())
    return invalid("--simulate begins with the initial values and keeps no checkpoints: leave out "
                   + name);
  if (const auto name =
        first_given({"--checkpoint-every", "--checkpoint-keep", "--checkpoint-scrub"});
      threads && !options.checkpoint_directory && !name.empty())
    return invalid(name + " with --threads needs --checkpoint DIR: say where to keep them");
  if (const auto name = first_given({"--listen", "--report", "--export", "--import", "--resume",
                                     "--coordinator-store", "--standbys"});
      options.join && !name.empty())
    return invalid(name + " is for the host that starts the job: leave it out with --join");
  if (options.listen && is_no_host(*options.listen))
    return invalid("--listen needs the address at which other hosts reach this one, not "
                   + options.listen->host);
  if (options.join && options.join->port == 0)
    return invalid("--join needs the port at which the main host listens, not 0");
  const bool serves = std::any_of(options.here.begin(), options.here.end(),
                                  [](const auto& x) { return x.role == role::server; });
  if (options.join && serves && !options.checkpoint_directory)
    return invalid("--join with a server needs --checkpoint DIR: the same directory as on the main "
                   "host, on a file system that both share");
  if (options.join && options.here.empty())
    return invalid("--join needs --here: say which servers and workers run on this host");
  if (options.resume && !options.checkpoint_directory && options.run_directory.empty())
    return invalid(threads ? "--resume needs --checkpoint DIR, with checkpoints to continue from"
                           : "--resume needs --run-dir DIR or --checkpoint DIR to continue from");
  if (options.resume && options.import_file)
    return invalid("--resume and --import both say where to start: choose one");
  // A host that joins may bring more servers and workers than the job began with.
  const auto servers = options.join ? servers_max : options.servers;
  const auto started = options.workers + options.backup_workers;
  const auto workers = options.join ? workers_max : started;
  for (const auto& who : options.here) {
    const auto count = who.role == role::server ? servers : workers;
    if (who.role == role::coordinator)
      return invalid("--here: the job has no second coordinator");
    if (who.index >= count)
      return invalid("--here: the job has no " + to_string(who) + ", only 0 to "
                     + std::to_string(count - 1));
  }
  for (auto one = options.here.begin(); one != options.here.end(); ++one)
    if (std::find(options.here.begin(), one, *one) != one)
      return invalid("--here: a process is listed twice");
  if (!options.here.empty() && !options.listen && !options.join)
    return invalid("--here without --listen or --join: no host would start the other processes");
  for (const auto& [worker, unused] : options.slow_workers)
    if (worker >= started)
      return invalid("--slow: the job has no worker " + std::to_string(worker) + ", only 0 to "
                     + std::to_string(started - 1));
  for (const auto& plan : options.kills)
    if ((plan.who.role == role::worker && plan.who.index >= started)
        || (plan.who.role == role::server && plan.who.index >= options.servers))
      return invalid("--kill: the job has only workers 0 to " + std::to_string(started - 1)
                     + " and servers 0 to " + std::to_string(options.servers - 1));
    else if (plan.who.role == role::coordinator && plan.who.index > options.standbys)
      return invalid("--kill: the job has only coordinators 0 to "
                     + std::to_string(options.standbys));
  if (auto fits = validate_allreduce(options); !fits)
    return fits;
  if (auto right = validate_stragglers(options); !right)
    return right;
  if (auto valid = validate_recording(options); !valid)
    return valid;
  if (auto valid = validate_compression(options); !valid)
    return valid;
  return check_encryption(options);
}

namespace {

result<void> check_text_file(const std::filesystem::path& file) {
  std::error_code none;
  if (std::filesystem::is_directory(file, none))
    return {errc::io_failed, "cannot write " + file.string() + ": it is a directory"};
  if (std::filesystem::is_fifo(file, none)) // The run would wait for a reader.
    return {errc::io_failed, "cannot write " + file.string() + ": it is a pipe"};
  if (access(file.c_str(), F_OK) != 0)
    return check_creation(file, file);
  if (access(file.c_str(), W_OK) != 0)
    return {errc::io_failed, "cannot write " + file.string() + ": " + std::strerror(errno)};
  return {};
}

} // namespace

result<void> check_outputs(const run_options& options,
                           const std::vector<std::filesystem::path>& inputs) {
  std::error_code none;
  std::vector<std::pair<std::string, std::filesystem::path>> outputs;
  if (options.report_file)
    outputs.emplace_back("--report", *options.report_file);
  if (options.events_file)
    outputs.emplace_back("--events", *options.events_file);
  if (options.export_file)
    outputs.emplace_back("--export", *options.export_file);
  if (options.checkpoint_directory)
    outputs.emplace_back("--checkpoint", *options.checkpoint_directory);
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
  for (const auto* text : {&options.report_file, &options.events_file})
    if (auto writable = *text ? check_text_file(**text) : result<void>{}; !writable)
      return writable;
  if (const auto& tensors = options.export_file) {
    if (auto known = storage::check_extension(*tensors); !known)
      return known;
    if (std::filesystem::is_directory(*tensors, none))
      return {errc::io_failed, "cannot write " + tensors->string() + ": it is a directory"};
    if (std::filesystem::is_fifo(*tensors, none))
      return {errc::io_failed, "cannot write " + tensors->string() + ": it is a pipe"};
    // The run writes this file under another name first.
    return check_creation(tensors->string() + ".check", *tensors);
  }
  return {};
}

} // namespace troupe
