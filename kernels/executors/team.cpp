#include "kernels/executors/team.hpp"

#include "kernels/vector_ops.hpp"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstring>

namespace troupe::kernels {

namespace {

/// Floats of a tile: tiles of a few ranks together stay in a first-level cache.
constexpr std::size_t tile_max = 2048;
/// Time to notice a rank whose process died.
constexpr std::chrono::milliseconds sleep_max{50};

template <class To, class From>
To* pointer_to(From address) {
  return reinterpret_cast<To*>(static_cast<std::uintptr_t>(address));
}

std::uint64_t address_of(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

} // namespace

std::string_view text_of(team_outcome outcome) {
  switch (outcome) {
  case team_outcome::done: return "done";
  case team_outcome::sizes_differ:
    return "the ranks have different counts of numbers; give all of them as many";
  case team_outcome::plans_differ:
    return "the ranks have different schedules, or one for another number of ranks";
  case team_outcome::labels_differ:
    return "the ranks add up different sums; let all of them do the same ones in the same order";
  case team_outcome::peer_lost: return "a rank has ended; begin again with a new team";
  case team_outcome::peer_too_late:
    return "a rank made no progress until the deadline; begin again with a new team";
  }
  return "unknown";
}

team_member::team_member(team_memory& memory, std::uint32_t rank, const team_options& options)
    : memory_(memory), ranks_(memory.ranks()), rank_(rank), options_(options) {
  assert(rank < ranks_);
  if (memory_.descriptor() >= 0)
    lock_ = memory_.lock_slot(rank_);
  memory_.line(rank_).locked = lock_ >= 0;
  round_ = memory_.enter(rank_, options_.generation);
}

team_member::~team_member() {
  auto& line = memory_.line(rank_);
  line.slot = rank_slot::left;
  line.done.wake();
  if (lock_ >= 0)
    close(lock_);
}

std::optional<std::uint32_t> team_member::missing() const {
  for (std::uint32_t rank = 0; rank < ranks_; ++rank)
    if (!has_come(rank))
      return rank;
  return std::nullopt;
}

bool team_member::has_come(std::uint32_t rank) const {
  const auto& line = memory_.line(rank);
  return line.entered.reached(round_) && line.generation == options_.generation;
}

void team_member::await(std::uint32_t rank, std::chrono::microseconds sleep_max) const {
  constexpr wait_options asleep{.spin = std::chrono::microseconds{0}};
  if (const auto& line = memory_.line(rank); !line.entered.reached(round_))
    line.entered.wait(round_, asleep, sleep_max);
  else // It has another generation. Each rank that enters wakes all.
    memory_.line(rank_).done.wait(base_ + 1, asleep, sleep_max);
}

team_outcome team_member::sum(const team_plan& plan, std::span<float> numbers,
                              std::uint64_t label) {
  if (failure() != team_outcome::done)
    return failure();
  if (plan.source.devices != ranks_)
    return fail(team_outcome::plans_differ);
  assert(plan.source.staging <= 1);
  ++sums_;
  const bool small = numbers.size() <= team_slot_floats;
  if (small)
    std::ranges::copy(numbers, memory_.slot(rank_, sums_ % 2).begin());
  announce(plan, numbers, small, label);
  if (!meet())
    return failure();
  if (const auto checked = check_entries(); checked != team_outcome::done)
    return fail(checked);
  if (small) {
    sum_slots(plan, numbers);
    return team_outcome::done;
  }
  return find_places(plan.source.staging) ? carry_out(plan, numbers.size())
                                          : sum_in_parts(plan, numbers);
}

void team_member::announce(const team_plan& plan, std::span<float> numbers, bool small,
                           std::uint64_t label) {
  auto& entry = memory_.line(rank_).entries[sums_ % 2];
  entry = {numbers.size(), plan.fingerprint, 0, 0, label};
  if (memory_.descriptor() < 0) {
    if (rank_ == 0 && plan.source.staging > 0 && !small)
      staging_.resize(numbers.size());
    entry.address = address_of(numbers.data());
    entry.staging = address_of(staging_.data());
  } else if (const auto offset = memory_.offset_of(numbers)) {
    entry.address = *offset;
    entry.staging = *memory_.offset_of(memory_.room(ranks_));
  }
}

bool team_member::find_places(std::uint32_t staging) {
  // Threads give addresses in this process; processes give offsets from the memory's beginning.
  const std::uint64_t begin = memory_.descriptor() < 0 ? 0 : address_of(memory_.begin());
  places_.clear();
  bool all = true;
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    all = all && entry_of(rank).address != 0;
    places_.push_back(pointer_to<float>(begin + entry_of(rank).address));
  }
  for (std::uint32_t place = 0; place < staging; ++place)
    places_.push_back(pointer_to<float>(begin + entry_of(0).staging));
  return all;
}

team_outcome team_member::check_entries() {
  const auto& own = entry_of(rank_);
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    if (entry_of(rank).label != own.label)
      return team_outcome::labels_differ;
    if (entry_of(rank).count != own.count)
      return team_outcome::sizes_differ;
    if (entry_of(rank).fingerprint != own.fingerprint)
      return team_outcome::plans_differ;
  }
  return team_outcome::done;
}

const team_entry& team_member::entry_of(std::uint32_t rank) const {
  return memory_.line(rank).entries[sums_ % 2];
}

void team_member::sum_slots(const team_plan& plan, std::span<float> numbers) {
  const std::size_t count = numbers.size();
  scratch_.resize(std::max<std::size_t>(scratch_.size(), (ranks_ + plan.source.staging) * count));
  const auto chunk_of = [&](std::uint32_t place, const chunk_range& range) {
    return std::span{scratch_}.subspan(place * count + range.begin, range.size);
  };
  for (std::uint32_t rank = 0; rank < ranks_; ++rank)
    std::ranges::copy(memory_.slot(rank, sums_ % 2).first(count),
                      chunk_of(rank, {0, count}).begin());
  for (const auto& step : plan.own_steps[rank_]) {
    const auto range = range_of_chunk(count, plan.source.chunks, step.chunk);
    if (step.kind == step_kind::reduce)
      add(chunk_of(step.to, range), chunk_of(step.from, range));
    else
      std::ranges::copy(chunk_of(step.from, range), chunk_of(step.to, range).begin());
  }
  std::ranges::copy(chunk_of(rank_, {0, count}), numbers.begin());
}

team_outcome team_member::sum_in_parts(const team_plan& plan, std::span<float> numbers) {
  places_.clear();
  for (std::uint32_t place = 0; place < ranks_ + plan.source.staging; ++place)
    places_.push_back(memory_.part(place).data());
  while (!numbers.empty()) {
    const auto part = numbers.first(std::min(numbers.size(), team_part_floats));
    std::memcpy(places_[rank_], part.data(), part.size_bytes());
    if (!meet())
      return failure();
    if (const auto outcome = carry_out(plan, part.size()); outcome != team_outcome::done)
      return outcome;
    std::memcpy(part.data(), places_[rank_], part.size_bytes());
    numbers = numbers.subspan(part.size());
  }
  return team_outcome::done;
}

team_outcome team_member::carry_out(const team_plan& plan, std::size_t count) {
  std::uint32_t done = 0;
  for (const auto& work : plan.works[rank_]) {
    for (const auto& wait : work.waits)
      if (!wait_for(wait.rank, base_ + wait.works))
        return failure();
    carry_out(work, range_of_chunk(count, plan.source.chunks, work.chunk));
    memory_.line(rank_).done.publish(base_ + ++done);
  }
  base_ += plan.works_max;
  return meet() ? team_outcome::done : failure();
}

void team_member::carry_out(const team_work& work, const chunk_range& range) {
  const std::size_t tile = work.steps.size() == 1 ? range.size : tile_max;
  for (std::size_t begin = 0; begin < range.size; begin += tile) {
    const std::size_t size = std::min(tile, range.size - begin);
    for (const auto& step : work.steps) {
      const std::span to{places_[step.to] + range.begin + begin, size};
      const std::span from{places_[step.from] + range.begin + begin, size};
      if (step.kind == step_kind::reduce)
        add(to, from);
      else
        std::memcpy(to.data(), from.data(), to.size_bytes());
    }
  }
}

bool team_member::meet() {
  memory_.line(rank_).done.publish(++base_);
  for (std::uint32_t other = 1; other < ranks_; ++other)
    if (!wait_for((rank_ + other) % ranks_, base_))
      return false;
  return true;
}

bool team_member::wait_for(std::uint32_t rank, std::uint32_t value) {
  auto& line = memory_.line(rank);
  // Of a later round, progress says nothing here.
  if (line.done.reached(value))
    return is_current();
  const auto until = std::chrono::steady_clock::now() + options_.deadline;
  while (true) {
    line.done.wait(value, options_.wait, std::min(sleep_max, options_.deadline));
    if (line.done.reached(value))
      return is_current();
    if (failure() != team_outcome::done)
      return false;
    const auto slot = line.slot.load();
    const bool gone = slot == rank_slot::left
                      || (slot == rank_slot::taken && line.locked && !memory_.slot_is_locked(rank));
    // The rank's last progress counts.
    if (gone && !line.done.reached(value))
      fail(team_outcome::peer_lost);
    else if (!gone && std::chrono::steady_clock::now() >= until)
      fail(team_outcome::peer_too_late);
  }
}

team_outcome team_member::fail(team_outcome why) {
  const auto own = std::uint64_t{round_} << 32 | static_cast<std::uint32_t>(why);
  auto known = memory_.failure().load();
  const auto is_older = [&] {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(known >> 32) - round_) < 0;
  };
  while (is_older() && !memory_.failure().compare_exchange_weak(known, own))
    continue;
  memory_.wake_all();
  return failure();
}

team_outcome team_member::failure() const {
  const auto known = memory_.failure().load();
  if (known >> 32 == round_)
    return static_cast<team_outcome>(known & 0xffffffff);
  return is_current() ? team_outcome::done : team_outcome::peer_lost;
}

} // namespace troupe::kernels
