#include "actors/graph/launch/cluster_file.hpp"

#include "base/quote.hpp"
#include "serialization/wire.hpp"

#include "nlohmann/json.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

namespace troupe {

namespace {

std::filesystem::path path_in(const std::filesystem::path& run_directory) {
  return run_directory / "cluster.json";
}

} // namespace

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
    {"checkpoint_interval_ms", what.checkpoint_interval.count()},
    {"checkpoint_clocks", what.checkpoint_clocks},
    {"checkpoint_keep", what.checkpoint_keep},
    {"resume", what.resume},
  };
  if (what.coordinator.port != 0)
    document["coordinator"] = to_string(what.coordinator);
  const auto text = document.dump();
  const auto path = path_in(run_directory);
  unlink(path.c_str()); // Other users may be able to read an older file.
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  std::string_view left = text;
  while (file >= 0 && !left.empty()) { // A limit on the size of files cuts a write before it fails.
    const auto count = write(file, left.data(), left.size());
    if (count < 0)
      break;
    left.remove_prefix(static_cast<std::size_t>(count));
  }
  const bool written = file >= 0 && left.empty();
  const auto problem = errno;
  if (file >= 0)
    close(file);
  if (!written)
    return {errc::io_failed, "cannot write " + path.string() + ": " + std::strerror(problem)};
  return {};
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
    what.checkpoint_interval =
      std::chrono::milliseconds{document.at("checkpoint_interval_ms").get<std::int64_t>()};
    what.checkpoint_clocks = document.at("checkpoint_clocks");
    what.checkpoint_keep = document.at("checkpoint_keep");
    what.resume = document.at("resume");
    return what;
  } catch (const std::exception&) { // From json, or from the stream if the path is a directory.
    return {errc::malformed, path.string() + " is damaged: a launcher writes other content"};
  }
}

} // namespace troupe
