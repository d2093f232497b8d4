// Orders a rank's steps in several schedules at a time, each for one part of its numbers. A part
// flows once the rank's own numbers of it are ready. Among possible steps, that of the most urgent
// part goes first. A plain state machine: no link, no clock.
//
// The numbers on their way are limited to what fills a line. Further chunks wait here, not in the
// queue of a link, so that a part which becomes ready late can overtake them.
//
// Each part is added up by its own schedule; other parts affect only the timing.
#pragma once

#include "actors/graph/ranks/schedule_flow.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace troupe {

/// One part of a sum. Borrowed.
struct sum_part {
  const flow_plan* plan = nullptr;
  std::span<float> numbers;
};

class bucket_flow {
public:
  struct own_step {
    std::uint32_t part = 0;
    flow_plan::own_step what;
  };

  bucket_flow() = default;
  /// `parts`: the most urgent one first. `leaving_max`: while this many numbers are on their way,
  /// no further chunk is sent.
  bucket_flow(std::span<const sum_part> parts, std::size_t leaving_max);

  /// Tells that this rank's own numbers of a part are ready.
  void ready(std::uint32_t part);
  void all_ready();

  // These are as in schedule_flow. Chunks of other ranks may arrive before a part is ready here.
  std::optional<own_step> next();
  bool arrived(std::uint32_t part, std::uint32_t number, std::uint32_t from);
  void left(std::uint32_t part, std::uint32_t chunk);
  bool awaits(std::uint32_t from) const;
  bool done() const;

private:
  struct entry {
    sum_part what;
    schedule_flow flow;
    bool is_ready = false;
  };

  std::size_t size_of(const entry& part, std::uint32_t chunk) const;

  std::vector<entry> parts_;
  std::size_t leaving_max_ = 0;
  std::size_t leaving_ = 0; ///< Numbers on their way.
};

} // namespace troupe
