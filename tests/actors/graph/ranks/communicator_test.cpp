#include "kernels/collectives/communicator.hpp"

#include "actors/graph/ranks/link_communicator.hpp"
#include "kernels/collectives/shared_communicator.hpp"
#include "serialization/wire.hpp"
#include "tests/kernels/schedules_interpreter.hpp"

#include "doctest/doctest.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace troupe::communicator_test {

namespace {

using namespace std::chrono_literals;
using kernels::communicator;
using made_communicator = result<std::unique_ptr<communicator>>;

/// Where ranks meet, each on a thread of its own.
class place {
public:
  virtual ~place() = default;
  virtual made_communicator form(std::uint32_t rank, std::uint32_t generation) = 0;
  /// Returns a rank's numbers, of at most `floats_max`.
  virtual std::span<float> numbers(std::uint32_t rank) = 0;
  /// Returns what all ranks get for these numbers of each rank.
  virtual std::vector<float> expected(std::vector<std::vector<float>> of_ranks) const = 0;

  static constexpr std::size_t floats_max = 700'000;
};

class by_links final : public place {
public:
  explicit by_links(std::uint32_t ranks) : numbers_(ranks, std::vector<float>(floats_max)) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      listeners_.push_back(*make_listener({"127.0.0.1", 0}));
      addresses_.push_back(*local_endpoint(listeners_.back()));
    }
  }

  made_communicator form(std::uint32_t rank, std::uint32_t generation) override {
    const hello self{wire::protocol_version, 1 + generation, 7, {role::worker, rank, {rank + 1}}};
    return form_link_communicator(self, addresses_, fcntl(listeners_[rank], F_DUPFD_CLOEXEC, 0));
  }

  std::span<float> numbers(std::uint32_t rank) override { return numbers_[rank]; }

  std::vector<float> expected(std::vector<std::vector<float>> of_ranks) const override {
    kernels::interpret(schedule_for_links(static_cast<std::uint32_t>(of_ranks.size()),
                                          of_ranks[0].size() * sizeof(float)),
                       of_ranks);
    return of_ranks[0];
  }

private:
  std::vector<int> listeners_;
  std::vector<endpoint> addresses_;
  std::vector<std::vector<float>> numbers_;
};

class in_memory final : public place {
public:
  in_memory(std::uint32_t ranks, bool in_rooms)
      : in_rooms_(in_rooms), numbers_(ranks, std::vector<float>(in_rooms ? 0 : floats_max)) {
    const auto made = kernels::team_memory::of_processes(ranks, in_rooms ? floats_max : 0);
    REQUIRE(made);
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      memory_.push_back(*kernels::team_memory::attach(made->descriptor()));
  }

  made_communicator form(std::uint32_t rank, std::uint32_t generation) override {
    kernels::shared_communicator_options options;
    options.wait.yield = true;
    options.losses = generation;
    auto made = kernels::shared_communicator::form(memory_[rank], rank, options);
    if (!made)
      return made.error();
    return std::unique_ptr<communicator>{*std::move(made)};
  }

  std::span<float> numbers(std::uint32_t rank) override {
    return in_rooms_ ? memory_[rank].room(rank).first(floats_max) : std::span{numbers_[rank]};
  }

  std::vector<float> expected(std::vector<std::vector<float>> of_ranks) const override {
    auto sum = of_ranks[0];
    for (std::size_t rank = 1; rank < of_ranks.size(); ++rank)
      for (std::size_t i = 0; i < sum.size(); ++i)
        sum[i] += of_ranks[rank][i];
    return sum;
  }

private:
  bool in_rooms_;
  std::vector<kernels::team_memory> memory_;
  std::vector<std::vector<float>> numbers_;
};

/// Calls `body` with each implementation.
void with_each(std::uint32_t ranks, const std::function<void(place&)>& body) {
  for (const std::string kind : {"links", "rooms", "private numbers"}) {
    CAPTURE(kind);
    CAPTURE(ranks);
    if (kind == "links") {
      by_links where{ranks};
      body(where);
    } else {
      in_memory where{ranks, kind == "rooms"};
      body(where);
    }
  }
}

/// Runs `body` on a thread for each rank. A text that is not empty says what went wrong there.
void on_ranks(std::uint32_t ranks, const std::function<std::string(std::uint32_t)>& body) {
  std::vector<std::string> wrong(ranks);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] { wrong[rank] = body(rank); });
  for (auto& thread : threads)
    thread.join();
  for (const auto& each : wrong)
    CHECK_EQ(each, "");
}

/// Sums of thirds depend on their order.
std::vector<float> begin_of(std::uint32_t rank, std::size_t count, std::size_t round) {
  std::vector<float> made(count);
  for (std::size_t i = 0; i < count; ++i)
    made[i] = static_cast<float>((i * 7 + rank * 13 + round) % 1000) / 3.0f;
  return made;
}

constexpr std::array<std::size_t, 6> counts{0, 1, 2048, 2049, 40'000, 500'000};

} // namespace

TEST_CASE("all_ranks_get_the_sum_in_the_order_of_the_implementation") {
  for (const std::uint32_t ranks : {1u, 2u, 3u, 4u})
    with_each(ranks, [&](place& where) {
      on_ranks(ranks, [&](std::uint32_t rank) -> std::string {
        auto communicator = where.form(rank, 0);
        if (!communicator)
          return communicator.error().text;
        if ((*communicator)->rank() != rank || (*communicator)->ranks() != ranks)
          return "other numbers of ranks";
        for (const auto count : counts) {
          std::vector<std::vector<float>> all;
          for (std::uint32_t other = 0; other < ranks; ++other)
            all.push_back(begin_of(other, count, 0));
          const auto numbers = where.numbers(rank).first(count);
          std::ranges::copy(all[rank], numbers.begin());
          if (const auto summed = (*communicator)->sum(numbers); !summed)
            return summed.error().text;
          if (!std::ranges::equal(numbers, where.expected(all)))
            return "other bytes of " + std::to_string(count);
        }
        return "";
      });
    });
}

TEST_CASE("parts_get_their_sums_in_whatever_order_they_become_ready") {
  constexpr std::uint32_t ranks = 3;
  constexpr std::array<std::size_t, 4> sizes{300'000, 1, 40'000, 0};
  with_each(ranks, [&](place& where) {
    on_ranks(ranks, [&](std::uint32_t rank) -> std::string {
      auto communicator = where.form(rank, 0);
      if (!communicator)
        return communicator.error().text;
      std::mt19937 random{rank};
      for (std::size_t round = 0; round < 10; ++round) {
        std::vector<std::span<float>> parts;
        std::size_t at = 0;
        for (const auto size : sizes) {
          parts.push_back(where.numbers(rank).subspan(at, size));
          at += (size + 15) / 16 * 16;
        }
        (*communicator)->begin(parts);
        for (auto part = static_cast<std::uint32_t>(sizes.size()); part-- > 0;) {
          std::ranges::copy(begin_of(rank, sizes[part], round), parts[part].begin());
          if (random() % 3 == 0)
            std::this_thread::sleep_for(1ms);
          if (part > 0 && random() % 4 > 0)
            (*communicator)->ready(part);
        }
        if (const auto summed = (*communicator)->finish(); !summed)
          return summed.error().text;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
          std::vector<std::vector<float>> all;
          for (std::uint32_t other = 0; other < ranks; ++other)
            all.push_back(begin_of(other, sizes[i], round));
          if (!std::ranges::equal(parts[i], where.expected(all)))
            return "other bytes in part " + std::to_string(i);
        }
      }
      return "";
    });
  });
}

TEST_CASE("all_ranks_get_one_number_of_each_and_the_roots_numbers_bit_for_bit") {
  constexpr std::uint32_t ranks = 3;
  constexpr std::uint64_t bits = 0x7fa00001'7fc00000; // Two floats that are no numbers.
  with_each(ranks, [&](place& where) {
    on_ranks(ranks, [&](std::uint32_t rank) -> std::string {
      auto communicator = where.form(rank, 0);
      if (!communicator)
        return communicator.error().text;
      const auto all = (*communicator)->gather(bits + rank);
      if (!all || *all != std::vector{bits, bits + 1, bits + 2})
        return "other numbers";
      for (std::uint32_t root = 0; root < ranks; ++root)
        for (const auto count : counts) {
          auto numbers = begin_of(rank, count, root); // Private to the rank.
          if (const auto done = (*communicator)->broadcast(root, numbers); !done)
            return done.error().text;
          if (numbers != begin_of(root, count, root))
            return "not the root's numbers";
        }
      return "";
    });
  });
}

TEST_CASE("a_rank_that_leaves_out_a_part_makes_the_sum_fail") {
  for (const std::size_t other_size : {std::size_t{100}, std::size_t{5000}})
    with_each(2, [&](place& where) {
      std::array<errc, 2> codes{};
      on_ranks(2, [&](std::uint32_t rank) -> std::string {
        auto communicator = where.form(rank, 0);
        if (!communicator)
          return communicator.error().text;
        const auto numbers = where.numbers(rank);
        const std::array parts{numbers.first(100), numbers.subspan(5120, other_size)};
        (*communicator)->begin(std::span{parts}.first(2 - rank));
        const auto summed = (*communicator)->finish();
        if (!summed)
          codes[rank] = summed.error().code;
        return summed ? "a sum without a part of rank 1" : "";
      });
      // One of them may have seen the other one end.
      CHECK((codes[0] == errc::shape_mismatch || codes[1] == errc::shape_mismatch));
    });
}

TEST_CASE("a_rank_that_does_something_else_makes_the_call_fail") {
  with_each(2, [&](place& where) {
    on_ranks(2, [&](std::uint32_t rank) -> std::string {
      auto communicator = where.form(rank, 0);
      if (!communicator)
        return communicator.error().text;
      const auto numbers = where.numbers(rank).first(4);
      const bool failed = rank == 0 ? !(*communicator)->sum(numbers) : !(*communicator)->gather(1);
      return failed ? "" : "a sum and a gather went together";
    });
  });
}

TEST_CASE("a_communicator_that_lost_a_rank_fails_and_is_followed_by_another_one") {
  constexpr std::uint32_t ranks = 3;
  constexpr std::uint32_t generations = 5;
  with_each(ranks, [&](place& where) {
    std::array<std::atomic<std::uint32_t>, generations> done{};
    on_ranks(ranks, [&](std::uint32_t rank) -> std::string {
      for (std::uint32_t generation = 0; generation < generations; ++generation) {
        auto communicator = where.form(rank, generation);
        if (!communicator)
          return communicator.error().text;
        const auto numbers = where.numbers(rank).first(30'000);
        std::ranges::fill(numbers, static_cast<float>(rank + generation));
        if (const auto summed = (*communicator)->sum(numbers); !summed)
          return summed.error().text;
        if (numbers[29'999] != static_cast<float>(3 + 3 * generation))
          return "another sum";
        ++done[generation];
        if (rank == generation % ranks) {
          // Only then it leaves, and comes back: to enter again ends what others have not seen.
          while (done[generation] < ranks)
            std::this_thread::yield();
          continue;
        }
        const auto failed = (*communicator)->sum(numbers);
        if (failed || failed.error().code != errc::peer_lost)
          return failed ? "a sum without a rank" : failed.error().text;
      }
      return "";
    });
  });
}

} // namespace troupe::communicator_test
