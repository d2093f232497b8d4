#include "cli/chaos/cluster.hpp"

#include "cli/chaos/event_lines.hpp"
#include "cli/chaos/live_processes.hpp"

#include "fmt/format.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <utility>

namespace troupe::chaos {

namespace {

constexpr const char* port = "7777";
/// Limits of a wait, 10 s: a host appears, or a launcher that joined sees the end of the job.
constexpr int wait_ms = 10;
constexpr int waits_max = 1000;

template <class Holds>
bool wait_until(Holds holds) {
  for (int i = 0; i < waits_max; ++i) {
    if (holds())
      return true;
    poll(nullptr, 0, wait_ms);
  }
  return false;
}

bool is_ready(const std::filesystem::path& output) {
  std::ifstream file{output};
  std::string line;
  return std::getline(file, line) && line == "ready";
}

} // namespace

std::vector<std::string> cluster::words() const {
  std::vector<std::string> all{options_.program.string(),
                               "--graph",
                               options_.graph,
                               "--workers",
                               std::to_string(options_.workers),
                               "--sync",
                               options_.sync,
                               "--samples",
                               std::to_string(options_.batches),
                               "--batch",
                               "1",
                               "--epochs",
                               "1",
                               "--elements",
                               "20000",
                               "--checkpoint-every",
                               "1s",
                               "--checkpoint-keep",
                               std::to_string(options_.keep),
                               "--checkpoint",
                               checkpoints().string()};
  if (options_.graph != "own-store")
    all.insert(all.end(), {"--servers", std::to_string(options_.servers), "--replicas",
                           std::to_string(options_.replicas)});
  for (std::uint32_t i = 0; i < options_.workers; ++i)
    all.insert(all.end(), {"--slow", fmt::format("{}:{}", i, options_.step_ms)});
  if (hosts_ != nullptr)
    all.push_back("--allow-plaintext-on-network");
  return all;
}

result<void> cluster::start() {
  auto main = words();
  main.insert(main.end(),
              {"--run-dir", run_directory().string(), "--report", report_file().string()});
  if (hosts_ != nullptr) {
    std::string here;
    for (std::uint32_t i = 0; i < options_.workers; ++i)
      here += fmt::format("{}worker:{}", i == 0 ? "" : ",", i);
    for (std::uint32_t i = 0; i < options_.actors; ++i)
      here += fmt::format(",actor:{}", i);
    main.insert(main.end(),
                {"--listen", fmt::format("{}:{}", network::center, port), "--here", here});
  }
  auto launched = child_process::start(main, output());
  if (!launched)
    return launched.error();
  launchers_.push_back(*std::move(launched));
  for (std::uint32_t i = 0; hosts_ != nullptr && i < options_.servers; ++i)
    if (auto started = start_host(i); !started)
      return started;
  return {};
}

result<void> cluster::start_host(std::uint32_t server) {
  auto joined = words();
  joined.insert(joined.end(),
                {"--run-dir", (options_.directory / fmt::format("host-{}", server)).string(),
                 "--join", fmt::format("{}:{}", network::center, port), "--here",
                 fmt::format("server:{}", server)});
  const auto said = options_.directory / fmt::format("host-{}.out", server);
  auto launched = child_process::start(hosts_->on_host(server, std::move(joined)), said);
  if (!launched)
    return launched.error();
  launchers_.push_back(*std::move(launched));
  auto& host = launchers_.back();
  if (!wait_until([&] { return is_ready(said); }))
    return {errc::io_failed, "no network namespace for " + said.string()};
  if (auto connected = hosts_->connect(server, host.pid()); !connected)
    return connected;
  host.tell("go\n");
  return {};
}

void cluster::read(double now, run_facts& into) {
  std::ifstream file{run_directory() / "events.jsonl", std::ios::binary};
  file.seekg(static_cast<std::streamoff>(read_until_));
  const std::string fresh{std::istreambuf_iterator<char>{file}, {}};
  read_until_ += fresh.size();
  for (const char each : fresh) {
    if (each != '\n') {
      unfinished_line_ += each;
      continue;
    }
    read_event_line(unfinished_line_, now, into);
    unfinished_line_.clear();
  }
}

std::optional<pid_t> cluster::find(const process_name& who) const {
  const auto launcher = who.role == role::server ? launcher_of(who.index) : 0;
  const auto all = children_of(launchers_[launcher].pid());
  const auto found = all.find(who);
  return found == all.end() ? std::nullopt : std::optional{found->second};
}

void cluster::measure(run_facts& into) const {
  const auto look = [&](pid_t process, const std::string& who) {
    into.rss_mb.take(peak_megabytes(process), who);
    into.descriptors.take(descriptors(process), who);
  };
  for (const auto& launcher : launchers_) {
    look(launcher.pid(), "launcher");
    for (const auto& [who, process] : children_of(launcher.pid()))
      look(process, to_string(who));
  }
}

result<void> cluster::cut(std::uint32_t server, fault_kind how) {
  return hosts_->cut(server, launchers_[launcher_of(server)].pid(), how);
}

result<void> cluster::mend(std::uint32_t server, fault_kind how) {
  return hosts_->mend(server, launchers_[launcher_of(server)].pid(), how);
}

void cluster::end() {
  if (!launchers_.empty() && ended())
    wait_until([this] {
      return std::ranges::all_of(launchers_, [](auto& x) { return x.ended().has_value(); });
    });
  launchers_.clear(); // Kills the launchers, and their processes end with them.
}

} // namespace troupe::chaos
