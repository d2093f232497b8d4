#include "actors/tables/key_index.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

namespace troupe::key_index_test {

TEST_CASE("keys are numbered in the order in which they come, through every growth") {
  std::mt19937_64 random{3};
  for (const double load_max : {0.3, 0.75}) {
    key_index index{std::make_shared<huge_page_pool>(), load_max};
    std::unordered_map<std::uint64_t, std::uint32_t> expected;
    for (int i = 0; i < 200'000; ++i) {
      const std::uint64_t key = i == 1000 ? 0 : random() % 100'000 * (random() % 2 ? 1 : 1 << 20);
      const auto number = expected.emplace(key, expected.size()).first->second;
      REQUIRE(index.find_or_add(key, row_hash(key)) == number);
    }
    REQUIRE(index.size() == expected.size());
    for (const auto& [key, number] : expected)
      REQUIRE(index.find(key, row_hash(key)) == number);
    for (std::uint64_t key = 1; key < 10'000; ++key)
      REQUIRE(index.find(~key, row_hash(~key)) == key_index::absent);
  }
}

TEST_CASE("the key 0 is a key like others, also beside free slots") {
  key_index index{std::make_shared<huge_page_pool>()};
  CHECK(index.find(0, row_hash(0)) == key_index::absent);
  CHECK(index.find_or_add(7, row_hash(0)) == 0); // Key 7 is in the bucket of key 0.
  CHECK(index.find(0, row_hash(0)) == key_index::absent);
  CHECK(index.find_or_add(0, row_hash(0)) == 1);
  CHECK(index.find(0, row_hash(0)) == 1);
}

TEST_CASE("keys with equal hashes are told apart") {
  key_index index{std::make_shared<huge_page_pool>()};
  for (std::uint64_t key = 0; key < 40; ++key)
    REQUIRE(index.find_or_add(key, ~std::uint64_t{0}) == key);
  for (std::uint64_t key = 0; key < 40; ++key)
    REQUIRE(index.find(key, ~std::uint64_t{0}) == key);
  CHECK(index.find(40, ~std::uint64_t{0}) == key_index::absent);
}

TEST_CASE("a cleared index numbers from 0 again") {
  key_index index{std::make_shared<huge_page_pool>()};
  for (std::uint64_t key = 0; key < 1000; ++key)
    index.find_or_add(key, row_hash(key));
  index.clear();
  CHECK(index.size() == 0);
  CHECK(index.find(5, row_hash(5)) == key_index::absent);
  CHECK(index.find_or_add(6, row_hash(6)) == 0);
}

TEST_CASE("a pool's buffers do not overlap, are aligned, come back and outlive it") {
  auto pool = std::make_unique<huge_page_pool>();
  std::vector<std::shared_ptr<std::byte>> held;
  const std::size_t sizes[] = {1, 64, 1000, 80'000, 700'000, 2 << 20, 5'000'000};
  for (int round = 0; round < 5; ++round)
    for (const std::size_t size : sizes) {
      held.push_back(pool->bytes(size));
      CHECK(reinterpret_cast<std::uintptr_t>(held.back().get()) % 64 == 0);
      std::memset(held.back().get(), static_cast<int>(held.size()), size);
    }
  for (std::size_t i = 0; i < held.size(); ++i) {
    const std::size_t size = sizes[i % std::size(sizes)];
    CHECK(held[i].get()[0] == std::byte(i + 1));
    CHECK(held[i].get()[size - 1] == std::byte(i + 1));
  }
  const auto* returned = held[3].get();
  std::thread{[&] { held[3].reset(); }}.join();
  held[3] = pool->bytes(79'990);
  CHECK(held[3].get() == returned);
  pool.reset();
  std::memset(held[4].get(), 1, sizes[4]);
}

} // namespace troupe::key_index_test
