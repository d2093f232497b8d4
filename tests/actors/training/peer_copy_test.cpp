#include "actors/training/peer_copy.hpp"

#include "tests/actors/training/flat_copy_fixture.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::peer_copy_test {

using namespace test;

namespace {

peer_copy made_of(const job_spec& job, const flat_copy& first, encoding how = encoding::f32) {
  auto made = peer_copy::made(job, first, std::make_shared<buffer_pool>(), {}, how);
  REQUIRE(made);
  return *std::move(made);
}

/// Returns three peers with different values.
std::vector<peer_copy> three_peers(const job_spec& job, encoding how = encoding::f32) {
  std::vector<peer_copy> all;
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    all.push_back(made_of(job, first_copy(job, seed), how));
  return all;
}

std::vector<float> values_of(peer_copy& peer) { return floats_of(peer.whole().values); }

/// Returns the sum over peers of each element.
std::vector<double> sums(std::vector<peer_copy>& peers) {
  std::vector<double> all;
  for (auto& each : peers) {
    const auto values = values_of(each);
    all.resize(values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      all[i] += static_cast<double>(values[i]);
  }
  return all;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

/// First element of the frozen table among all values, and the one behind it.
constexpr std::uint64_t frozen_first = 5 + wide, frozen_end = frozen_first + 5000;

std::vector<float> frozen_of(peer_copy& peer) {
  const auto all = values_of(peer);
  return {all.begin() + frozen_first, all.begin() + frozen_end};
}

/// Initial values are below 0.5: a float there has steps of 2^-25, and three roundings take place.
constexpr double rounding = 4 * 0x1p-25;

} // namespace

TEST_CASE("a step of a peer is the optimiser's step of a server") {
  const auto job = flat_job();
  auto store = fresh_store(job);
  auto peer = made_of(job, copy_of(job, store));
  for (std::uint64_t batch = 0; batch < 4; ++batch) {
    const auto push = gradient_of(job, batch);
    const auto before = values_of(peer);
    REQUIRE(peer.step(push));
    take_step(job, store, push);
    const auto theirs = copy_of(job, store);
    const auto mine = peer.whole();
    CHECK(floats_of(mine.values) == floats_of(theirs.values));
    CHECK(floats_of(mine.state) == floats_of(theirs.state));
    for (std::size_t i = 0; i < 5; ++i) // The table of sgd is the first one.
      CHECK(floats_of(mine.values)[i]
            == doctest::Approx(before[i] - 0.05f * push.pieces[0].values.get()[i]).epsilon(1e-6));
  }
}

TEST_CASE("a piece is cut at blocks, and elements outside of it stay") {
  const auto job = flat_job();
  auto peer = made_of(job, first_copy(job));
  const auto before = values_of(peer);
  push_request push;
  push.tables = {{1}};
  const std::uint64_t first = 4000, count = 4300; // The end of one block, all of the next, a part.
  push.pieces = {{{{1}, first, count}, tensor_with(std::vector<float>(count, 1.0f)).values}};
  REQUIRE(peer.step(push));
  const auto after = values_of(peer);
  for (std::uint64_t i = 0; i < after.size(); ++i) {
    const bool is_covered = i >= 5 + first && i < 5 + first + count;
    REQUIRE((after[i] != before[i]) == is_covered);
  }
}

TEST_CASE("a wrong gradient changes nothing") {
  const auto job = flat_job();
  auto peer = made_of(job, first_copy(job));
  const auto before = peer.whole();
  const auto refused = [&](std::uint32_t table, std::uint64_t first, std::uint64_t count,
                           float value, errc code) {
    auto push = gradient_of(job, 1); // Its other pieces are right.
    std::erase_if(push.pieces, [&](const piece& x) { return x.where.table.value == table; });
    push.pieces.push_back(
      {{{table}, first, count}, tensor_with(std::vector<float>(count, value)).values});
    const auto done = peer.step(push);
    REQUIRE_FALSE(done);
    CHECK(done.error().code == code);
    const auto after = peer.whole();
    CHECK(floats_of(after.values) == floats_of(before.values));
    CHECK(floats_of(after.state) == floats_of(before.state));
    return done.error().text;
  };
  CHECK(refused(4, 0, 1, 1, errc::shape_mismatch) == "the job has no table 4");
  CHECK(refused(2, 0, 5, 1, errc::shape_mismatch)
        == "a piece for table 'frozen', which is frozen: a stage must not add one");
  CHECK_FALSE(refused(0, 3, 3, 1, errc::shape_mismatch).empty()); // One element too many.
  CHECK_FALSE(refused(1, wide - 1, 2, 1, errc::shape_mismatch).empty());
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    CHECK(refused(1, 5000, 3, bad, errc::non_finite).find("table 'adam', element 5000")
          != std::string::npos);
}

TEST_CASE("a copy goes through another peer with its optimiser state and counts of steps") {
  const auto job = flat_job();
  auto peer = made_of(job, first_copy(job));
  for (std::uint64_t batch = 0; batch < 3; ++batch)
    REQUIRE(peer.step(gradient_of(job, batch)));
  auto successor = made_of(job, peer.whole());
  REQUIRE(peer.step(gradient_of(job, 3)));
  REQUIRE(successor.step(gradient_of(job, 3))); // adam divides by a function of the steps.
  CHECK(values_of(successor) == values_of(peer));
  CHECK(floats_of(successor.whole().state) == floats_of(peer.whole().state));
}

TEST_CASE("a copy of another size makes no peer") {
  const auto job = flat_job();
  auto first = first_copy(job);
  first.values = tensor_with(std::vector<float>(first.values.count - 1));
  const auto made = peer_copy::made(job, first, std::make_shared<buffer_pool>(), {});
  REQUIRE_FALSE(made);
  CHECK(made.error().code == errc::damaged);
  const auto peer = made_of(job, first_copy(job));
  CHECK_FALSE(peer.fits(first.values));
  CHECK(peer.fits(first_copy(job).values));
}

TEST_CASE("a peer reads ranges across blocks, and refuses what is not there") {
  const auto job = flat_job();
  auto peer = made_of(job, first_copy(job));
  const auto all = values_of(peer);
  pull_request pull;
  pull.ranges = {{{1}, 4090, 20}};
  const auto got = peer.read(pull);
  REQUIRE(got);
  std::uint64_t next = 4090;
  for (const auto& x : got->pieces) {
    CHECK(x.where.first == next);
    for (std::uint64_t i = 0; i < x.where.count; ++i)
      CHECK(x.values.get()[i] == all[5 + next + i]);
    next += x.where.count;
  }
  CHECK(next == 4110);
  pull.ranges = {{{4}, 0, 1}};
  CHECK_FALSE(peer.read(pull));
  pull.ranges = {{{0}, 0, 6}};
  CHECK_FALSE(peer.read(pull));
}

TEST_CASE("values for a neighbour are those of now, and earlier ones stay as they were") {
  const auto job = flat_job();
  auto peer = made_of(job, first_copy(job));
  const auto old = peer.sent();
  const auto before = floats_of(old);
  CHECK(before == values_of(peer));
  CHECK(peer.sent().values == old.values); // One array until they change.
  REQUIRE(peer.step(gradient_of(job, 1)));
  CHECK(floats_of(peer.sent()) == values_of(peer));
  CHECK(floats_of(peer.sent()) != before);
  CHECK(floats_of(old) == before);
  auto last = floats_of(peer.sent());
  const auto check_renewed = [&] {
    CHECK(floats_of(peer.sent()) == values_of(peer));
    CHECK(floats_of(peer.sent()) != last);
    last = floats_of(peer.sent());
  };
  const auto other = first_copy(job, 2).values;
  const weighted_values with[] = {{0.25f, other}};
  peer.mix(with);
  check_renewed();
  (void)peer.halve(other);
  check_renewed();
  peer.add(other);
  check_renewed();
}

TEST_CASE("a mixing step with symmetric weights keeps the sum over peers, to rounding") {
  const auto job = flat_job();
  auto peers = three_peers(job);
  const auto before = sums(peers);
  std::vector<parcel_tensor> sent;
  for (auto& each : peers)
    sent.push_back(each.sent());
  const float weights[3][3] = {{0, 0.5f, 0.125f}, {0.5f, 0, 0.25f}, {0.125f, 0.25f, 0}};
  for (std::size_t i = 0; i < 3; ++i) {
    std::vector<weighted_values> others;
    float own = 1;
    for (std::size_t j = 0; j < 3; ++j)
      if (j != i) {
        others.push_back({weights[i][j], sent[j]});
        own -= weights[i][j];
      }
    peers[i].mix(others);
    const auto mixed = values_of(peers[i]);
    for (std::size_t k = 0; k < 5 + wide; ++k) {
      double wanted = 0;
      for (std::size_t j = 0; j < 3; ++j)
        wanted += static_cast<double>(j == i ? own : weights[i][j])
                  * static_cast<double>(sent[j].values.get()[k]);
      REQUIRE(std::abs(mixed[k] - wanted) < rounding);
    }
  }
  CHECK(largest_difference(sums(peers), before) < 3 * rounding);
}

TEST_CASE("packed values of neighbours keep the sum over peers, too") {
  const auto job = flat_job();
  for (const auto how : {encoding::fp16, encoding::bf16, encoding::int8}) {
    CAPTURE(to_string(how));
    auto peers = three_peers(job, how);
    const auto before = sums(peers);
    std::vector<parcel_tensor> got;
    for (auto& each : peers) {
      const auto sent = each.sent();
      CHECK(sent.count < flat_values(job));
      CHECK(each.received({sent.values, sent.count}).has_value());
      CHECK_FALSE(each.received({sent.values, sent.count - 1}).has_value());
      got.push_back(*each.received(sent));
      CHECK(got.back().count == flat_values(job));
    }
    for (std::size_t i = 0; i < 3; ++i) {
      std::vector<weighted_values> others;
      for (std::size_t j = 0; j < 3; ++j)
        if (j != i)
          others.push_back({0.25f, got[j]});
      peers[i].mix(others);
    }
    CHECK(largest_difference(sums(peers), before) < 4 * rounding);
  }
}

TEST_CASE("two peers that halve and add meet in the middle, and their sum stays") {
  const auto job = flat_job();
  auto peers = three_peers(job);
  const auto before = sums(peers);
  const auto a = values_of(peers[0]), b = values_of(peers[1]);
  const auto change = peers[0].halve(peers[1].sent());
  CHECK(peers[1].fits(change));
  peers[1].add(change);
  const auto x = values_of(peers[0]), y = values_of(peers[1]);
  for (std::size_t i = 0; i < 5 + wide; ++i) {
    REQUIRE(std::abs(x[i] - (a[i] + b[i]) / 2) < static_cast<float>(rounding));
    REQUIRE(std::abs(y[i] - (a[i] + b[i]) / 2) < static_cast<float>(rounding));
  }
  CHECK(largest_difference(sums(peers), before) < 2 * rounding);
}

TEST_CASE("a change is added to values that have moved meanwhile, and the sum stays") {
  const auto job = flat_job();
  auto peers = three_peers(job);
  const auto before = sums(peers);
  const auto answer = peers[1].sent();
  const auto between = peers[2].halve(peers[1].sent()); // A third peer was quicker.
  peers[1].add(between);
  const auto change = peers[0].halve(answer);
  peers[1].add(change);
  CHECK(largest_difference(sums(peers), before) < 4 * rounding);
}

TEST_CASE("frozen tables and optimiser state are not mixed") {
  const auto job = flat_job();
  auto peers = three_peers(job);
  const auto before = frozen_of(peers[0]);
  CHECK(before != frozen_of(peers[1])); // Their seeds differ; in a job they are equal.
  REQUIRE(peers[0].step(gradient_of(job, 1)));
  const auto state = floats_of(peers[0].whole().state);
  const weighted_values with[] = {{0.5f, peers[1].sent()}};
  peers[0].mix(with);
  const auto change = floats_of(peers[0].halve(peers[2].sent()));
  CHECK(std::all_of(change.begin() + frozen_first, change.begin() + frozen_end,
                    [](float x) { return x == 0; }));
  peers[0].add(peers[1].sent());
  CHECK(frozen_of(peers[0]) == before);
  CHECK(floats_of(peers[0].whole().state) == state);
}

} // namespace troupe::peer_copy_test
