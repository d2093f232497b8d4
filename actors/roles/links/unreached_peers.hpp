// Tells a person which other processes a process cannot reach.
#pragma once

#include "actors/transport/transport.hpp"

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace troupe::detail {

/// Text about one address. It is empty once the address is reached or not wanted any more.
struct reach_notice {
  std::string address;
  std::string text;

  bool operator==(const reach_notice&) const = default;
};

/// Makes notices from the outcomes of attempts to connect. A plain state machine.
///
/// Invariants:
/// (1) an address gets a notice once connections to it have failed for `patience`.
/// (2) a failure that repeats gets one notice until it ends.
class unreached_peers {
public:
  using clock = std::chrono::steady_clock;

  explicit unreached_peers(std::chrono::milliseconds patience) : patience_(patience) {}

  /// Notes an attempt to reach `address`, where the process `name` is expected.
  void connecting(link_id link, const std::string& address, const std::string& name,
                  clock::time_point now);
  std::vector<reach_notice> opened(link_id link);
  std::vector<reach_notice> lost(link_id link, const failure& why, clock::time_point now);

private:
  struct peer {
    std::string name;
    clock::time_point since; ///< Time of the first attempt.
    clock::time_point tried_at;
    std::string told;
  };

  std::chrono::milliseconds patience_;
  std::map<link_id, std::string> attempts_; ///< Addresses of links that are not open.
  std::map<std::string, peer> peers_;       ///< Unreached peers, by address.
};

} // namespace troupe::detail
