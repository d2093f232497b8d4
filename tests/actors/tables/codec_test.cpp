#include "actors/tables/codec.hpp"

#include "actors/tables/packing.hpp"
#include "serialization/layout.hpp"
#include "tests/actors/router_fixture.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace codec_test {

using namespace troupe;
using namespace troupe::test;

namespace {

codec_options both(compression how) { return {{how, how}, encoding::f32}; }

push_request random_push(const job_spec& job, std::uint32_t seed, std::uint64_t batch = 0) {
  auto made = whole_push(job, batch);
  std::mt19937 random{seed};
  std::normal_distribution<float> draw;
  for (auto& x : made.pieces) {
    const auto own = numbers(x.where.count);
    std::generate_n(own.get(), x.where.count, [&] { return draw(random); });
    x.values = own;
  }
  return made;
}

/// Returns the values of the pieces, one array for each table.
std::vector<std::vector<double>> whole(const job_spec& job, const std::vector<piece>& pieces) {
  std::vector<std::vector<double>> made;
  for (const auto& table : job.tables)
    made.emplace_back(table.size());
  for (const auto& x : pieces)
    std::copy_n(x.values.get(), x.where.count,
                made[x.where.table.value].begin() + static_cast<std::ptrdiff_t>(x.where.first));
  return made;
}

std::vector<std::byte> bytes_of(const push_request& push) {
  std::vector<std::byte> made;
  for (const auto& x : push.packed)
    made.insert(made.end(), x.span().begin(), x.span().end());
  return made;
}

constexpr compression lossy[] = {{encoding::fp16, 0},   {encoding::bf16, 0},
                                 {encoding::int8, 0},   {encoding::onebit, 0},
                                 {encoding::topk, 0.1}, {encoding::randomk, 0.1}};

} // namespace

TEST_CASE("a_push_is_packed_block_by_block") {
  const auto job = routed_job();
  for (const auto& how : lossy) {
    codec coder{job, both(how)};
    auto push = whole_push(job);
    coder.pack(push);
    CHECK(push.pieces.empty());
    REQUIRE(push.packed.size() == 4);
    const std::uint64_t firsts[] = {0, 4096, 8192, 0}, counts[] = {4096, 4096, 1808, 3};
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(push.packed[i].where == range{{i < 3 ? 0u : 1u}, firsts[i], counts[i]});
      CHECK(push.packed[i].how == how.how);
      CHECK(push.packed[i].size_bytes == packed_bytes(how, counts[i]));
    }
  }
}

TEST_CASE("each_table_has_its_own_encoding") {
  const auto job = routed_job();
  codec coder{job, {{{encoding::int8, 0}, {}}, encoding::f32}};
  auto push = whole_push(job);
  const auto same = push.pieces[1].values;
  coder.pack(push);
  REQUIRE(push.pieces.size() == 1);
  CHECK(push.pieces[0].values == same); // The values were not copied.
  CHECK(push.packed.size() == 3);
}

TEST_CASE("what_was_unpacked_and_what_is_kept_are_the_gradients") {
  const auto job = routed_job();
  for (const auto& how : lossy) {
    if (!how.keeps_residual())
      continue;
    CAPTURE(to_string(how));
    codec coder{job, both(how)}, server{job};
    std::vector<std::vector<double>> pushed, arrived;
    for (const auto& table : job.tables) {
      pushed.emplace_back(table.size());
      arrived.emplace_back(table.size());
    }
    const auto add = [&](std::vector<std::vector<double>>& to, const push_request& push) {
      const auto values = whole(job, push.pieces);
      for (std::size_t t = 0; t < to.size(); ++t)
        for (std::size_t i = 0; i < to[t].size(); ++i)
          to[t][i] += values[t][i];
    };
    const auto step = [&](push_request push) {
      add(pushed, push);
      coder.pack(push);
      REQUIRE(server.unpack(push));
      CHECK(push.packed.empty());
      add(arrived, push);
    };
    for (std::uint32_t i = 0; i < 20; ++i)
      step(random_push(job, i, i));
    const auto apart = [&] {
      double most = 0;
      for (std::size_t t = 0; t < pushed.size(); ++t)
        for (std::size_t i = 0; i < pushed[t].size(); ++i)
          most = std::max(most, std::fabs(pushed[t][i] - arrived[t][i]));
      return most;
    };
    CHECK(apart() > 0.5); // The residual holds something.
    // Pushes of zeros bring the residual to the server.
    for (std::uint32_t i = 0; i < 400; ++i) {
      auto zeros = whole_push(job, 100 + i);
      for (auto& x : zeros.pieces) {
        const auto own = numbers(x.where.count);
        std::fill_n(own.get(), x.where.count, 0.0f);
        x.values = own;
      }
      step(std::move(zeros));
    }
    CHECK(apart() < (how.how == encoding::onebit ? 0.5 : 1e-4));
  }
}

TEST_CASE("without_error_feedback_equal_batches_give_equal_bytes") {
  const auto job = routed_job();
  for (const auto& how : lossy) {
    codec first{job, both(how)}, second{job, both(how)};
    auto other = random_push(job, 1, 7);
    second.pack(other); // The second codec has another residual.
    auto a = random_push(job, 2, 8), b = random_push(job, 2, 8);
    first.pack(a);
    second.pack(b);
    CHECK((bytes_of(a) == bytes_of(b)) == !how.keeps_residual());
  }
}

TEST_CASE("what_is_drawn_differs_between_batches_and_blocks") {
  auto job = routed_job();
  codec coder{job, both({encoding::int8, 0})};
  auto a = random_push(job, 1, 7), b = random_push(job, 1, 8);
  coder.pack(a);
  coder.pack(b);
  CHECK(bytes_of(a) != bytes_of(b));
  job.seed = 99;
  codec other{job, both({encoding::int8, 0})};
  auto c = random_push(job, 1, 7);
  other.pack(c);
  CHECK(bytes_of(a) != bytes_of(c));
}

TEST_CASE("what_is_kept_can_be_let_go") {
  const auto job = routed_job();
  codec coder{job, both({encoding::topk, 0.1})}, fresh{job, both({encoding::topk, 0.1})};
  CHECK(!coder.forget());
  auto push = random_push(job, 1);
  coder.pack(push);
  CHECK(coder.forget());
  CHECK(!coder.forget());
  auto a = random_push(job, 2), b = random_push(job, 2);
  coder.pack(a);
  fresh.pack(b);
  CHECK(bytes_of(a) == bytes_of(b));
}

TEST_CASE("values_are_packed_to_the_nearest_and_keep_their_stamps") {
  const auto job = routed_job();
  for (const auto how : {encoding::fp16, encoding::bf16, encoding::int8}) {
    codec server{job}, client{job};
    pull_reply answer{5, {}};
    for (const auto& where : {range{{0}, 0, 4096, 11}, range{{0}, 8192, 1808, 0}, range{{1}, 1, 2}})
      answer.pieces.push_back({where, numbers(where.count)});
    const auto before = whole(job, answer.pieces);
    server.pack(answer, how);
    CHECK(answer.pieces.empty());
    REQUIRE(answer.packed.size() == 3);
    CHECK(answer.packed[0].where.stamp == 11);
    REQUIRE(client.unpack(answer));
    CHECK(answer.pieces[0].where.stamp == 11);
    const auto after = whole(job, answer.pieces);
    for (std::size_t t = 0; t < before.size(); ++t)
      for (std::size_t i = 0; i < before[t].size(); ++i)
        CHECK(std::fabs(before[t][i] - after[t][i])
              <= (how == encoding::int8 ? 0.5001 / 127 * 10'000 : before[t][i] / 256));
  }
}

TEST_CASE("what_nobody_packs_is_refused") {
  const auto job = routed_job();
  codec coder{job, both({encoding::fp16, 0})}, server{job};
  const auto refused = [&](auto change) {
    auto push = whole_push(job);
    coder.pack(push);
    change(push.packed);
    const auto done = server.unpack(push);
    return !done && done.error().code == errc::malformed;
  };
  using all = std::vector<packed_piece>;
  CHECK(!refused([](all&) {}));
  CHECK(refused([](all& x) { x[0].where.table = {2}; }));
  CHECK(refused([](all& x) { x[0].where.first = 1; }));    // It reaches into the next block.
  CHECK(refused([](all& x) { x[2].where.first = 8193; })); // It is behind the end.
  CHECK(refused([](all& x) { x[0].where.first = ~std::uint64_t{0}; }));
  CHECK(refused([](all& x) { x[0].where.count = ~std::uint64_t{0}; }));
  CHECK(refused([](all& x) { x[0].where.count = 0; }));
  CHECK(refused([](all& x) { x[0].where.count = 4092; }));
  CHECK(refused([](all& x) { x[0].size_bytes -= 8; }));
  CHECK(refused([](all& x) { x[0].how = encoding::topk; }));
  CHECK(refused([](all& x) { x.insert(x.end(), x.begin(), x.end()); })); // Every piece comes twice.
}

TEST_CASE("codecs_say_what_servers_must_read") {
  CHECK(codec_options{}.sends() == 0);
  const codec_options some{{{}, {encoding::topk, 0.1}}, encoding::int8};
  CHECK(some.sends() == (only(encoding::topk) | only(encoding::int8)));
  CHECK(some.keeps_residual());
  CHECK(!codec_options{{{encoding::int8, 0}}, encoding::f32}.keeps_residual());
}

} // namespace codec_test
