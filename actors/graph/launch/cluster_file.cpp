#include "actors/graph/launch/cluster_file.hpp"

#include "base/quote.hpp"
#include "base/system/file.hpp"
#include "base/system/output_file.hpp"
#include "serialization/wire.hpp"

#include "nlohmann/json.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>

namespace troupe {

namespace {

std::filesystem::path path_in(const std::filesystem::path& run_directory) {
  return run_directory / "cluster.json";
}

} // namespace

cluster_file cluster_file_of(const plan& what) {
  cluster_file made;
  made.job = what.job;
  if (what.options.checkpoint_directory)
    made.checkpoint_directory = *what.options.checkpoint_directory;
  made.checkpointing = what.options.servers.checkpoints;
  made.scrub_interval = what.options.servers.scrub_interval;
  made.apply_batch = what.options.servers.apply_batch;
  made.verify_replicas = what.options.servers.verify_replicas;
  made.stragglers = what.options.workers.stragglers;
  made.straggler_time_scale = what.options.workers.straggler_time_scale;
  made.resume = what.options.resume || what.options.import_file || any_from_file(what.job);
  made.nodes = node_roles_of(what);
  return made;
}

result<void> write_cluster_file(const std::filesystem::path& run_directory,
                                const cluster_file& what) {
  const auto bytes = wire::encode_job(what.job);
  nlohmann::json document = {
    {"job", std::vector<int>(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                             reinterpret_cast<const std::uint8_t*>(bytes.data()) + bytes.size())},
    {"secret", what.secret},
    {"listen_host", what.listen_host},
    {"open_to_others", what.open_to_others},
    {"checkpoint_directory", escape_bytes(what.checkpoint_directory.string())},
    {"checkpoint_interval_ms", what.checkpointing.interval.count()},
    {"checkpoint_clocks", what.checkpointing.clocks},
    {"checkpoint_keep", what.checkpointing.keep},
    {"scrub_interval_ms", what.scrub_interval.count()},
    {"apply_batch", what.apply_batch},
    {"verify_replicas", what.verify_replicas},
    {"stragglers", what.stragglers ? nlohmann::json(static_cast<int>(*what.stragglers)) : nullptr},
    {"straggler_time_scale", what.straggler_time_scale},
    {"resume", what.resume},
    {"nodes", what.nodes},
  };
  if (what.coordinator.port != 0)
    document["coordinator"] = to_string(what.coordinator);
  return write_outputs({{path_in(run_directory), document.dump(), 0600}});
}

result<cluster_file> read_cluster_file(const std::filesystem::path& run_directory) {
  const auto path = path_in(run_directory);
  std::ifstream file{path};
  if (!file)
    return {errc::io_failed, "cannot read " + path.string() + ": " + std::strerror(errno)};
  try {
    const auto document = nlohmann::json::parse(file);
    cluster_file what;
    std::vector<std::byte> bytes;
    for (const int value : document.at("job"))
      bytes.push_back(static_cast<std::byte>(value));
    auto job = wire::decode_job(bytes);
    if (!job)
      return job.error();
    what.job = *std::move(job);
    if (document.contains("coordinator")) {
      auto coordinator = parse_endpoint(document.at("coordinator"));
      if (!coordinator)
        return coordinator.error();
      what.coordinator = *std::move(coordinator);
    }
    what.secret = document.at("secret");
    what.listen_host = document.at("listen_host");
    what.open_to_others = document.at("open_to_others");
    what.checkpoint_directory =
      unescape_bytes(document.at("checkpoint_directory").get<std::string>());
    what.checkpointing.interval =
      std::chrono::milliseconds{document.at("checkpoint_interval_ms").get<std::int64_t>()};
    what.checkpointing.clocks = document.at("checkpoint_clocks");
    what.checkpointing.keep = document.at("checkpoint_keep");
    what.scrub_interval =
      std::chrono::milliseconds{document.at("scrub_interval_ms").get<std::int64_t>()};
    what.apply_batch = document.at("apply_batch");
    what.verify_replicas = document.at("verify_replicas");
    if (const auto& measure = document.at("stragglers"); !measure.is_null())
      what.stragglers = static_cast<straggler_measure>(measure.get<int>());
    what.straggler_time_scale = document.at("straggler_time_scale");
    what.resume = document.at("resume");
    what.nodes = document.at("nodes").get<node_roles>();
    return what;
  } catch (const std::exception&) { // From json, or from the stream if the path is a directory.
    return {errc::malformed, path.string() + " is damaged: a launcher writes other content"};
  }
}

} // namespace troupe
