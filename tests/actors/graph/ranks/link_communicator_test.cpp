#include "actors/graph/ranks/link_communicator.hpp"

#include "kernels/schedules/strategies.hpp"
#include "kernels/schedules/verify.hpp"
#include "serialization/wire.hpp"
#include "tests/kernels/every_strategy.hpp"
#include "tests/kernels/schedules_interpreter.hpp"

#include "doctest/doctest.h"

#include <fcntl.h>

#include <array>
#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace troupe::link_communicator_test {

namespace {

using namespace std::chrono_literals;
using numbers = std::vector<std::vector<float>>;

link_communicator_options options_of(bool tcp) {
  link_communicator_options made;
  made.links.unix_sockets = !tcp;
  return made;
}

struct meeting {
  explicit meeting(std::uint32_t ranks) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      listeners.push_back(*make_listener({"127.0.0.1", 0}));
      addresses.push_back(*local_endpoint(listeners.back()));
    }
  }

  auto form(std::uint32_t rank, const link_communicator_options& options) {
    const hello self{wire::protocol_version, 1, 7, {role::worker, rank, {rank + 1}}};
    return form_link_communicator(self, addresses, listeners[rank], options);
  }

  std::vector<int> listeners;
  std::vector<endpoint> addresses;
};

void on_threads(std::uint32_t ranks, const std::function<void(std::uint32_t)>& body) {
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back(body, rank);
  for (auto& thread : threads)
    thread.join();
}

numbers begin_of(std::uint32_t ranks, std::size_t count) {
  numbers made(ranks, std::vector<float>(count));
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    for (std::size_t i = 0; i < count; ++i)
      made[rank][i] = static_cast<float>((i * 7 + rank * 13) % 1000) / 3.0f;
  return made;
}

} // namespace

TEST_CASE("ranks_over_links_get_the_schedules_bytes_with_every_strategy") {
  for (const bool tcp : {false, true})
    for (const std::uint32_t ranks : {2u, 3u, 4u}) {
      // The largest counts have chunks that go by the arena, or leave in pieces.
      const std::array counts{std::size_t{0}, std::size_t{1}, std::size_t{1000},
                              std::size_t{600'000}};
      const auto plans = kernels::all_of(ranks, 2);
      CAPTURE(tcp);
      CAPTURE(ranks);
      meeting place{ranks};
      std::vector<std::string> wrong(ranks);
      on_threads(ranks, [&](std::uint32_t rank) {
        auto communicator = place.form(rank, options_of(tcp));
        if (!communicator) {
          wrong[rank] = communicator.error().text;
          return;
        }
        for (const auto& [name, plan] : plans)
          for (const auto count : counts) {
            if (plan.staging > 0)
              continue;
            auto buffers = begin_of(ranks, count);
            const auto summed = (*communicator)->carry_out(plan, buffers[rank]);
            if (!summed) {
              wrong[rank] = name + ": " + summed.error().text;
              return;
            }
            auto expected = begin_of(ranks, count);
            kernels::interpret(plan, expected);
            if (buffers[rank] != expected[rank])
              wrong[rank] = name + ": other bytes";
          }
      });
      for (const auto& each : wrong)
        CHECK_EQ(each, "");
    }
}

TEST_CASE("parts_that_become_ready_at_different_times_get_their_schedules_bytes") {
  constexpr std::uint32_t ranks = 3;
  // Some parts leave at once, some by the arena. Some exceed the bytes that may be on their way.
  const std::array counts{std::size_t{700'000}, std::size_t{1}, std::size_t{40'000}, std::size_t{0},
                          std::size_t{300'000}};
  for (const bool tcp : {false, true}) {
    CAPTURE(tcp);
    meeting place{ranks};
    std::vector<std::string> wrong(ranks);
    on_threads(ranks, [&](std::uint32_t rank) {
      auto communicator = *place.form(rank, options_of(tcp));
      std::mt19937 random{rank};
      std::vector<kernels::schedule> schedules;
      for (const auto count : counts)
        schedules.push_back(schedule_for_links(ranks, count * sizeof(float)));
      for (int round = 0; round < 10; ++round) {
        numbers buffers;
        for (const auto count : counts)
          buffers.emplace_back(count, std::numeric_limits<float>::quiet_NaN());
        communicator->begin(std::vector<std::span<float>>{buffers.begin(), buffers.end()});
        // Part 0 is left for finish(). Other ranks have other parts ready, or none.
        for (auto part = static_cast<std::uint32_t>(counts.size()); part-- > 0;) {
          buffers[part] = begin_of(ranks, counts[part])[rank];
          if (random() % 3 == 0)
            std::this_thread::sleep_for(2ms);
          if (part > 0 && random() % 4 > 0)
            communicator->ready(part);
        }
        if (const auto summed = communicator->finish(); !summed) {
          wrong[rank] = summed.error().text;
          return;
        }
        for (std::size_t i = 0; i < counts.size(); ++i) {
          auto expected = begin_of(ranks, counts[i]);
          kernels::interpret(schedules[i], expected);
          if (buffers[i] != expected[rank])
            wrong[rank] = "part " + std::to_string(i) + ": other bytes";
        }
      }
    });
    for (const auto& each : wrong)
      CHECK_EQ(each, "");
  }
}

TEST_CASE("a_part_is_added_up_while_the_caller_computes_the_others") {
  // Each rank needs the second part's sum before it has the values of its first part.
  meeting place{2};
  auto options = options_of(false);
  options.links.silence_timeout = 1h; // Signs of life would wake the links' thread by chance.
  on_threads(2, [&](std::uint32_t rank) {
    auto communicator = *place.form(rank, options);
    for (int round = 0; round < 5; ++round) { // Other events may wake it in the first rounds.
      std::vector<float> first{rank == 0 ? 5.0f : 0.0f};
      std::vector<float> late{rank == 0 ? 1.0f : 10.0f};
      const std::array parts{std::span{first}, std::span{late}};
      communicator->begin(parts);
      communicator->ready(1);
      std::atomic_ref<float> seen{late[0]}; // the communicator's thread writes it meanwhile.
      const auto until = std::chrono::steady_clock::now() + 10s;
      while (seen.load() < 11 && std::chrono::steady_clock::now() < until)
        std::this_thread::yield();
      first[0] += seen.load();
      CHECK(communicator->finish());
      CHECK_EQ(first[0], 27);
      CHECK_EQ(late[0], 11);
    }
  });
}

TEST_CASE("a_rank_that_ends_between_parts_ends_the_sum_of_the_others_and_lets_go_of_its_numbers") {
  for (const bool tcp : {false, true}) {
    meeting place{3};
    auto options = options_of(tcp);
    options.parting = 1min; // No rank waits that long for a rank that has not done its part.
    options.deadline = 20s;
    std::vector<errc> ends(3, errc{});
    on_threads(3, [&](std::uint32_t rank) {
      // The values are freed as soon as the communicator may no longer use them.
      auto values = std::make_unique<numbers>(2, std::vector<float>(3'000'000, 1.0f));
      auto communicator = *place.form(rank, options);
      const std::array parts{std::span{(*values)[0]}, std::span{(*values)[1]}};
      std::vector<float> one(1); // After this sum all ranks have come.
      auto summed = communicator->carry_out(kernels::central(3, 0, 1), one);
      if (summed) { // Otherwise another rank ended before this one came.
        communicator->begin(parts);
        communicator->ready(1);
        if (rank == 1) { // This rank ends while it computes.
          communicator.reset();
          values.reset();
          return;
        }
        summed = communicator->finish();
      }
      values.reset();
      if (!summed)
        ends[rank] = summed.error().code;
      std::this_thread::sleep_for(20ms); // Time to see a communicator that still uses the values.
    });
    CHECK_EQ(ends[0], errc::peer_lost);
    CHECK_EQ(ends[2], errc::peer_lost);
  }
}

TEST_CASE("ranks_with_another_number_of_parts_fail") {
  meeting place{2};
  std::vector<std::string> texts(2);
  on_threads(2, [&](std::uint32_t rank) {
    auto communicator = *place.form(rank, options_of(false));
    numbers values(2, std::vector<float>(10));
    const std::array parts{std::span{values[0]}, std::span{values[1]}};
    communicator->begin(std::span{parts}.first(1 + rank));
    const auto summed = communicator->finish();
    texts[rank] = summed ? "" : summed.error().text;
  });
  CHECK_NE(texts[0], "");
  CHECK_NE(texts[1], "");
  CHECK((texts[0] + texts[1]).find("by another schedule") != std::string::npos);
}

TEST_CASE("a_schedule_for_links_is_a_proven_all_reduce") {
  for (const std::uint32_t ranks : {2u, 3u, 8u})
    for (const std::size_t bytes : {std::size_t{4}, std::size_t{1} << 20, std::size_t{40} << 20})
      CHECK_EQ(kernels::fault_of(schedule_for_links(ranks, bytes)).value_or("none"), "none");
}

TEST_CASE("a_rank_that_ends_ends_the_sum_of_the_others") {
  meeting place{3};
  std::vector<errc> ends(3, errc{});
  on_threads(3, [&](std::uint32_t rank) {
    auto communicator = *place.form(rank, options_of(false));
    const auto plan = kernels::block(3, 1);
    std::vector<float> values(100'000);
    auto summed = communicator->carry_out(plan, values);
    if (rank == 1)
      return;
    if (summed) // Otherwise another rank has already failed and ended.
      summed = communicator->carry_out(plan, values);
    const auto again = communicator->carry_out(plan, values);
    if (!summed && !again && again.error().code == summed.error().code)
      ends[rank] = summed.error().code;
  });
  CHECK_EQ(ends[0], errc::peer_lost);
  CHECK_EQ(ends[2], errc::peer_lost);
}

TEST_CASE("a_rank_that_has_done_its_part_ends_without_disturbing_the_others") {
  // In each round another rank has its result first, while many megabytes are on their way.
  for (std::uint32_t round = 0; round < 8; ++round) {
    meeting place{3};
    std::vector<std::string> wrong(3);
    on_threads(3, [&](std::uint32_t rank) {
      auto communicator = *place.form(rank, options_of(round % 2 == 0));
      std::vector<float> values(500'000, 1.0f);
      const auto plan = kernels::central(3, round % 3, 4);
      if (const auto summed = communicator->carry_out(plan, values); !summed)
        wrong[rank] = summed.error().text;
      else if (values != std::vector<float>(values.size(), 3.0f))
        wrong[rank] = "another sum";
    });
    for (const auto& each : wrong)
      CHECK_EQ(each, "");
  }
}

TEST_CASE("a_rank_that_ends_before_a_sum_is_named") {
  meeting place{2};
  on_threads(2, [&](std::uint32_t rank) {
    auto communicator = *place.form(rank, options_of(false));
    if (rank == 1)
      return;
    std::vector<float> values(10);
    const auto summed = communicator->carry_out(kernels::block(2, 1), values);
    CHECK_EQ(summed ? "" : summed.error().text, "rank 1 is lost: it ended");
  });
}

TEST_CASE("a_rank_that_takes_no_part_is_waited_for_until_the_deadline") {
  meeting place{2};
  auto options = options_of(false);
  options.deadline = 100ms;
  std::atomic<bool> over = false;
  on_threads(2, [&](std::uint32_t rank) {
    auto communicator = *place.form(rank, options);
    if (rank == 1) {
      over.wait(false);
      return;
    }
    std::vector<float> values(10);
    const auto summed = communicator->carry_out(kernels::block(2, 1), values);
    CHECK_EQ(summed.error().code, errc::timed_out);
    over = true;
    over.notify_all();
  });
}

TEST_CASE("ranks_over_links_with_other_counts_or_schedules_fail") {
  for (const bool other_plan : {false, true}) {
    meeting place{2};
    std::vector<std::string> texts(2);
    on_threads(2, [&](std::uint32_t rank) {
      auto communicator = *place.form(rank, options_of(false));
      std::vector<float> values(rank == 1 && !other_plan ? 11 : 10);
      const auto plan = rank == 1 && other_plan ? kernels::block(2, 2) : kernels::block(2, 1);
      const auto summed = communicator->carry_out(plan, values);
      texts[rank] = summed ? "" : summed.error().text;
    });
    // One rank may have seen only the other's end.
    CHECK_NE(texts[0], "");
    CHECK_NE(texts[1], "");
    CHECK((texts[0] + texts[1]).find(other_plan ? "by another schedule" : "numbers, this rank")
          != std::string::npos);
  }
}

TEST_CASE("a_rank_that_gives_up_and_begins_again_does_not_disturb_those_that_still_wait") {
  constexpr std::uint32_t ranks = 3;
  const auto plan = schedule_for_links(ranks, sizeof(float));
  meeting place{ranks};
  std::vector<std::string> wrong(ranks);
  std::atomic<bool> gave_up{false};
  on_threads(ranks, [&](std::uint32_t rank) {
    auto options = options_of(false);
    if (rank == 0) { // It has a link to rank 1; rank 2 is absent.
      const hello self{wire::protocol_version, 1, 7, {role::worker, 0, {1}}};
      for (int i = 0; i < 3; ++i) {
        auto once = options;
        const auto until = std::chrono::steady_clock::now() + 100ms;
        once.wanted = [&] { return std::chrono::steady_clock::now() < until; };
        const auto listener = fcntl(place.listeners[0], F_DUPFD_CLOEXEC, 0);
        CHECK_FALSE(form_link_communicator(self, place.addresses, listener, once));
      }
      gave_up = true;
      gave_up.notify_all();
    } else if (rank == 2) {
      gave_up.wait(false);
    }
    auto communicator = place.form(rank, options);
    std::vector<float> number{static_cast<float>(rank)};
    for (int sum = 0; communicator && sum < 2; ++sum)
      if (const auto summed = (*communicator)->carry_out(plan, number); !summed)
        wrong[rank] = summed.error().text;
    if (!communicator || number[0] != 9)
      wrong[rank] += communicator ? ", another sum" : communicator.error().text;
  });
  for (const auto& each : wrong)
    CHECK_EQ(each, "");
}

TEST_CASE("a_rank_that_begins_anew_ends_the_communicator_of_the_others") {
  meeting place{2};
  const auto plan = schedule_for_links(2, sizeof(float));
  std::atomic<bool> is_formed{false};
  std::string told;
  on_threads(2, [&](std::uint32_t rank) {
    auto options = options_of(true);
    const auto listener = fcntl(place.listeners[rank], F_DUPFD_CLOEXEC, 0);
    auto communicator = place.form(rank, options);
    REQUIRE(communicator);
    if (rank == 0) { // A second start of rank 0 comes while the first is alive.
      is_formed.wait(false);
      const hello self{wire::protocol_version, 1, 7, {role::worker, 0, {9}}};
      options.forming = 2s;
      CHECK_FALSE(form_link_communicator(self, place.addresses, listener, options));
    } else {
      is_formed = true;
      is_formed.notify_all();
      std::vector<float> number{1};
      const auto summed = (*communicator)->carry_out(plan, number);
      REQUIRE_FALSE(summed);
      told = summed.error().text;
    }
  });
  CHECK(told == "rank 0 is lost: it began anew");
}

TEST_CASE("who_needs_nothing_of_the_others_may_be_sums_ahead_of_them") {
  meeting place{2};
  const auto from_0 = broadcast_for_links(2, 0, 3 * sizeof(float));
  const auto together = schedule_for_links(2, 3 * sizeof(float));
  std::atomic<bool> is_ahead{false};
  std::vector<std::string> wrong(2);
  on_threads(2, [&](std::uint32_t rank) {
    auto communicator = *place.form(rank, options_of(true));
    const auto adds = [&](const kernels::schedule& how, float own, float wanted) {
      std::vector<float> numbers(3, own);
      const auto summed = communicator->carry_out(how, numbers);
      if (!summed || numbers != std::vector<float>(3, wanted))
        wrong[rank] += summed ? " other numbers" : " " + summed.error().text;
    };
    if (rank == 1) {
      is_ahead.wait(false);
      std::this_thread::sleep_for(50ms); // The chunks of rank 0 arrive.
    }
    for (int i = 1; i <= 3; ++i)
      adds(from_0, rank == 0 ? static_cast<float>(i) : 0, static_cast<float>(i));
    is_ahead = true;
    is_ahead.notify_all();
    adds(together, 4, 8);
  });
  CHECK_EQ(wrong[0], "");
  CHECK_EQ(wrong[1], "");
}

TEST_CASE("what_all_get_from_one_goes_in_chunks") {
  CHECK_EQ(broadcast_for_links(3, 1, 0).chunks, 1);
  CHECK_EQ(broadcast_for_links(3, 1, 1 << 18).chunks, 1);
  CHECK_EQ(broadcast_for_links(3, 1, (1 << 18) + 1).chunks, 2);
  CHECK_EQ(broadcast_for_links(3, 1, std::size_t{2} << 30).chunks, 8192);
}

TEST_CASE("a_rank_that_never_comes_is_named") {
  meeting place{2};
  auto options = options_of(false);
  options.forming = 100ms;
  const auto communicator = place.form(1, options);
  REQUIRE_FALSE(communicator);
  CHECK_EQ(communicator.error().code, errc::timed_out);
  CHECK(communicator.error().text.starts_with("rank 0 did not come within"));
}

TEST_CASE("a_rank_that_does_not_come_is_told_of_while_it_is_waited_for") {
  meeting place{2};
  auto options = options_of(false);
  options.waiting_told = 50ms;
  std::mutex mutex;
  std::vector<std::pair<std::string, std::string>> told;
  std::atomic<bool> is_told{false};
  options.waits = [&](const notice& what) {
    const std::lock_guard lock{mutex};
    told.emplace_back(what.topic, what.text);
    is_told = true;
    is_told.notify_all();
  };
  on_threads(2, [&](std::uint32_t rank) {
    if (rank == 1)
      is_told.wait(false);
    CHECK(place.form(rank, rank == 0 ? options : options_of(false)));
  });
  REQUIRE(told.size() >= 2);
  CHECK(told.front().first == "communicator");
  CHECK(told.front().second.starts_with("waits for worker 1"));
  CHECK(told.back() == std::pair<std::string, std::string>{"communicator", ""});
}

} // namespace troupe::link_communicator_test
