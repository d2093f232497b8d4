#include "kernels/collectives/shared_communicator.hpp"

#include "kernels/schedules/strategies.hpp"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

namespace troupe::kernels {

namespace {

using clock = std::chrono::steady_clock;

/// Time until a rank that waits for others looks again whether they are wanted.
constexpr std::chrono::milliseconds look_again{20};

errc code_of(team_outcome outcome) {
  switch (outcome) {
  case team_outcome::peer_lost: return errc::peer_lost;
  case team_outcome::peer_too_late: return errc::timed_out;
  default: return errc::shape_mismatch;
  }
}

} // namespace

result<std::unique_ptr<shared_communicator>>
shared_communicator::form(team_memory& memory, std::uint32_t rank,
                          const shared_communicator_options& options) {
  assert(rank < memory.ranks());
  std::unique_ptr<shared_communicator> made{new shared_communicator{memory, rank, options}};
  if (auto formed = made->form(); !formed)
    return formed.error();
  return made;
}

result<void> shared_communicator::form() {
  until_ = clock::now() + options_.forming;
  tell_at_ = clock::now() + options_.waiting_told;
  while (true) {
    member_.reset();
    member_.emplace(memory_, rank_,
                    team_options{options_.wait, options_.deadline, options_.losses});
    const auto come = all_come();
    if (!come) {
      tell({});
      return come.error();
    }
    if (*come) {
      tell({});
      return {};
    }
  }
}

result<bool> shared_communicator::all_come() {
  while (const auto missing = member_->missing()) {
    if (!member_->is_current())
      return false;
    if (options_.wanted && !options_.wanted())
      return {errc::timed_out, "this communicator is not wanted any more"};
    const auto now = clock::now();
    if (now >= until_)
      return {errc::timed_out, "rank " + std::to_string(*missing) + " did not come within "
                                 + std::to_string(options_.forming.count() / 1000) + " s"};
    if (now >= tell_at_) {
      tell(missing_ranks());
      tell_at_ = now + options_.waiting_told;
    }
    member_->await(*missing, look_again);
  }
  return member_->is_current();
}

std::vector<std::uint32_t> shared_communicator::missing_ranks() const {
  std::vector<std::uint32_t> missing;
  for (std::uint32_t rank = 0; rank < ranks(); ++rank)
    if (!member_->has_come(rank))
      missing.push_back(rank);
  return missing;
}

void shared_communicator::tell(const std::vector<std::uint32_t>& missing) const {
  if (options_.waits)
    options_.waits(missing);
}

void shared_communicator::begin(std::span<const std::span<float>> parts) {
  assert(parts_.empty());
  ++calls_;
  parts_.assign(parts.begin(), parts.end());
}

void shared_communicator::ready([[maybe_unused]] std::uint32_t part) {
  assert(part < parts_.size());
}

result<void> shared_communicator::finish() {
  const auto parts = std::exchange(parts_, {});
  for (auto part = parts.size(); part-- > 0;) {
    const auto numbers = parts[part];
    auto& plan = plans_[numbers.size()];
    if (plan.source.devices == 0)
      plan = plan_of_sum(ranks(), numbers.size_bytes());
    if (auto done = run(plan, numbers, part); !done)
      return done;
  }
  return {};
}

result<void> shared_communicator::carry_out(const schedule& plan, std::span<float> numbers) {
  assert(plan.staging == 0);
  ++calls_;
  return run(plan_for_team(plan), numbers, 0);
}

result<void> shared_communicator::broadcast(std::uint32_t root, std::span<float> numbers) {
  return carry_out(kernels::broadcast(ranks(), root, 1), numbers);
}

result<void> shared_communicator::run(const team_plan& plan, std::span<float> numbers,
                                      std::uint64_t part) {
  const auto outcome = member_->sum(plan, numbers, calls_ << 32 | part);
  if (outcome == team_outcome::done)
    return {};
  return {code_of(outcome), std::string{text_of(outcome)}};
}

} // namespace troupe::kernels
