#include "cli/resize.hpp"

#include "actors/graph/launch/job_client.hpp"
#include "actors/graph/options/options.hpp"
#include "base/command_line.hpp"
#include "base/quote.hpp"
#include "base/system/signals.hpp"
#include "cli/resize_monitor.hpp"

#include "CLI/CLI.hpp"
#include "fmt/core.h"

#include <signal.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

namespace {

constexpr std::chrono::milliseconds job_look_interval{50};

struct resize_options {
  std::filesystem::path run_directory;
  std::optional<std::filesystem::path> tls_directory;
  std::uint32_t timeout = 120;
  resize_request request;
};

result<void> wait_for(resize_monitor& watch, job_client& job, std::optional<int>& interrupted) {
  signal_watch signals;
  while (true) {
    for (const auto& line : watch.look(job.latest(), steady_now()))
      fmt::print("{}\n", line);
    std::fflush(stdout);
    if (watch.outcome())
      return *watch.outcome();
    job.request_resize(watch.wanted());
    interrupted = signals.wait(job_look_interval);
    if (interrupted)
      return {};
  }
}

result<void> run(const resize_options& options) {
  const auto cluster = read_cluster_file(options.run_directory);
  if (!cluster)
    return {cluster.error().code,
            "no run in " + options.run_directory.string() + ": " + cluster.error().text};
  if (cluster->coordinator.port == 0)
    return {errc::invalid_argument, "the job in " + options.run_directory.string()
                                      + " has no servers: its workers add up among themselves"};
  if (cluster->members.job.own_store)
    return {errc::invalid_argument, "the job in " + options.run_directory.string()
                                      + " has an own store, which is one server: no server can be "
                                        "added or drained"};
  if (cluster->members.job.gossip)
    return {errc::invalid_argument, "the job in " + options.run_directory.string()
                                      + " is gossip, whose values are in its workers: no server "
                                        "can be added or drained"};
  std::shared_ptr<const tls_context> tls;
  if (options.tls_directory) {
    auto loaded =
      tls_context::load(tls_files_in(*options.tls_directory, role::observer), role::observer);
    if (!loaded)
      return loaded.error();
    tls = *std::move(loaded);
  }
  job_client job{*cluster, std::move(tls)};
  resize_monitor watch{options.request, cluster->members.job, to_string(cluster->coordinator),
                       std::chrono::seconds{options.timeout}, steady_now()};
  std::optional<int> interrupted;
  const auto done = wait_for(watch, job, interrupted);
  if (interrupted)
    raise(*interrupted); // Ends this process as if the signal had not been caught.
  return done;
}

command make_command(CLI::App& app, const std::string& name, const std::string& description,
                     const std::shared_ptr<resize_options>& options) {
  auto* words = app.add_subcommand(name, description);
  words->add_option("RUN_DIRECTORY", options->run_directory, "The run directory of the job")
    ->check(path_fault)
    ->required();
  words
    ->add_option("--tls", options->tls_directory,
                 "Certificates of a job on another host (observer.pem and its key)")
    ->check(path_fault);
  words->add_option("--timeout", options->timeout, "Seconds to wait until it is done")
    ->check(CLI::Range(1, 1'000'000).description("1..1000000"))
    ->capture_default_str();
  return {words, [options] { return run(*options); }};
}

} // namespace

command add_command(CLI::App& app) {
  const auto options = std::make_shared<resize_options>();
  options->request.add = 1;
  auto made = make_command(app, "add",
                           "Adds servers to a job that runs; its launcher starts them, and shards "
                           "move to them",
                           options);
  made.words->add_option("--count", options->request.add, "How many")
    ->check(CLI::Range(1, 256).description("1..256"))
    ->capture_default_str();
  return made;
}

command drain_command(CLI::App& app) {
  const auto options = std::make_shared<resize_options>();
  auto made = make_command(app, "drain",
                           "Takes servers out of a job that runs: their shards move to others, "
                           "and then they end",
                           options);
  made.words
    ->add_option_function<std::vector<std::string>>(
      "SERVERS",
      [options](const std::vector<std::string>& texts) {
        for (const auto& text : texts) {
          const auto who = parse_process(text);
          if (!who || who->role != role::server)
            throw CLI::ValidationError{"SERVERS", quote(text) + " is not a server: server:INDEX"};
          options->request.drain.insert({who->index});
        }
      },
      "server:INDEX, one or more")
    ->required();
  return made;
}

} // namespace troupe
