// Counts the requests and replies of one run, and times each.
#pragma once

#include "bench/child.hpp"

#include <cstddef>
#include <vector>

namespace troupe::bench {

class round_trips {
public:
  /// `window`: requests that may wait for their replies.
  round_trips(std::size_t count, std::size_t window)
      : window_(window), began_(count), seconds_(count) {}

  bool may_send() const { return sent_ < began_.size() && sent_ - answered_ < window_; }
  bool done() const { return answered_ == began_.size(); }
  /// Returns the number of the request that is about to be sent.
  std::size_t begin() {
    began_[sent_] = seconds_now();
    return sent_++;
  }
  void end(std::size_t number) {
    seconds_[number] = seconds_now() - began_[number];
    ++answered_;
  }
  /// Returns the time of each request.
  const std::vector<double>& seconds() const { return seconds_; }

private:
  std::size_t window_, sent_ = 0, answered_ = 0;
  std::vector<double> began_, seconds_;
};

} // namespace troupe::bench
