// A rank's part of several schedules at a time, each for one part of its numbers. A part flows once
// its own numbers are there; of what could be done then the most urgent part's goes first. A plain
// state machine: no link, no clock.
//
// So that a part which becomes ready late can overtake, no more leaves than fills a line: the rest
// stays here, where its order can still change, and not in the queue of a link.
//
// Each part is added up as its schedule says, whatever the others do: only times depend on them.
#pragma once

#include "actors/graph/allreduce/schedule_flow.hpp"

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
  /// The most urgent part first. `leaving_max`: once so many numbers are on their way no further
  /// chunk is sent.
  bucket_flow(std::span<const sum_part> parts, std::size_t leaving_max);

  /// This rank's own numbers of a part are there.
  void ready(std::uint32_t part);
  void all_ready();

  // As of schedule_flow; other ranks' chunks may arrive before a part is ready here.
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
