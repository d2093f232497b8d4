// How the ranks of a job add up their numbers: one interface, with shared memory of a host below it
// (shared_communicator) or links between processes (actors/graph/ranks/link_communicator).
//
//   begin(parts) ... ready(2) ... ready(1) ... finish()     the first part is the most urgent
//
// Shapes:       equal counts on all ranks, and equal calls in the same order; else ranks fail.
// Determinism:  every rank gets the same bytes, whenever parts become ready on whatever rank. The
//               order in which an element is added up belongs to the implementation.
// Errors:       peer_lost, timed_out, shape_mismatch. A communicator that has failed stays failed;
//               numbers are undefined then, and no longer in use once the call has returned.
#pragma once

#include "base/error.hpp"
#include "kernels/schedules/schedule.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace troupe::kernels {

/// Thread safety: for one thread.
class communicator {
public:
  virtual ~communicator() = default;

  virtual std::uint32_t rank() const = 0;
  virtual std::uint32_t ranks() const = 0;

  /// Begins a sum of several parts. Borrowed, until finish() returns: the numbers.
  virtual void begin(std::span<const std::span<float>> parts) = 0;
  /// The caller's numbers of that part are complete, and belong to the communicator from now on.
  /// Never waits for other ranks.
  virtual void ready(std::uint32_t part) = 0;
  /// Takes the other parts as ready too. Returns when all parts hold the sums of all ranks.
  [[nodiscard]] virtual result<void> finish() = 0;

  /// Carries out a schedule without staging places.
  [[nodiscard]] virtual result<void> carry_out(const schedule& plan, std::span<float> numbers) = 0;
  /// Gives all ranks the root's numbers, bit for bit.
  [[nodiscard]] virtual result<void> broadcast(std::uint32_t root, std::span<float> numbers) = 0;

  /// Replaces the numbers of all ranks by their sum.
  [[nodiscard]] result<void> sum(std::span<float> numbers);
  /// Returns one number of each rank, by rank, bit for bit.
  [[nodiscard]] result<std::vector<std::uint64_t>> gather(std::uint64_t own);
};

} // namespace troupe::kernels
