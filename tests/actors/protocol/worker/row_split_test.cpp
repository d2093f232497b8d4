#include "actors/protocol/worker/row_split.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace troupe::row_split_test {

namespace {

constexpr std::uint32_t width = 3;

/// Returns rows with k, k + 1, k + 2 under key k.
row_piece rows_of(std::vector<std::uint64_t> keys) {
  const auto values = std::make_shared<std::vector<float>>();
  for (const std::uint64_t key : keys)
    for (std::uint32_t i = 0; i < width; ++i)
      values->push_back(static_cast<float>(key + i));
  const auto memory = std::make_shared<std::vector<std::uint64_t>>(std::move(keys));
  return {{{2}, width, memory->size(), {memory, memory->data()}}, {values, values->data()}};
}

std::vector<std::uint64_t> some_keys(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random{seed};
  std::vector<std::uint64_t> keys(count);
  for (auto& key : keys)
    key = random() % 1'000'000;
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

/// Returns a split where partition p of 8 is of chain p % servers + 1.
row_split split_over(std::uint32_t servers) {
  std::vector<shard_id> map;
  for (std::uint32_t p = 0; p < 8; ++p)
    map.push_back({p % servers + 1});
  return row_split{map};
}

row_piece empty_answer(const row_keys& asked) {
  return {{asked.table, asked.width, asked.count, nullptr}, nullptr};
}

} // namespace

TEST_CASE("rows for one server are the whole itself") {
  const auto whole = rows_of(some_keys(1, 100));
  const auto parts = split_over(1).split(whole);
  REQUIRE(parts.size() == 1);
  CHECK(parts[0].first == shard_id{1});
  CHECK(parts[0].second.where.keys == whole.where.keys);
  CHECK(parts[0].second.values == whole.values);
}

TEST_CASE("each row goes to the server of its partition, in order, and back to its place") {
  const auto split = split_over(3);
  const auto whole = rows_of(some_keys(2, 1000)), other = rows_of(some_keys(3, 10));
  const std::vector<row_keys> all_asked{whole.where, other.where};
  std::map<shard_id, std::vector<row_keys>> asked;
  std::map<shard_id, std::vector<row_piece>> answers;
  for (const auto& list : {whole, other})
    for (const auto& [server, part] : split.split(list)) {
      const auto keys = part.where.span();
      CHECK(first_unordered(keys) == keys.size());
      CHECK(part.where.width == width);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        CHECK(row_hash(keys[i]) % 8 % 3 + 1 == server.value);
        CHECK(part.values.get()[i * width] == static_cast<float>(keys[i]));
      }
      asked[server].push_back(part.where);
      answers[server].push_back(part);
    }
  std::vector<row_piece> joined{empty_answer(whole.where), empty_answer(other.where)};
  for (const auto& [server, parts] : asked)
    split.join(parts, answers[server], all_asked, joined);
  CHECK(std::equal(whole.values.get(), whole.values.get() + whole.where.floats(),
                   joined[0].values.get()));
  CHECK(std::equal(other.values.get(), other.values.get() + other.where.floats(),
                   joined[1].values.get()));
}

TEST_CASE("a server without a row of a list has no part of it, and its answers still fit") {
  const auto split = split_over(2);
  std::vector<std::uint64_t> even, odd;
  for (std::uint64_t key = 0; even.size() < 5 || odd.size() < 5; ++key)
    (row_hash(key) % 2 == 0 ? even : odd).push_back(key);
  const auto first = rows_of(even), second = rows_of(odd);
  REQUIRE(split.split(first).size() == 1);
  const auto part = split.split(second);
  REQUIRE(part.size() == 1);
  CHECK(part[0].first == shard_id{2});
  const std::vector<row_keys> all_asked{first.where, second.where}, asked{part[0].second.where};
  const std::vector<row_piece> answer{part[0].second};
  std::vector<row_piece> joined{empty_answer(first.where), empty_answer(second.where)};
  split.join(asked, answer, all_asked, joined);
  CHECK(!joined[0].values);
  CHECK(joined[1].values.get()[0] == static_cast<float>(odd[0]));
  CHECK(split.split({{{2}, width, 0, nullptr}, nullptr}).empty());
}

TEST_CASE("keys are split without values") {
  const auto whole = rows_of(some_keys(4, 50));
  std::uint64_t count = 0;
  for (const auto& [server, part] : split_over(2).split({whole.where, nullptr})) {
    CHECK(!part.values);
    count += part.where.count;
  }
  CHECK(count == whole.where.count);
}

} // namespace troupe::row_split_test
