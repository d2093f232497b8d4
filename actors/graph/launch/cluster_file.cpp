#include "actors/graph/launch/cluster_file.hpp"

#include "base/quote.hpp"
#include "base/system/file.hpp"
#include "base/system/output_file.hpp"
#include "serialization/wire.hpp"

#include "nlohmann/json.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>

namespace troupe {

namespace {

std::filesystem::path path_in(const std::filesystem::path& run_directory) {
  return run_directory / "cluster.json";
}

} // namespace

result<void> write_cluster_file(const std::filesystem::path& run_directory,
                                const cluster_file& what, const field_table& table) {
  const auto bytes = wire::encode_job(what.members.job);
  std::map<std::string, field_texts> fields;
  for (const auto& [reader, values] : what.members.fields)
    for (const auto& [option, text] : texts_for(reader, values, table))
      fields[std::string{traits_of(reader).name}][option] = escape_bytes(text);
  nlohmann::json document = {
    {"job", std::vector<int>(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                             reinterpret_cast<const std::uint8_t*>(bytes.data()) + bytes.size())},
    {"secret", what.secret},
    {"listen_host", what.listen_host},
    {"open_to_others", what.open_to_others},
    {"checkpoint_directory", escape_bytes(what.members.checkpoints.string())},
    {"fields", fields},
    {"resume", what.members.resume},
    {"nodes", nlohmann::json::array()},
    {"names", what.members.names},
  };
  for (const auto& each : what.members.nodes)
    document["nodes"].push_back({each.node, each.process, each.first});
  if (what.coordinator.port != 0)
    document["coordinator"] = to_string(what.coordinator);
  return write_outputs({{path_in(run_directory), document.dump(), 0600}});
}

result<cluster_file> read_cluster_file(const std::filesystem::path& run_directory,
                                       const field_table& table) {
  const auto path = path_in(run_directory);
  std::ifstream file{path};
  if (!file)
    return {errc::io_failed, "cannot read " + path.string() + ": " + std::strerror(errno)};
  const auto damaged = damaged_cluster_file(run_directory);
  try {
    const auto document = nlohmann::json::parse(file);
    cluster_file what;
    std::vector<std::byte> bytes;
    for (const int value : document.at("job"))
      bytes.push_back(static_cast<std::byte>(value));
    auto job = wire::decode_job(bytes);
    if (!job)
      return {job.error().code, path.string() + ": " + job.error().text};
    what.members.job = *std::move(job);
    if (document.contains("coordinator")) {
      auto coordinator = parse_endpoint(document.at("coordinator"));
      if (!coordinator)
        return {coordinator.error().code, path.string() + ": " + coordinator.error().text};
      what.coordinator = *std::move(coordinator);
    }
    what.secret = document.at("secret");
    what.listen_host = document.at("listen_host");
    what.open_to_others = document.at("open_to_others");
    what.members.checkpoints =
      unescape_bytes(document.at("checkpoint_directory").get<std::string>());
    for (const role reader : started_roles()) {
      field_texts texts = document.at("fields").at(std::string{traits_of(reader).name});
      for (auto& [option, text] : texts)
        text = unescape_bytes(text);
      if (!take_texts(reader, texts, what.members.fields[reader], table))
        return damaged;
    }
    what.members.resume = document.at("resume");
    for (const auto& each : document.at("nodes"))
      what.members.nodes.push_back({each.at(0), each.at(1), each.at(2)});
    what.members.names = document.at("names");
    return what;
  } catch (const std::exception&) { // From json, or from the stream if the path is a directory.
    return damaged;
  }
}

failure damaged_cluster_file(const std::filesystem::path& run_directory) {
  return {errc::malformed, path_in(run_directory).string()
                             + " is damaged, or a launcher of another version wrote it"};
}

} // namespace troupe
