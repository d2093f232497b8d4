#include "serialization/layout.hpp"

#include "doctest/doctest.h"
#include "tests/serialization/random_messages.hpp"

#include <algorithm>
#include <string>

namespace troupe::test::layout_test {

namespace {

table_spec table_of(std::uint64_t elements, std::string name = "t") {
  return {.name = std::move(name), .shape = {elements}, .sync = {}, .optimizer = {}, .init = {}};
}

job_spec job_of(std::vector<table_spec> tables, std::uint32_t partitions = 64) {
  job_spec job;
  job.samples = 1;
  job.partitions = partitions;
  job.tables = std::move(tables);
  return job;
}

/// Returns a job with 64 partitions of 1 MiB each.
job_spec even_job() { return job_of({table_of(std::uint64_t{64} << 18)}); }

std::vector<std::uint64_t> loads(const std::vector<shard_id>& map, std::uint32_t servers,
                                 const std::vector<std::uint64_t>& weight) {
  std::vector<std::uint64_t> load(servers, 0);
  for (std::size_t p = 0; p < map.size(); ++p)
    load.at(map[p].value) += weight[p];
  return load;
}

std::uint64_t spread(const std::vector<std::uint64_t>& load) {
  return *std::max_element(load.begin(), load.end()) - *std::min_element(load.begin(), load.end());
}

std::uint64_t moves(const std::vector<shard_id>& from, const std::vector<shard_id>& to) {
  std::uint64_t count = 0;
  for (std::size_t p = 0; p < from.size(); ++p)
    count += from[p] != to[p] ? 1 : 0;
  return count;
}

} // namespace

TEST_CASE("a sparse table has no blocks, slabs of about 64 KiB, and as much in each partition") {
  table_spec table;
  table.name = "rows";
  table.kind = table_kind::sparse;
  for (const auto& [width, rows] : {std::pair{1u, 4096u},
                                    {4u, 4096u},
                                    {16u, 1024u},
                                    {20u, 512u},
                                    {64u, 256u},
                                    {1000u, 16u},
                                    {4096u, 16u}}) {
    table.width = width;
    CHECK(slab_rows(table) == rows);
    CHECK(block_count(table) == 0);
  }
  const auto job = job_of({table});
  CHECK(spread(partition_bytes(job)) == 0);
  std::vector<std::uint64_t> rows_of(job.partitions, 0);
  for (std::uint64_t key = 0; key < 64'000; ++key)
    ++rows_of[partition_of(job, key).value];
  CHECK(*std::max_element(rows_of.begin(), rows_of.end()) < 1150);
  CHECK(*std::min_element(rows_of.begin(), rows_of.end()) > 850);
  CHECK(partition_of(job, 12'345).value == 17);
}

TEST_CASE("blocks are a sixteenth of the table between 16 KiB and 1 MiB") {
  CHECK(block_elements(table_of(1)) == 4096);
  CHECK(block_elements(table_of(65'536)) == 4096);
  CHECK(block_elements(table_of(65'552)) == 4112);
  CHECK(block_elements(table_of(1'000'000)) == 62'512);
  CHECK(block_elements(table_of(std::uint64_t{1} << 22)) == 262'144);
  CHECK(block_elements(table_of(std::uint64_t{1} << 40)) == 262'144);
  CHECK(block_count(table_of(1)) == 1);
  CHECK(block_count(table_of(4096)) == 1);
  CHECK(block_count(table_of(4097)) == 2);
  CHECK(block_count(table_of(std::uint64_t{1} << 40)) == std::uint64_t{1} << 22);
}

TEST_CASE("blocks cover a table without gaps and begin at multiples of 16 elements") {
  random_source random{1};
  for (int i = 0; i < 300; ++i) {
    const auto job = job_of({table_of(1 + (random.next() >> (40 + random.below(20))))});
    std::uint64_t next = 0;
    for (std::uint64_t block = 0; block < block_count(job.tables[0]); ++block) {
      const auto where = block_range(job, {0}, block);
      CHECK(where.first == next);
      CHECK(where.first % 16 == 0);
      CHECK(where.count > 0);
      next = where.first + where.count;
      CHECK((next == job.tables[0].size() || where.count == block_elements(job.tables[0])));
    }
    CHECK(next == job.tables[0].size());
  }
}

TEST_CASE("partitions have the bytes of their blocks") {
  random_source random{2};
  for (int i = 0; i < 100; ++i) {
    auto job = random_job(random);
    job.tables.push_back(table_of(random.below(50'000'000) + 1, "large"));
    std::vector<std::uint64_t> expected(job.partitions, 0);
    for (std::uint32_t t = 0; t < job.tables.size(); ++t) {
      if (job.tables[t].is_sparse())
        for (auto& bytes : expected)
          bytes += 1 << 20;
      for (std::uint64_t block = 0; block < block_count(job.tables[t]); ++block)
        expected.at(partition_of(job, {t}, block).value) += 4 * block_range(job, {t}, block).count;
    }
    CHECK(partition_bytes(job) == expected);
  }
}

TEST_CASE("the partition of a block is the same for ever") {
  // fnv1a64("a") = 0xaf63dc4c8601ec8c.
  const auto job = job_of({table_of(1'000'000, "a")});
  CHECK(partition_of(job, {0}, 0).value == 0x0c);
  CHECK(partition_of(job, {0}, 51).value == 0x3f);
  CHECK(partition_of(job, {0}, 52).value == 0);
}

TEST_CASE("servers differ by at most one partition of the heaviest") {
  random_source random{3};
  for (int i = 0; i < 300; ++i) {
    auto job = random_job(random);
    job.tables.push_back(table_of(random.below(20'000'000) + 1, "large"));
    const auto weight = partition_bytes(job);
    const auto heaviest = *std::max_element(weight.begin(), weight.end());
    std::vector<shard_id> map;
    // A history of changing server counts must not make it worse.
    for (int step = 0; step < 4; ++step) {
      const auto servers = static_cast<std::uint32_t>(1 + random.below(12));
      map = make_partition_map(job, servers, map);
      REQUIRE(map.size() == job.partitions);
      CHECK(spread(loads(map, servers, weight)) <= heaviest);
    }
  }
}

TEST_CASE("partitions without bytes are spread by number") {
  const auto job = job_of({table_of(100)}, 256);
  const auto map = make_partition_map(job, 5, {});
  CHECK(spread(loads(map, 5, std::vector<std::uint64_t>(256, 1))) <= 2);
}

TEST_CASE("every server has a partition where there are enough") {
  for (std::uint32_t servers : {1, 2, 3, 7, 33, 64}) {
    const auto map = make_partition_map(even_job(), servers, {});
    const auto load = loads(map, servers, std::vector<std::uint64_t>(64, 1));
    CHECK(*std::min_element(load.begin(), load.end()) == 64 / servers);
    CHECK(spread(load) <= 1);
  }
}

TEST_CASE("no chain is without a partition, full or empty, where there are enough") {
  random_source random{9};
  for (int i = 0; i < 200; ++i) {
    const auto partitions = 1u << random.below(7);
    const auto job = job_of({table_of(random.below(10'000) + 1)}, partitions);
    std::vector<shard_id> map;
    for (int step = 0; step < 3; ++step) {
      const auto chains = static_cast<std::uint32_t>(1 + random.below(partitions));
      map = make_partition_map(job, chains, map);
      const auto load = loads(map, chains, std::vector<std::uint64_t>(partitions, 1));
      CHECK(*std::min_element(load.begin(), load.end()) >= 1);
    }
  }
}

TEST_CASE("a partition map that is balanced already stays") {
  random_source random{4};
  for (int i = 0; i < 100; ++i) {
    auto job = random_job(random);
    const auto servers = static_cast<std::uint32_t>(1 + random.below(12));
    const auto map = make_partition_map(job, servers, {});
    CHECK(make_partition_map(job, servers, map) == map);
    CHECK(make_partition_map(job, servers, {}) == map);
  }
}

TEST_CASE("a lost server's partitions move and no others") {
  for (std::uint32_t servers = 2; servers < 20; ++servers) {
    const auto before = make_partition_map(even_job(), servers, {});
    const auto after = make_partition_map(even_job(), servers - 1, before);
    const auto load = loads(before, servers, std::vector<std::uint64_t>(64, 1));
    CHECK(moves(before, after) == load.back());
    CHECK(spread(loads(after, servers - 1, std::vector<std::uint64_t>(64, 1))) <= 1);
  }
}

TEST_CASE("a new server takes its share and nothing else moves") {
  for (std::uint32_t servers = 1; servers < 20; ++servers) {
    const auto before = make_partition_map(even_job(), servers, {});
    const auto after = make_partition_map(even_job(), servers + 1, before);
    CHECK(moves(before, after) == 64 / (servers + 1));
    CHECK(spread(loads(after, servers + 1, std::vector<std::uint64_t>(64, 1))) <= 1);
  }
}

TEST_CASE("a previous map of another size counts for nothing") {
  const auto fresh = make_partition_map(even_job(), 4, {});
  CHECK(make_partition_map(even_job(), 4, std::vector<shard_id>(7)) == fresh);
}

} // namespace troupe::test::layout_test
