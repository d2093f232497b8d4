// Tests arenas from both ends, each with the opposite end misbehaving. unix_link_test.cpp tests how
// a link uses them.
#include "actors/transport/frames/arena_reader.hpp"
#include "actors/transport/frames/arena_writer.hpp"
#include "actors/transport/frames/slot_allocator.hpp"
#include "tests/actors/transport_fixture.hpp"

#include "doctest/doctest.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <random>
#include <thread>

namespace arena_test {

using namespace troupe;
using namespace troupe::test;
using detail::arena_layout;
using detail::arena_reader;
using detail::arena_writer;
using detail::granule_bytes;

namespace {

constexpr std::size_t arena_bytes = std::size_t{1} << 20;

std::uint32_t slot_of(const wire::frame& what) {
  std::uint32_t slot = 0;
  std::memcpy(&slot, what.head.data() + detail::slot_number_offset, sizeof slot);
  return slot;
}

/// Both ends of one arena.
struct both_ends {
  explicit both_ends(std::size_t size_bytes = arena_bytes)
      : writer(arena_writer::make(size_bytes)) {
    const descriptor memory = writer->take_descriptor();
    kept = descriptor{::dup(memory.get())};
    reader = arena_reader::map(memory);
  }

  std::unique_ptr<arena_writer> writer;
  descriptor kept;
  std::shared_ptr<arena_reader> reader;
};

descriptor memory_of(std::size_t size_bytes, int seals, unsigned flags = 0) {
  descriptor made{::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags)};
  if (made && ::ftruncate(made.get(), static_cast<off_t>(size_bytes)) == 0 && seals != 0)
    ::fcntl(made.get(), F_ADD_SEALS, seals);
  return made;
}

/// What the system has given to the file.
std::size_t memory_in(const descriptor& memory) {
  struct stat about {};
  return ::fstat(memory.get(), &about) == 0 ? static_cast<std::size_t>(about.st_blocks) * 512 : 0;
}

constexpr int size_seals = F_SEAL_SHRINK | F_SEAL_GROW;

} // namespace

TEST_CASE("granules_are_given_out_once_and_come_back_whole") {
  constexpr std::uint32_t first = 3, end = 500;
  detail::slot_allocator granules{first, end};
  std::vector<int> owners(end);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> slots;
  std::minstd_rand random{7};
  for (int step = 0; step < 20'000; ++step) {
    const std::uint32_t count = 1 + random() % (step % 3 == 0 ? 60 : 5);
    if (random() % 5 < 3) {
      const auto slot = granules.take(count);
      if (!slot)
        continue;
      REQUIRE(*slot >= first);
      REQUIRE(*slot + count <= end);
      for (std::uint32_t i = *slot; i < *slot + count; ++i)
        REQUIRE(owners[i]++ == 0);
      slots.emplace_back(*slot, count);
    } else if (!slots.empty()) {
      std::swap(slots[random() % slots.size()], slots.back());
      const auto [slot, length] = slots.back();
      slots.pop_back();
      granules.give_back(slot, length);
      for (std::uint32_t i = slot; i < slot + length; ++i)
        --owners[i];
    }
  }
  for (const auto& [slot, length] : slots)
    granules.give_back(slot, length);
  CHECK(granules.take(end - first) == first);
}

TEST_CASE("a_body_is_read_where_it_was_written") {
  both_ends ends;
  REQUIRE(ends.reader);
  const reply_message pulled{
    1,
    {{}, pull_reply{1, {{{{1}, 0, 3001}, pattern(3001, 1)}, {{{2}, 7, 1000}, pattern(1000, 2)}}}}};
  const wire::frame sent = wire::encode(pulled);
  const std::size_t body_bytes = sent.size_bytes() - sent.head.size();
  const wire::frame placed = ends.writer->place(sent);
  CHECK(placed.body.empty());
  auto slot = ends.reader->slot(slot_of(placed), body_bytes);
  REQUIRE(slot);
  const std::vector<std::uint64_t> head(placed.head.size() / 8);
  std::memcpy(const_cast<std::uint64_t*>(head.data()), placed.head.data(), placed.head.size());
  const auto got = wire::decode(std::as_bytes(std::span{head}).subspan(wire::prefix_bytes),
                                std::move(*slot), body_bytes);
  REQUIRE(got);
  CHECK(frame_of(*got) == frame_of(pulled));
}

TEST_CASE("the_slot_that_was_let_go_last_is_used_next") {
  both_ends ends;
  const wire::frame sent = wire::encode(push_of(1, 5000));
  const std::uint32_t first = slot_of(ends.writer->place(sent));
  auto held = ends.reader->slot(first, 20'000);
  REQUIRE(held);
  const std::uint32_t second = slot_of(ends.writer->place(sent));
  CHECK(second != first);
  const auto copy = *held;
  held = std::shared_ptr<const std::byte>{};
  CHECK(slot_of(ends.writer->place(sent)) != first);
  const_cast<std::shared_ptr<const std::byte>&>(copy).reset();
  CHECK(slot_of(ends.writer->place(sent)) == first);
}

TEST_CASE("what_is_small_or_does_not_fit_stays_in_the_frame") {
  both_ends ends;
  const wire::frame small = wire::encode(push_of(1, 1000)),
                    large = wire::encode(push_of(1, 50'000)),
                    huge = wire::encode(push_of(1, 1 << 20));
  CHECK_FALSE(ends.writer->place(small).body.empty());
  CHECK_FALSE(ends.writer->place(huge).body.empty());
  std::size_t placed = 0;
  while (ends.writer->place(large).body.empty())
    ++placed;
  CHECK(placed == 5);
  CHECK(slot_of(ends.writer->place(large)) == 0);
}

TEST_CASE("an_arena_that_is_not_used_gives_its_memory_back_and_takes_it_again") {
  both_ends ends{std::size_t{64} << 20};
  REQUIRE(ends.reader);
  const wire::frame large = wire::encode(push_of(1, 1 << 20, 1)),
                    small = wire::encode(push_of(1, 2500, 2));
  const std::size_t large_bytes = 4 << 20, small_bytes = 10'000;
  const auto send = [&](const wire::frame& what, std::size_t bytes) {
    return *ends.reader->slot(slot_of(ends.writer->place(what)), bytes);
  };
  const auto trim = [&] {
    ends.writer->trim();
    ends.writer->trim();
  };
  trim();
  const std::size_t empty = memory_in(ends.kept);
  auto low = send(small, small_bytes), first = send(large, large_bytes),
       second = send(large, large_bytes), high = send(small, small_bytes);
  CHECK(memory_in(ends.kept) >= empty + 2 * large_bytes);
  trim(); // All slots are held.
  CHECK(memory_in(ends.kept) >= empty + 2 * large_bytes);
  second.reset();
  high.reset();
  send(small, small_bytes);
  ends.writer->trim(); // A frame was sent just now.
  CHECK(memory_in(ends.kept) >= empty + 2 * large_bytes);
  ends.writer->trim();
  CHECK(memory_in(ends.kept) <= empty + large_bytes + 8 * granule_bytes);
  CHECK(std::memcmp(first.get(), pattern(1 << 20, 1).get(), large_bytes) == 0);
  CHECK(std::memcmp(low.get(), pattern(2500, 2).get(), small_bytes) == 0);
  low.reset();
  first.reset();
  trim();
  CHECK(memory_in(ends.kept) == empty);
  low = send(small, small_bytes); // It gets the first slot, not one freed last.
  CHECK(memory_in(ends.kept) <= empty + 4 * granule_bytes);
  first = send(large, large_bytes);
  CHECK(memory_in(ends.kept) >= empty + large_bytes);
  CHECK(std::memcmp(first.get(), pattern(1 << 20, 1).get(), large_bytes) == 0);
  CHECK(std::memcmp(low.get(), pattern(2500, 2).get(), small_bytes) == 0);
}

TEST_CASE("an_arena_is_trimmed_while_others_send") {
  both_ends ends;
  std::atomic<bool> done = false;
  std::thread trimming{[&] {
    while (!done)
      ends.writer->trim();
  }};
  std::minstd_rand random{6};
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t count = 2048 + random() % 20'000;
    const wire::frame sent = ends.writer->place(wire::encode(push_of(1, count, 9)));
    REQUIRE(sent.body.empty());
    const auto slot = ends.reader->slot(slot_of(sent), 4 * count);
    REQUIRE(slot);
    REQUIRE(std::memcmp(slot->get(), pattern(64, 9).get(), 64 * sizeof(float)) == 0);
  }
  done = true;
  trimming.join();
}

TEST_CASE("a_slot_stays_readable_when_both_ends_are_gone") {
  std::shared_ptr<const std::byte> held;
  {
    both_ends ends;
    const auto slot =
      ends.reader->slot(slot_of(ends.writer->place(wire::encode(push_of(1, 9999)))), 4 * 9999);
    REQUIRE(slot);
    held = *slot;
  }
  CHECK(std::memcmp(held.get(), pattern(9999, 0).get(), 4 * 9999) == 0);
}

TEST_CASE("only_memory_of_a_sealed_and_sensible_size_is_mapped") {
  CHECK(arena_reader::map(memory_of(arena_bytes, size_seals)));
  CHECK_FALSE(arena_reader::map(memory_of(arena_bytes, 0)));
  CHECK_FALSE(arena_reader::map(memory_of(arena_bytes, F_SEAL_GROW)));
  CHECK_FALSE(arena_reader::map(memory_of(arena_bytes, F_SEAL_SHRINK)));
  CHECK_FALSE(arena_reader::map(memory_of(arena_bytes, size_seals | F_SEAL_WRITE)));
  CHECK_FALSE(arena_reader::map(memory_of(0, size_seals)));
  CHECK_FALSE(arena_reader::map(memory_of(granule_bytes, size_seals)));
  CHECK_FALSE(arena_reader::map(memory_of(arena_bytes + 1, size_seals)));
  CHECK_FALSE(arena_reader::map(memory_of(detail::arena_bytes_max + granule_bytes, size_seals)));
  CHECK_FALSE(arena_reader::map(memory_of(std::size_t{2} << 20, size_seals, MFD_HUGETLB)));
  CHECK_FALSE(arena_reader::map({}));
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  for (const int end : ends)
    CHECK_FALSE(arena_reader::map(descriptor{end}));
  for (const char* path : {"/", "/dev/null", "/dev/zero", "/proc/self/exe", "/proc/self/mem"})
    CHECK_FALSE(arena_reader::map(descriptor{::open(path, O_RDONLY | O_CLOEXEC)}));
}

TEST_CASE("an_arena_cannot_be_shrunk_under_its_reader") {
  both_ends ends;
  CHECK(::ftruncate(ends.kept.get(), 0) != 0);
  CHECK(::ftruncate(ends.kept.get(), 1 << 30) != 0);
  // A hole is memory like any other: it reads as zeros.
  REQUIRE(::fallocate(ends.kept.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, arena_bytes)
          == 0);
  const auto slot = ends.reader->slot(100, 50'000);
  REQUIRE(slot);
  CHECK(std::count(slot->get(), slot->get() + 50'000, std::byte{0}) == 50'000);
}

TEST_CASE("a_slot_outside_of_the_arena_is_malformed") {
  both_ends ends;
  const arena_layout layout{arena_bytes};
  const std::uint32_t last = layout.granules - 1;
  struct claim {
    std::uint32_t first;
    std::size_t bytes;
  };
  for (const claim& each :
       {claim{0, 1}, claim{layout.first - 1, 1}, claim{layout.first, 0},
        claim{last, granule_bytes + 1}, claim{last + 1, 1}, claim{0xffffffff, 1},
        claim{layout.first, arena_bytes}, claim{layout.first, wire::body_bytes_max},
        claim{last, ~std::size_t{0}}}) {
    CAPTURE(each.first);
    CAPTURE(each.bytes);
    const auto slot = ends.reader->slot(each.first, each.bytes);
    REQUIRE_FALSE(slot);
    CHECK(slot.error().code == errc::malformed);
  }
  CHECK(ends.reader->slot(last, granule_bytes));
  CHECK(ends.reader->slot(layout.first, arena_bytes - layout.words_bytes()));
}

TEST_CASE("slots_that_overlap_are_the_writers_own_harm") {
  both_ends ends;
  const auto one = ends.reader->slot(20, 100'000), same = ends.reader->slot(20, 100'000),
             inside = ends.reader->slot(25, 8192);
  REQUIRE(one);
  REQUIRE(same);
  REQUIRE(inside);
  CHECK(inside->get() == one->get() + 5 * granule_bytes);
}

TEST_CASE("a_reader_that_scribbles_over_the_words_only_harms_what_it_receives") {
  both_ends ends;
  const detail::mapped_memory words{ends.kept.get(), 0, arena_layout{arena_bytes}.words_bytes(),
                                    true};
  REQUIRE(words);
  std::atomic<bool> done = false;
  std::thread scribbler{[&] {
    std::minstd_rand random{3};
    while (!done) // Frees slots twice, early or before their use, and writes invalid words.
      std::atomic_ref{reinterpret_cast<std::uint32_t*>(words.data())[random() % 256]} =
        random() % 3;
  }};
  std::minstd_rand random{4};
  std::size_t placed = 0, outside = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t count = 2048 + random() % 20'000;
    const wire::frame sent = ends.writer->place(wire::encode(push_of(1, count)));
    if (!sent.body.empty())
      continue;
    ++placed;
    outside += !ends.reader->slot(slot_of(sent), 4 * count);
  }
  done = true;
  scribbler.join();
  CHECK(placed > 0);
  CHECK(outside == 0);
}

TEST_CASE("a_reader_that_never_lets_go_makes_the_writer_use_the_socket") {
  both_ends ends{std::size_t{64} << 20};
  const wire::frame sent = wire::encode(push_of(1, 2048));
  std::size_t placed = 0;
  while (ends.writer->place(sent).body.empty())
    REQUIRE(++placed <= 100'000);
  CHECK(placed == 1024);
}

} // namespace arena_test
