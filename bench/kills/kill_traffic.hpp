// Makes the traffic of a link until one of its ends is killed: requests that bring 4 B to 4 MB and
// ask for as much.
#pragma once

#include "serialization/messages.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

namespace troupe::bench {

/// Requests that a side keeps open.
constexpr std::size_t open_requests_wanted = 8;

/// Makes requests and replies, and checks them. next() is for one thread at a time.
class traffic_source {
public:
  explicit traffic_source(std::uint64_t seed);

  request next();
  reply answer(const request& what) const;
  /// Returns true if the values are the right ones for such pieces.
  bool right(const std::vector<piece>& pieces) const;
  bool right(const request& asked, const reply& answer) const;

private:
  range draw();

  std::mt19937_64 dice_;
  std::shared_ptr<float> pattern_;
};

/// Counts how the requests of one side ended, and errors of the messages that it read.
struct endings {
  std::uint64_t sent = 0;
  std::uint64_t answered = 0;
  std::uint64_t failed = 0;  ///< With peer_lost.
  std::uint64_t stalled = 0; ///< Not ended within 10 s after the kill.
  std::uint64_t doubled = 0; ///< Ended a second time.
  std::uint64_t corrupt = 0; ///< Messages with other values than were sent.
  std::uint64_t astray = 0;  ///< Reports on wrong links or requests; other errors.

  endings& operator+=(const endings& more);
};

} // namespace troupe::bench
