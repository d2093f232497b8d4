#include "cli/chaos/network.hpp"

#include "cli/chaos/child_process.hpp"

#include "fmt/format.h"

#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <utility>

namespace troupe::chaos {

namespace {

failure needs_root(const std::string& what, const std::string& why) {
  return {errc::io_failed, "needs root: " + what + " (" + why + ")"};
}

std::string line_to(std::uint32_t server) { return fmt::format("host{}", server); }

std::vector<std::string> joined(std::vector<std::string> words,
                                std::initializer_list<std::string> more) {
  words.insert(words.end(), more);
  return words;
}

/// Drops all packets that `device` sends: no packet is as small as the bucket.
result<void> set_drop(const char* change, const std::string& device, const std::string& pid) {
  auto words =
    pid.empty() ? std::vector<std::string>{} : std::vector<std::string>{"nsenter", "-t", pid, "-n"};
  words = joined(std::move(words), {"tc", "qdisc", change, "dev", device, "root"});
  if (std::string_view{change} == "add")
    words = joined(std::move(words), {"tbf", "rate", "8bit", "burst", "1", "latency", "1ms"});
  return run_tool(words);
}

} // namespace

result<network> network::make() {
  if (unshare(CLONE_NEWNET) != 0)
    return needs_root("network namespaces", std::strerror(errno));
  for (const auto& words : std::initializer_list<std::vector<std::string>>{
         {"ip", "link", "set", "lo", "up"},
         {"ip", "link", "add", "bridge0", "type", "bridge"},
         {"ip", "addr", "add", fmt::format("{}/16", center), "dev", "bridge0"},
         {"ip", "link", "set", "bridge0", "up"}})
    if (auto done = run_tool(words); !done)
      return needs_root("network namespaces", done.error().text);
  return network{};
}

std::vector<std::string> network::on_host(std::uint32_t server,
                                          std::vector<std::string> words) const {
  std::vector<std::string> all{
    "unshare",
    "-n",
    "sh",
    "-c",
    "echo ready; read go && ip link set lo up && ip addr add \"$1\" dev eth0"
    " && ip link set eth0 up && shift && exec \"$@\"",
    "sh",
    fmt::format("10.203.79.{}/16", 1 + server)};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

result<void> network::connect(std::uint32_t server, pid_t host) {
  const auto line = line_to(server);
  for (const auto& words : std::initializer_list<std::vector<std::string>>{
         {"ip", "link", "add", line, "type", "veth", "peer", "name", "eth0", "netns",
          std::to_string(host)},
         {"ip", "link", "set", line, "master", "bridge0"},
         {"ip", "link", "set", line, "up"}})
    if (auto done = run_tool(words); !done)
      return done;
  return {};
}

result<void> network::cut(std::uint32_t server, pid_t host, fault_kind how) {
  const auto line = line_to(server);
  switch (how) {
  case fault_kind::cut_in: return set_drop("add", line, {});
  case fault_kind::cut_out: return set_drop("add", "eth0", std::to_string(host));
  default: return run_tool({"ip", "link", "set", line, "down"});
  }
}

result<void> network::mend(std::uint32_t server, pid_t host, fault_kind how) {
  const auto line = line_to(server);
  switch (how) {
  case fault_kind::cut_in: return set_drop("del", line, {});
  case fault_kind::cut_out: return set_drop("del", "eth0", std::to_string(host));
  default: return run_tool({"ip", "link", "set", line, "up"});
  }
}

result<void> mount_small_disk(const std::string& directory, unsigned megabytes) {
  const auto size = fmt::format("size={}m", megabytes);
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0
      || mount("troupe-chaos", directory.c_str(), "tmpfs", 0, size.c_str()) != 0)
    return needs_root("a small disk of its own", std::strerror(errno));
  return {};
}

void unmount_small_disk(const std::string& directory) { umount2(directory.c_str(), MNT_DETACH); }

} // namespace troupe::chaos
