// Ranks of one host that add up their numbers in shared memory (team_member).
//
// Numbers that all ranks keep in their rooms (team_memory::room), at the same offset, are added up
// where they are; others are copied into the memory and back, in parts. The caller's thread does
// the work, in finish(): no other thread competes with the computation for the cores. Parts are
// added up from the last to the first, the order in which a backward pass completes them.
//
// Determinism:  each number is added up in the order of the ranks, ((x0 + x1) + x2) + ..., whatever
//               the sizes of the parts and wherever the numbers are.
// Errors:       a rank whose process ends makes the sums of all fail within 100 ms, as does one
//               that enters the memory anew; a rank that makes no progress does so at the deadline.
// Lifetime:     the destructor leaves the communicator. Until this rank enters again, others can
//               finish the sums to which it has contributed all: they use the memory only.
#pragma once

#include "kernels/collectives/communicator.hpp"
#include "kernels/executors/team.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace troupe::kernels {

struct shared_communicator_options {
  wait_options wait;
  /// Losses of ranks so far, as the caller counts them. Ranks form a communicator only with ranks
  /// of the same number.
  std::uint32_t losses = 0;
  /// Time for all ranks to come.
  std::chrono::milliseconds forming{30'000};
  /// Forming ends soon after this returns false; empty: it goes on.
  std::function<bool()> wanted;
  /// Gets the ranks that are missing after `waiting_told`, and again each time it has passed; then
  /// an empty list once they are there or not wanted.
  std::function<void(const std::vector<std::uint32_t>& missing)> waits;
  std::chrono::milliseconds waiting_told{3'000};
  /// A sum fails after this time without progress of an awaited rank.
  std::chrono::milliseconds deadline{30'000};
};

class shared_communicator final : public communicator {
public:
  /// Waits until all ranks are there. Borrowed: `memory`; this rank's room stays untouched. Ranks
  /// may begin, give up and begin again at any time. Requires: no other thread or process is this
  /// rank. Errors: timed_out (names a rank that did not come; or the communicator is not wanted).
  static result<std::unique_ptr<shared_communicator>>
  form(team_memory& memory, std::uint32_t rank, const shared_communicator_options& options = {});

  std::uint32_t rank() const override { return rank_; }
  std::uint32_t ranks() const override { return memory_.ranks(); }
  void begin(std::span<const std::span<float>> parts) override;
  void ready(std::uint32_t part) override;
  result<void> finish() override;
  result<void> carry_out(const schedule& plan, std::span<float> numbers) override;
  result<void> broadcast(std::uint32_t root, std::span<float> numbers) override;

private:
  shared_communicator(team_memory& memory, std::uint32_t rank,
                      const shared_communicator_options& options)
      : memory_(memory), rank_(rank), options_(options) {}
  result<void> form();
  /// Waits in the member's round. Returns false if the round is over.
  result<bool> all_come();
  std::vector<std::uint32_t> missing_ranks() const;
  void tell(const std::vector<std::uint32_t>& missing) const;
  result<void> run(const team_plan& plan, std::span<float> numbers, std::uint64_t part);

  team_memory& memory_;
  const std::uint32_t rank_;
  const shared_communicator_options options_;
  std::chrono::steady_clock::time_point until_, tell_at_; ///< While it forms.
  std::optional<team_member> member_;
  std::map<std::size_t, team_plan> plans_; ///< By the count of numbers.
  std::vector<std::span<float>> parts_;    ///< Of the sum.
  std::uint64_t calls_ = 0;                ///< Sums and other calls so far.
};

} // namespace troupe::kernels
