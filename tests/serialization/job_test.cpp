#include "serialization/job.hpp"

#include "doctest/doctest.h"
#include "serialization/wire.hpp"
#include "tests/serialization/random_messages.hpp"

#include <functional>
#include <limits>
#include <set>

namespace troupe::test::job_test {

namespace {

optimizer_spec function_of(const std::string& name) {
  return {.kind = optimizer_kind::user, .function = name};
}

job_spec small_job() {
  job_spec job;
  job.name = "small";
  job.samples = 1000;
  job.batch_samples = 64;
  job.epochs = 3;
  job.workers = 3;
  job.tables = {{.name = "w", .shape = {10, 20}, .sync = {}, .optimizer = {}, .init = {}},
                {.name = "b", .shape = {20}, .sync = {}, .optimizer = {}, .init = {}}};
  return job;
}

table_spec sparse_table(std::uint32_t width) {
  table_spec table;
  table.name = "w";
  table.kind = table_kind::sparse;
  table.width = width;
  return table;
}

using change = std::function<void(job_spec&)>;

job_spec changed(const change& how) {
  auto job = small_job();
  how(job);
  return job;
}

} // namespace

TEST_CASE("optimizers are read and written") {
  for (const auto* text : {"sgd", "momentum", "adagrad", "adam", "nesterov", "adamw", "ftrl"})
    CHECK(std::string{to_string(*parse_optimizer(text))} == text);
  CHECK_FALSE(parse_optimizer("user")); // Only a program can name a function.
  CHECK(parse_optimizer("Adam").error().text
        == "optimizer must be sgd, momentum, adagrad, adam, nesterov, adamw or ftrl, not 'Adam'");
}

TEST_CASE("staleness above full_rate_staleness lowers the rate") {
  optimizer_spec optimizer{.learning_rate = 0.3f};
  const auto rate_at = [&](float limit, std::uint64_t staleness) {
    optimizer.full_rate_staleness = limit;
    return optimizer.rate_at(staleness);
  };
  for (const std::uint64_t staleness : {0u, 1u, 5u, 1'000'000u})
    CHECK(rate_at(0, staleness) == 0.3f);
  for (std::uint64_t staleness = 2; staleness < 100; ++staleness)
    CHECK(rate_at(1, staleness) == 0.3f / static_cast<float>(staleness));
  for (const std::uint64_t staleness : {0u, 3u, 4u})
    CHECK(rate_at(4, staleness) == 0.3f);
  CHECK(rate_at(4, 8) == 0.15f);
  CHECK(rate_at(0.5f, 0) == 0.3f);
  CHECK(rate_at(0.5f, 1) == 0.15f);
  CHECK(rate_at(std::numeric_limits<float>::max(), ~std::uint64_t{0}) == 0.3f);
}

TEST_CASE("a job has a shard for each server, or as many as it says") {
  CHECK(changed([](job_spec& x) { x.servers = 3; }).shard_count() == 3);
  CHECK(changed([](job_spec& x) { x.shards = 5; }).shard_count() == 5);
}

TEST_CASE("a good job is valid") {
  CHECK(validate(small_job()));
  random_source random{1};
  for (int i = 0; i < 200; ++i)
    CHECK(validate(random_job(random)));
}

TEST_CASE("each defect of a job is named") {
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const std::pair<const char*, change> defects[] = {
    {"printable", [](job_spec& x) { x.name = "a\nb"; }},
    {"printable", [](job_spec& x) { x.name = std::string(65, 'a'); }},
    {"partitions", [](job_spec& x) { x.partitions = 0; }},
    {"partitions", [](job_spec& x) { x.partitions = 48; }},
    {"partitions", [](job_spec& x) { x.partitions = 8192; }},
    {"servers", [](job_spec& x) { x.servers = 0; }},
    {"servers", [](job_spec& x) { x.servers = 65; }},
    {"replicas", [](job_spec& x) { x.replicas = 0; }},
    {"replicas", [](job_spec& x) { x.replicas = 2; }},
    {"shards", [](job_spec& x) { x.shards = 65; }},
    {"workers", [](job_spec& x) { x.workers = 0; }},
    {"workers", [](job_spec& x) { x.workers = 65537; }},
    {"samples", [](job_spec& x) { x.samples = 0; }},
    {"samples", [](job_spec& x) { x.samples = std::uint64_t{1} << 32; }},
    {"batch_samples", [](job_spec& x) { x.batch_samples = 0; }},
    {"passes", [](job_spec& x) { x.epochs = 0; }},
    {"passes", [](job_spec& x) { x.epochs = ~std::uint64_t{0}; }},
    {"tables", [](job_spec& x) { x.tables.clear(); }},
    {"tables", [](job_spec& x) { x.tables.resize(4097); }},
    {"a table's name", [](job_spec& x) { x.tables[0].name = ""; }},
    {"a table's name", [](job_spec& x) { x.tables[0].name = "W"; }},
    {"a table's name", [](job_spec& x) { x.tables[0].name = std::string(65, 'w'); }},
    {"two tables", [](job_spec& x) { x.tables[0].name = "b"; }},
    {"'w': the shape", [](job_spec& x) { x.tables[0].shape = {}; }},
    {"'w': the shape", [](job_spec& x) { x.tables[0].shape.assign(9, 1); }},
    {"extent",
     [](job_spec& x) {
       x.tables[0].shape = {3, 0};
     }},
    {"2^40",
     [](job_spec& x) {
       x.tables[0].shape = {std::uint64_t{1} << 40, 2};
     }},
    {"2^40", [](job_spec& x) { x.tables[0].shape.assign(3, std::uint64_t{1} << 32); }},
    {"2^40", [](job_spec& x) { x.tables[0].shape = {std::uint64_t{1} << 40}; }},
    {"width and no shape", [](job_spec& x) { x.tables[0].kind = table_kind::sparse; }},
    {"shape and no width", [](job_spec& x) { x.tables[0].width = 2; }},
    {"1 to 4096", [](job_spec& x) { x.tables[0] = sparse_table(0); }},
    {"1 to 4096", [](job_spec& x) { x.tables[0] = sparse_table(4097); }},
    {"kind", [](job_spec& x) { x.tables[0].kind = static_cast<table_kind>(2); }},
    {"table 'w': it is sparse",
     [](job_spec& x) {
       x.tables[0] = sparse_table(4);
       for (auto& table : x.tables)
         table.sync.mode = consistency_mode::hogwild;
     }},
    {"staleness", [](job_spec& x) { x.tables[0].sync.staleness_clocks = 1'000'001; }},
    {"hogwild", [](job_spec& x) { x.tables[0].sync.mode = consistency_mode::hogwild; }},
    {"scale", [=](job_spec& x) { x.tables[0].init.scale = nan; }},
    {"learning_rate", [](job_spec& x) { x.tables[0].optimizer.learning_rate = 0.0f; }},
    {"learning_rate", [=](job_spec& x) { x.tables[0].optimizer.learning_rate = nan; }},
    {"momentum",
     [](job_spec& x) {
       x.tables[0].optimizer.kind = optimizer_kind::momentum;
       x.tables[0].optimizer.momentum = 1.0f;
     }},
    {"beta2",
     [](job_spec& x) {
       x.tables[0].optimizer.kind = optimizer_kind::adam;
       x.tables[0].optimizer.beta2 = -0.1f;
     }},
    {"epsilon",
     [](job_spec& x) {
       x.tables[0].optimizer.kind = optimizer_kind::adagrad;
       x.tables[0].optimizer.epsilon = 0.0f;
     }},
    {"a function needs", [](job_spec& x) { x.tables[0].optimizer.function = "f"; }},
    {"name of its function",
     [](job_spec& x) { x.tables[0].optimizer.kind = optimizer_kind::user; }},
    {"name of its function", [](job_spec& x) { x.tables[0].optimizer = function_of("F"); }},
    {"more than 64 parameters",
     [](job_spec& x) {
       x.tables[0].optimizer = function_of("f");
       x.tables[0].optimizer.parameters.resize(65);
     }},
    {"floats of state",
     [](job_spec& x) {
       x.tables[0].optimizer = function_of("f");
       x.tables[0].optimizer.function_state = 65;
     }},
    {"must be finite",
     [=](job_spec& x) {
       x.tables[0].optimizer = function_of("f");
       x.tables[0].optimizer.parameters = {nan};
     }},
    {"make them parameters",
     [](job_spec& x) {
       x.tables[0].optimizer = function_of("f");
       x.tables[0].optimizer.clip_value = 1;
     }},
    {"hogwild has no server",
     [](job_spec& x) {
       x.tables[0].optimizer = function_of("f");
       x.tables[0].sync.mode = consistency_mode::hogwild;
     }},
    {"kind of its optimizer",
     [](job_spec& x) { x.tables[0].optimizer.kind = static_cast<optimizer_kind>(8); }},
    {"momentum",
     [](job_spec& x) {
       x.tables[0].optimizer.kind = optimizer_kind::nesterov;
       x.tables[0].optimizer.momentum = 1.0f;
     }},
    {"beta2",
     [](job_spec& x) {
       x.tables[0].optimizer.kind = optimizer_kind::adamw;
       x.tables[0].optimizer.beta2 = 1.0f;
     }},
    {"l1 must",
     [](job_spec& x) {
       x.tables[0].optimizer.kind = optimizer_kind::ftrl;
       x.tables[0].optimizer.l1 = -1.0f;
     }},
    {"beta must",
     [](job_spec& x) {
       x.tables[0].optimizer.kind = optimizer_kind::ftrl;
       x.tables[0].optimizer.beta = 0.0f;
     }},
    {"staleness cannot lower",
     [](job_spec& x) {
       x.tables[0].optimizer.kind = optimizer_kind::ftrl;
       x.tables[0].optimizer.full_rate_staleness = 0.5f;
     }},
    {"full_rate_staleness must",
     [](job_spec& x) { x.tables[0].optimizer.full_rate_staleness = -1.0f; }},
    {"full_rate_staleness must",
     [](job_spec& x) {
       x.tables[0].optimizer.full_rate_staleness = std::numeric_limits<float>::quiet_NaN();
     }},
    {"all tables are frozen",
     [](job_spec& x) {
       for (auto& table : x.tables)
         table.frozen = true;
     }},
    {"frozen tables must be dense",
     [](job_spec& x) {
       x.tables[0] = sparse_table(3);
       x.tables[0].frozen = true;
     }},
    {"only dense tables begin",
     [](job_spec& x) {
       x.tables[0] = sparse_table(3);
       x.tables[0].values_checksum = 4;
     }},
    {"more zeros",
     [](job_spec& x) {
       x.tables[0] = sparse_table(3);
       x.tables[0].init.zeros = 4;
     }},
    {"at most 4096 actors", [](job_spec& x) { x.actors = actors_max + 1; }},
    {"256 options", [](job_spec& x) { x.own_options.resize(own_options_max + 1); }},
    {"1024 bytes",
     [](job_spec& x) {
       x.own_options = {{"--x", std::string(own_option_bytes_max + 1, 'x')}};
     }},
    {"weight_decay", [](job_spec& x) { x.tables[0].optimizer.weight_decay = -1.0f; }},
    {"clip", [](job_spec& x) { x.tables[0].optimizer.clip_norm = -1.0f; }},
  };
  for (const auto& [part, how] : defects) {
    const auto outcome = validate(changed(how));
    CAPTURE(part);
    REQUIRE(!outcome);
    CHECK(outcome.error().code == errc::invalid_argument);
    CHECK_MESSAGE(outcome.error().text.find(part) != std::string::npos, outcome.error().text);
  }
}

TEST_CASE("a shard's share must travel in one frame") {
  auto with = [](std::uint64_t elements, std::uint32_t servers, std::uint32_t chains = 0) {
    return validate(changed([=](job_spec& x) {
      x.tables = {{.name = "w", .shape = {elements}, .sync = {}, .optimizer = {}, .init = {}}};
      x.servers = servers;
      x.shards = chains;
    }));
  };
  const auto half = wire::body_bytes_max / 2 / sizeof(float);
  CHECK(with(half, 1));
  CHECK(with(2 * half, 3));
  const auto found = with(half + 1, 1);
  REQUIRE(!found);
  CHECK(found.error()
        == failure{errc::invalid_argument, "the tables have 536870916 bytes for each of 1 shards, "
                                           "at most 536870912: use more --servers or "
                                           "--shards"});
  CHECK(!with(2 * half, 2)); // Partitions may differ by a block.
  CHECK(with(2 * half - 524288, 2));
  CHECK(with(2 * half, 2, 3));
  CHECK(!with(2 * half, 3, 2));
}

TEST_CASE("the size of a shape that overflows is the largest number") {
  table_spec table;
  table.shape.assign(3, std::uint64_t{1} << 32);
  CHECK(table.size() == ~std::uint64_t{0});
}

TEST_CASE("the fingerprint changes with what two processes must agree on") {
  const auto base = fingerprint(small_job());
  CHECK(base != 0);
  CHECK(base == fingerprint(small_job()));
  const change matters[] = {
    [](job_spec& x) { x.name = "other"; },
    [](job_spec& x) { x.seed = 2; },
    [](job_spec& x) { x.partitions = 32; },
    [](job_spec& x) { x.batch_samples = 63; },
    [](job_spec& x) { x.samples = 999; },
    [](job_spec& x) { x.tables.pop_back(); },
    [](job_spec& x) { x.tables[0].name = "v"; },
    [](job_spec& x) {
      x.tables[0].shape = {20, 10};
    },
    [](job_spec& x) { x.tables[0].shape = {200}; },
    [](job_spec& x) { x.tables[1].optimizer.kind = optimizer_kind::adam; },
    [](job_spec& x) { x.tables[1].sync.mode = consistency_mode::bsp; },
    [](job_spec& x) { x.tables[0] = sparse_table(200); },
    [](job_spec& x) { x.tables[0].frozen = true; },
    [](job_spec& x) { x.tables[0].values_checksum = 1; },
    [](job_spec& x) { x.files_checksum = 1; },
  };
  for (const auto& how : matters)
    CHECK(fingerprint(changed(how)) != base);
  const auto width = [](std::uint32_t floats) {
    return fingerprint(changed([=](job_spec& x) { x.tables[0] = sparse_table(floats); }));
  };
  CHECK(width(3) != width(4));
  const auto function = [](const optimizer_spec& what) {
    return fingerprint(changed([&](job_spec& x) { x.tables[0].optimizer = what; }));
  };
  auto what = function_of("f/1");
  std::set<std::uint64_t> seen{base, function(what), function(function_of("f/2"))};
  what.parameters = {0.0f};
  seen.insert(function(what));
  what.parameters = {1.0f};
  seen.insert(function(what));
  what.function_state = 1;
  seen.insert(function(what));
  CHECK(seen.size() == 6);
}

TEST_CASE("the fingerprint ignores what may differ or change") {
  const change free[] = {
    [](job_spec& x) { x.servers = 7; },
    [](job_spec& x) { x.replicas = 2; },
    [](job_spec& x) { x.shards = 7; },
    [](job_spec& x) { x.workers = 7; },
    [](job_spec& x) { x.actors = 7; },
    [](job_spec& x) { x.epochs = 7; },
    [](job_spec& x) { x.tables[0].optimizer.learning_rate = 7; },
    [](job_spec& x) {
      x.tables[0].sync = {consistency_mode::ssp, 7};
    },
    [](job_spec& x) {
      x.own_options = {{"--sigma", "5"}};
    },
  };
  for (const auto& how : free)
    CHECK(fingerprint(changed(how)) == fingerprint(small_job()));
}

TEST_CASE("the fingerprint of a bsp job depends on the number of slots") {
  auto job = small_job();
  job.tables[0].sync.mode = consistency_mode::bsp;
  const auto three = fingerprint(job);
  job.workers = 4;
  CHECK(fingerprint(job) != three);
}

TEST_CASE("state from before the checksum of files is of the job that has one now") {
  const auto earlier = small_job();
  const auto now = changed([](job_spec& x) { x.files_checksum = 7; });
  const auto other = changed([](job_spec& x) { x.files_checksum = 8; });
  CHECK(is_of(fingerprint(now), now));
  CHECK(is_of(fingerprint(earlier), now));
  CHECK_FALSE(is_of(fingerprint(other), now));
  CHECK_FALSE(is_of(fingerprint(now), earlier)); // The job is no longer known to read these files.
  CHECK_FALSE(is_of(0, now));
}

TEST_CASE("the fingerprint is the same for ever") {
  // Checkpoints hold the fingerprint.
  CHECK(fingerprint(small_job()) == 0xf1d5ee309005d960);
}

TEST_CASE("bsp clocks partition the batches and never span passes") {
  random_source random{2};
  for (int i = 0; i < 50; ++i) {
    auto job = random_job(random);
    job.samples = 1 + random.below(500);
    std::uint64_t clock = 0;
    for (batch_id batch; batch.value < job.batches(); ++clock) {
      CHECK(bsp_first(job, clock) == batch);
      const auto end = bsp_end(job, clock);
      CHECK(end > batch);
      CHECK(end.value - batch.value <= job.workers);
      CHECK((end.value - 1) / job.batches_per_epoch() == batch.value / job.batches_per_epoch());
      for (; batch < end; ++batch.value)
        CHECK(bsp_clock(job, batch) == clock);
    }
  }
}

TEST_CASE("a job survives its file") {
  random_source random{3};
  for (int i = 0; i < 200; ++i) {
    const auto job = random_job(random);
    const auto bytes = wire::encode_job(job);
    const auto read = wire::decode_job(bytes);
    REQUIRE_MESSAGE(read, read.error().text);
    CHECK(*read == job);
  }
}

TEST_CASE("a job's file of another format is refused") {
  auto bytes = wire::encode_job(small_job());
  bytes[16] = std::byte{9};
  const auto read = wire::decode_job(bytes);
  REQUIRE(!read);
  CHECK(read.error().code == errc::version_mismatch);
  CHECK(read.error().text == "the job's file has format 9, this program reads 1 to 2");
}

TEST_CASE("the largest number of tables survives a file") {
  auto job = small_job();
  job.tables.clear();
  for (int i = 0; i < 4096; ++i)
    job.tables.push_back({.name = std::string(59, 'x') + std::to_string(i % 10) + std::to_string(i),
                          .shape = std::vector<std::uint64_t>(8, 2),
                          .sync = {},
                          .optimizer = {},
                          .init = {}});
  REQUIRE(validate(job));
  const auto read = wire::decode_job(wire::encode_job(job));
  REQUIRE(read);
  CHECK(*read == job);
}

} // namespace troupe::test::job_test
