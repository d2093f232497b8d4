#include "actors/graph/launch/run_setup.hpp"

#include "actors/graph/worker_groups.hpp"
#include "actors/graph/launch/import.hpp"
#include "actors/graph/options/compression.hpp"
#include "actors/graph/options/recording.hpp"
#include "actors/graph/run_failed.hpp"
#include "base/system/draw_random.hpp"
#include "base/system/directory_lock.hpp"
#include "storage/checkpoint_directory.hpp"
#include "storage/coordinator_store.hpp"
#include "storage/etcd_store.hpp"
#include "storage/job_difference.hpp"

#include "fmt/chrono.h"
#include "fmt/format.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

namespace troupe {

namespace {

result<void> make_writable_directory(const std::filesystem::path& path) {
  std::error_code problem;
  std::filesystem::create_directories(path, problem);
  if (problem || access(path.c_str(), W_OK) != 0)
    return {errc::io_failed, "cannot write to the directory " + path.string() + ": "
                               + (problem ? problem.message() : "permission denied")};
  return {};
}

/// Locks a directory, which it makes if absent.
result<void> lock_directory(const std::filesystem::path& path,
                            std::vector<storage::directory_lock>& locks) {
  if (auto created = make_writable_directory(path); !created)
    return created;
  auto lock = storage::directory_lock::acquire(std::filesystem::absolute(path));
  if (!lock)
    return lock.error();
  locks.push_back(*std::move(lock));
  return {};
}

/// Makes a directory that did not exist: `wanted`, or that name with a number behind it. Processes
/// of several containers may have the same number and start in the same second.
result<std::filesystem::path> make_new_directory(const std::filesystem::path& wanted) {
  if (auto made = make_writable_directory(wanted.parent_path()); !made)
    return made.error();
  constexpr int names_max = 1000;
  auto path = wanted;
  for (int number = 2; number <= names_max; ++number) {
    std::error_code problem;
    if (std::filesystem::create_directory(path, problem))
      return path;
    if (problem)
      return failure{errc::io_failed,
                     "cannot make the directory " + path.string() + ": " + problem.message()};
    path = fmt::format("{}-{}", wanted.string(), number);
  }
  return failure{errc::io_failed, "there are " + std::to_string(names_max) + " directories "
                                    + wanted.string() + "-N: choose another --run-dir"};
}

/// Checks that a checkpoint is not beyond the end of the job, as batches cannot be taken back.
result<void> check_epochs(const storage::manifest& newest, const job_spec& job) {
  if (newest.cursor.value <= job.batches())
    return {};
  const auto epoch = newest.cursor.value / job.batches_per_epoch();
  return {errc::invalid_argument,
          fmt::format("checkpoint {} is already at epoch {:.4g} of {}: give --epochs {} or more",
                      newest.checkpoint,
                      static_cast<double>(newest.cursor.value)
                        / static_cast<double>(job.batches_per_epoch()),
                      job.epochs, epoch + 1)};
}

/// Adds a line for each difference between a checkpoint's job and this one that --resume accepts.
void remark_on_origin(const storage::manifest& newest, const job_spec& job,
                      const notice_sink& tell) {
  const auto name = fmt::format("checkpoint {}", newest.checkpoint);
  if (newest.job.files_checksum == 0 && job.files_checksum != 0)
    tell({.text = name
                  + " has no checksum of the files that the program reads: this run goes on as if "
                    "they were the same"});
  for (auto& line : storage::option_differences(newest.job, job, name))
    tell({.text = std::move(line)});
}

result<void> check_resume(const std::filesystem::path& checkpoints, const job_spec& job,
                          const notice_sink& tell) {
  const auto found = storage::newest_good(checkpoints, job);
  if (!found)
    return found.error();
  if (found->newest) {
    for (const auto& refused : found->refused)
      tell({.text = refused.text});
    remark_on_origin(*found->newest, job, tell);
    return check_epochs(*found->newest, job);
  }
  const auto count = found->refused.size();
  if (count == 0)
    return {errc::invalid_argument, "no usable checkpoint in " + checkpoints.string()
                                      + " yet: leave out --resume to start from the beginning"};
  const auto why = count == 1
                     ? fmt::format(" ({})", found->refused.front().text)
                     : fmt::format(" ({}; and {} more)", found->refused.front().text, count - 1);
  return {errc::invalid_argument,
          fmt::format(
            "no usable checkpoint in {}{}: to start from the beginning choose another directory",
            checkpoints.string(), why)};
}

/// Prepares the coordinator's store: the state of another run is dropped unless it is resumed.
result<void> prepare_store(const run_options& options, const std::filesystem::path& checkpoints) {
  auto prepared = options.etcd
                    ? storage::etcd_store::prepare(etcd_of(options, checkpoints), options.resume)
                  : options.resume ? storage::coordinator_store::prepare_resume(checkpoints)
                                   : storage::coordinator_store::forget(checkpoints);
  if (prepared || !options.resume || prepared.error().code != errc::damaged)
    return prepared;
  return {errc::damaged,
          prepared.error().text + "; once it is removed --resume begins with the checkpoint alone"};
}

std::set<role> roles_here(const run_options& options) {
  std::set<role> here{role::observer};
  for (const auto& who : processes_here(options))
    here.insert(who.role);
  if (!options.join)
    here.insert(role::coordinator);
  return here;
}

/// Prepares directories that have names. After an error `made` has the locks taken so far.
result<void> prepare_named(run_options& options, const job_spec& job, const given_values& given,
                           const notice_sink& tell, prepared_directories& made) {
  const bool needs_run_directory = options.needs_run_directory();
  const std::filesystem::path run = options.run_directory;
  if (needs_run_directory)
    if (auto locked = lock_directory(run, made.locks); !locked)
      return locked.error();
  if (options.join)
    return {}; // The host of the coordinator prepares the checkpoints.
  if (!options.checkpoint_directory && needs_run_directory) {
    options.checkpoint_directory = run / "checkpoints";
    if (options.mode() != run_mode::processes)
      tell({.text = "checkpoints in " + *options.checkpoint_directory});
  }
  if (!options.checkpoint_directory)
    return {};
  auto& checkpoints = *options.checkpoint_directory;
  std::error_code none; // A path that is too long is absent, too.
  if (options.resume && !std::filesystem::exists(checkpoints, none))
    return {errc::invalid_argument, "no checkpoint to resume from: there is no " + checkpoints};
  const bool in_one = needs_run_directory && std::filesystem::equivalent(checkpoints, run, none);
  if (!in_one)
    if (auto locked = lock_directory(checkpoints, made.locks); !locked)
      return locked.error();
  checkpoints = std::filesystem::absolute(checkpoints);
  if (!options.resume && storage::last_number(checkpoints) != 0)
    return {errc::invalid_argument, checkpoints
                                      + " holds checkpoints of an earlier run: continue it with "
                                        "--resume --checkpoint "
                                      + checkpoints + ", or choose another directory"};
  if (auto prepared = prepare_store(options, checkpoints); !prepared)
    return prepared.error();
  if (options.import_file) {
    auto imported = import_parameters(*options.import_file, checkpoints, job);
    if (!imported)
      return imported.error();
    if (!imported->empty())
      tell({.text = *std::move(imported)});
  } else if (!given.empty() && !options.resume) {
    if (auto written = write_first_checkpoint(checkpoints, job, given); !written)
      return written.error();
  }
  if (options.resume)
    if (auto fits = check_resume(checkpoints, job, tell); !fits)
      return fits.error();
  return {};
}

} // namespace

storage::etcd_address etcd_of(const run_options& options,
                              const std::filesystem::path& checkpoints) {
  auto where = options.etcd.value();
  if (where.job.empty())
    where.job = std::filesystem::weakly_canonical(checkpoints).relative_path().string();
  return where;
}

std::string name_in_etcd(const endpoint& where, const process_name& who, pid_t pid) {
  return fmt::format("{} ({}, pid {})", to_string(where), to_string(who), pid);
}

result<void> check_tensor_files(const run_options& options, const job_spec& job) {
  if (options.export_file || options.import_file)
    for (const auto& table : job.tables)
      if (table.is_sparse())
        return {errc::invalid_argument, "--export and --import know dense tables only, and table '"
                                          + table.name
                                          + "' is sparse: use --checkpoint and --resume"};
  if (options.export_file && std::filesystem::path{*options.export_file}.extension() == ".npy"
      && job.tables.size() != 1)
    return {errc::invalid_argument,
            "--export " + *options.export_file + ": a .npy file holds one tensor and the "
              + "model has " + std::to_string(job.tables.size()) + ": use .npz or .safetensors"};
  return {};
}

result<prepared_directories> prepare_directories(plan& what, const notice_sink& tell) {
  auto& options = what.options;
  const auto& job = what.job;
  auto& run = options.run_directory;
  std::error_code none;
  const bool is_unnamed = run.empty();
  const bool is_new = is_unnamed || !std::filesystem::exists(run, none);
  const bool needs_directory = options.needs_run_directory();
  prepared_directories made;
  made.keeps_logs = options.mode() == run_mode::processes;
  if (auto remark = remark_on_compression(options, job); !remark.empty())
    tell({.text = std::move(remark)});
  if (run.empty()) {
    run = fmt::format("runs/{}-{:%Y%m%d-%H%M%S}-{}", what.program,
                      fmt::localtime(std::time(nullptr)), getpid());
    if (needs_directory) {
      auto directory = make_new_directory(run);
      if (!directory)
        return directory.error();
      run = *std::move(directory);
    }
  }
  if (made.keeps_logs && !options.events_file)
    options.events_file = (std::filesystem::path{run} / "events.jsonl").string();
  // Members of this process get the first values themselves.
  auto prepared =
    prepare_named(options, job, made.keeps_logs ? what.given : given_values{}, tell, made);
  if (prepared)
    prepared = begin_recording(options, job);
  if (prepared)
    return made;
  // No other process uses the new directory: it was made above under a new name, or is locked.
  if (is_new && needs_directory && (is_unnamed || !made.locks.empty()))
    std::filesystem::remove_all(run, none);
  return prepared.error();
}

/// Returns the directory of checkpoints of a host that joins.
static std::filesystem::path checkpoints_of_joined(const run_options& options) {
  return std::filesystem::absolute(options.checkpoint_directory.value_or(
    std::filesystem::path{options.run_directory} / "checkpoints"));
}

result<prepared_place> choose_place(const plan& what, const notice_sink& tell) {
  const auto& options = what.options;
  prepared_place made;
  made.cluster.members = member_plans_of(what);
  auto& cluster = made.cluster;
  cluster.open_to_others = options.listen || options.join;
  if (options.join) {
    // Resolves the name once, here: the processes of this host get a number and need not wait.
    auto way = route_to(*options.join);
    if (!way)
      return way.error();
    cluster.coordinator = std::move(way->there);
    cluster.listen_host = std::move(way->here);
    cluster.members.checkpoints = checkpoints_of_joined(options);
    return made;
  }
  const auto where = options.listen.value_or(endpoint{"127.0.0.1", 0});
  const auto listener = make_listener(where, options.ports);
  if (!listener)
    return listener.error();
  auto chosen = local_endpoint(*listener);
  if (!chosen)
    return chosen.error();
  if (is_no_host(*chosen)) // A name may resolve to one; validate() has checked numbers.
    return failure{errc::invalid_argument, "--listen needs the address at which other hosts reach "
                                           "this one: "
                                             + where.host + " is " + chosen->host};
  made.listener = *listener;
  cluster.coordinator = *std::move(chosen);
  cluster.listen_host = where.host;
  cluster.secret = draw_random();
  cluster.members.checkpoints = *options.checkpoint_directory;
  if (options.etcd)
    for (const auto& each : options.etcd->endpoints)
      if (!is_loopback(each))
        tell({.text = "etcd at " + to_string(each)
                      + " without encryption: only for networks that you trust"});
  const bool means_this_host =
    where.host == "127.0.0.1" || where.host == "::1" || where.host == "localhost";
  if (is_loopback(cluster.coordinator) && !means_this_host)
    tell({.text = "listening on " + to_string(cluster.coordinator)
                  + ", which no other host can reach: give --listen the address that "
                    "other hosts use"});
  if (!is_loopback(where))
    tell({.text =
            "listening on " + to_string(cluster.coordinator)
            + (options.tls_directory ? ", encrypted"
                                     : " without encryption: only for networks that you trust")});
  return made;
}

/// Checks that the files that options name can be read.
static result<void> check_inputs(const run_options& options) {
  std::vector<std::string> files;
  if (options.import_file)
    files.push_back(*options.import_file);
  if (options.compare_file)
    files.push_back(*options.compare_file);
  if (options.replay_directory)
    files.push_back(*options.replay_directory + "/job");
  for (const auto& file : files)
    if (access(file.c_str(), R_OK) != 0)
      return {errc::io_failed, "cannot read " + file + ": " + std::strerror(errno)};
  const auto checkpoints = options.checkpoint_directory.value_or(
    (std::filesystem::path{options.run_directory} / "checkpoints").string());
  std::error_code none;
  if (options.resume && !options.join && !std::filesystem::exists(checkpoints, none))
    return {errc::invalid_argument, "no checkpoint to resume from: there is no " + checkpoints};
  return {};
}

void require_outputs(const plan& what) {
  if (what.options.join)
    return;
  required(check_outputs(what.options, what.files), bad_command_line);
  required(check_writable(what.options));
}

result<void> check_run(const plan& what) {
  const auto& options = what.options;
  if (auto fine = check_inputs(options); !fine)
    return fine;
  if (auto loaded = load_certificates(options); !loaded)
    return loaded.error();
  if (options.join) {
    if (auto way = route_to(*options.join); !way)
      return way.error();
  } else if (options.listen) {
    const auto listener = make_listener(*options.listen, options.ports);
    if (!listener)
      return listener.error();
    close(*listener);
  }
  return {};
}

result<void> check_shared_directory(const run_options& options, std::uint64_t mark) {
  const auto directory = checkpoints_of_joined(options);
  const auto holds_values = [](role x) { return traits_of(x).holds_values; };
  if (std::ranges::none_of(roles_here(options), holds_values)
      || storage::directory_mark(directory) == mark)
    return {};
  return {errc::invalid_argument,
          "--checkpoint " + directory.string()
            + " is not the directory of the main host: mount the file system that has it on both "
              "hosts, and give its path here"};
}

std::size_t arena_bytes_of(const job_spec& job) {
  constexpr std::size_t page_bytes = 4096, least = std::size_t{4} << 20, models = 64;
  const std::size_t most = transport_options{}.arena_bytes;
  std::size_t bytes = least;
  for (const auto& table : job.tables) {
    if (table.is_sparse() || table.size() > most / sizeof(float))
      return most;
    bytes += models * table.size() * sizeof(float);
  }
  return std::min(most, bytes / page_bytes * page_bytes);
}

result<std::shared_ptr<const tls_context>> load_certificate(const run_options& options, role who) {
  if (!options.tls_directory)
    return std::shared_ptr<const tls_context>{};
  const auto files = tls_files_in(*options.tls_directory, who);
  auto loaded = tls_context::load(files, who);
  std::error_code none;
  if (loaded || std::filesystem::exists(files.certificate, none)
      || !std::filesystem::exists(files.authority, none))
    return loaded;
  return failure{loaded.error().code, loaded.error().text + ": this host has members of the role "
                                        + std::string{traits_of(who).name}
                                        + ", so make it with troupe certs"};
}

result<certificates> load_certificates(const run_options& options) {
  certificates all;
  if (!options.tls_directory)
    return all;
  for (const role who : roles_here(options)) {
    auto loaded = load_certificate(options, who);
    if (!loaded)
      return loaded.error();
    all.emplace(who, *std::move(loaded));
  }
  return all;
}

/// Returns whether members of the role open a port in this job.
static bool listens(const plan& what, role who) {
  const auto when = traits_of(who).listens;
  return when == listening::always
         || (when == listening::when_joined
             && std::ranges::any_of(what.channels,
                                    [&](const auto& each) { return each.to.as == who; }));
}

result<void> check_addresses(const certificates& loaded, const plan& what,
                             const cluster_file& cluster) {
  const auto& address = what.options.join ? cluster.listen_host : cluster.coordinator.host;
  for (const auto& [who, certificate] : loaded) {
    if (!listens(what, who))
      continue;
    if (auto fits = certificate->check_address(address); !fits)
      return fits;
  }
  return {};
}

} // namespace troupe
