#include "actors/graph/ranks/rank_watch.hpp"

#include <algorithm>
#include <cassert>

namespace troupe {

void rank_watch::look(const std::vector<heartbeat>& latest, time_point now) {
  assert(latest.size() == ranks_.size());
  const auto passed = std::min<time_point>(now - looked_at_, look_max);
  looked_at_ = now;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    auto& known = ranks_[rank];
    known.silent = latest[rank] == known.last ? known.silent + passed : time_point{0};
    known.last = latest[rank];
  }
}

} // namespace troupe
