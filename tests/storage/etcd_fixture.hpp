// Runs a real etcd, if it is installed, on free ports of loopback and in its own directory.
#pragma once

#include "storage/detail/etcd_gateway.hpp"
#include "storage/etcd_client.hpp"
#include "tests/storage/temporary_directory.hpp"

#include "doctest/doctest.h"

#include <arpa/inet.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace troupe::storage {

/// Returns a port that is free at this moment.
inline std::uint16_t free_port() {
  const int one = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(one, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(::getsockname(one, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ::close(one);
  return ntohs(address.sin_port);
}

class etcd_cluster {
public:
  static bool is_installed() {
    if (std::system("command -v etcd >/dev/null") == 0)
      return true;
    std::puts("SKIPPED: etcd is not installed (apt-get install etcd-server)");
    return false;
  }

  /// `patient`: leases last 8 s, not 2, so that no lease ends while the machine stalls.
  explicit etcd_cluster(int members, bool patient = false) : patient_(patient) {
    for (int i = 0; i < members; ++i)
      members_.push_back({{"127.0.0.1", free_port()}, free_port(), 0});
    for (int i = 0; i < members; ++i)
      start(i);
    REQUIRE_MESSAGE(answers(), "etcd does not answer");
  }
  ~etcd_cluster() {
    for (auto& each : members_)
      end(each);
  }
  etcd_cluster(const etcd_cluster&) = delete;
  etcd_cluster& operator=(const etcd_cluster&) = delete;

  void start(int index) {
    auto& each = members_[static_cast<std::size_t>(index)];
    const auto name = name_of(index);
    const auto client = "http://" + to_string(each.client);
    const auto peer = peer_of(each);
    std::vector<std::string> words{"etcd",
                                   "--name",
                                   name,
                                   "--data-dir",
                                   (home_.path() / name).string(),
                                   "--listen-client-urls",
                                   client,
                                   "--advertise-client-urls",
                                   client,
                                   "--listen-peer-urls",
                                   peer,
                                   "--initial-advertise-peer-urls",
                                   peer,
                                   "--logger",
                                   "zap",
                                   "--log-level",
                                   "error",
                                   "--unsafe-no-fsync",
                                   "--initial-cluster"};
    std::string all;
    for (std::size_t i = 0; i < members_.size(); ++i)
      all += (i > 0 ? "," : "") + name_of(static_cast<int>(i)) + "=" + peer_of(members_[i]);
    words.push_back(all);
    if (patient_)
      words.insert(words.end(), {"--heartbeat-interval", "500", "--election-timeout", "5000"});
    std::vector<char*> arguments;
    for (auto& word : words)
      arguments.push_back(word.data());
    arguments.push_back(nullptr);
    each.pid = ::fork();
    if (each.pid != 0)
      return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int nothing = ::open("/dev/null", O_RDWR);
    ::dup2(nothing, STDOUT_FILENO);
    ::dup2(nothing, STDERR_FILENO);
    ::execvp("etcd", arguments.data());
    ::_exit(127);
  }

  void kill(int index) { end(members_[static_cast<std::size_t>(index)]); }

  std::vector<endpoint> endpoints() const {
    std::vector<endpoint> all;
    for (const auto& each : members_)
      all.push_back(each.client);
    return all;
  }

  /// Returns the index of etcd's leader.
  int leader() const {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const auto status = detail::ask_etcd(members_[i].client, "/v3/maintenance/status",
                                           nlohmann::json::object(), std::chrono::seconds{2});
      REQUIRE_MESSAGE(status, (status ? "" : status.error().text));
      if (status->at("header").at("member_id") == status->value("leader", "none"))
        return static_cast<int>(i);
    }
    FAIL("none of the members leads");
    return 0;
  }

  /// Returns true once etcd answers; false after 200 failed tries.
  bool answers() const {
    const etcd_client client{endpoints()};
    for (int i = 0; i < 200; ++i) {
      if (client.get("any", std::chrono::milliseconds{2000}))
        return true;
      ::poll(nullptr, 0, 100);
    }
    return false;
  }

private:
  struct member {
    endpoint client;
    std::uint16_t peer_port = 0;
    pid_t pid = 0;
  };

  static std::string name_of(int index) { return "m" + std::to_string(index); }
  static std::string peer_of(const member& which) {
    return "http://127.0.0.1:" + std::to_string(which.peer_port);
  }
  static void end(member& which) {
    if (which.pid == 0)
      return;
    ::kill(which.pid, SIGKILL);
    ::waitpid(which.pid, nullptr, 0);
    which.pid = 0;
  }

  const bool patient_;
  temporary_directory home_;
  std::vector<member> members_;
};

} // namespace troupe::storage
