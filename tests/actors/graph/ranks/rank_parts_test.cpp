#include "actors/graph/ranks/link_communicator.hpp"
#include "actors/graph/ranks/rank_sum.hpp"
#include "actors/transport/transport.hpp"
#include "serialization/wire.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace troupe::rank_parts_test {

namespace {

/// Two layers; the bias of each is small.
constexpr std::size_t sizes[] = {20'000, 100, 30'000, 10};
constexpr std::size_t remarks_end = 16;

job_spec job_of(float clip_norm_of_last_layer = 0) {
  job_spec job;
  job.name = "test";
  job.partitions = 2;
  job.workers = 2;
  job.samples = 4;
  job.batch_samples = 1;
  job.epochs = 2;
  for (const auto size : sizes) {
    table_spec table;
    table.name = "t" + std::to_string(job.tables.size());
    table.shape = {static_cast<std::uint32_t>(size)};
    table.sync = {consistency_mode::bsp, 0};
    table.optimizer.kind = optimizer_kind::momentum;
    table.optimizer.learning_rate = 0.25f;
    if (job.tables.size() >= 2)
      table.optimizer.clip_norm = clip_norm_of_last_layer;
    job.tables.push_back(table);
  }
  REQUIRE(validate(job));
  return job;
}

/// The behaviour of all trainers of a test.
struct behaviour {
  std::vector<std::size_t> order{3, 2, 1, 0}; ///< Order in which tables are computed and announced.
  std::uint64_t bad_batch = ~std::uint64_t{0};
  std::size_t bad_table = 0;
};

class layered final : public trainer {
public:
  explicit layered(const behaviour& how) : how_(how) {}

  double gradient(const batch& work, const_tensors parameters, mutable_tensors gradients) override {
    for (std::size_t table = 0; table < gradients.size(); ++table)
      std::ranges::fill(gradients[table], -1.0f); // -1 shows a read that comes too early.
    for (const auto table : how_.order) {
      compute(work, table, parameters[table], gradients[table]);
      work.ready(table);
      work.ready(table); // A second call has no effect.
    }
    for (std::size_t table = 0; table < gradients.size(); ++table)
      if (std::ranges::count(how_.order, table) == 0)
        compute(work, table, parameters[table], gradients[table]);
    return 0.5;
  }

private:
  void compute(const batch& work, std::size_t table, std::span<const float> parameters,
               std::span<float> to) const {
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i] = parameters[i] / 2 + static_cast<float>((work.id.value + i) % 7) / 3;
    if (work.id.value == how_.bad_batch && table == how_.bad_table)
      to[to.size() / 2] = std::numeric_limits<float>::infinity();
  }

  const behaviour& how_;
};

struct ranks_of {
  ranks_of(const job_spec& job, const behaviour& how) {
    for (std::uint32_t rank = 0; rank < job.workers; ++rank)
      models.push_back(std::make_unique<rank_model>(
        job, [&how] { return std::make_unique<layered>(how); }, rank));
  }

  /// Adds up the gradients of all ranks. A part that left early counts with its values of that
  /// time.
  void add_up(bool overlapping) {
    std::vector<std::vector<float>> sums;
    for (const auto part : models[0]->parts())
      sums.emplace_back(part.size());
    const auto add = [&](rank_model& model, std::uint32_t part) {
      for (std::size_t i = 0; i < sums[part].size(); ++i)
        sums[part][i] += model.parts()[part][i];
    };
    for (auto& model : models) {
      std::vector<std::uint32_t> early;
      if (overlapping)
        REQUIRE(model->compute(false, [&](std::uint32_t part) {
          early.push_back(part);
          add(*model, part);
          std::ranges::fill(model->parts()[part], 1e6f); // The communicator owns the part now.
        }));
      else
        REQUIRE(model->compute(false));
      for (std::uint32_t part = 0; part < sums.size(); ++part)
        if (std::ranges::count(early, part) == 0)
          add(*model, part);
    }
    give(sums);
  }

  void add_up_again() {
    std::vector<std::vector<float>> sums;
    for (std::uint32_t part = 0; part < models[0]->parts().size(); ++part) {
      sums.emplace_back(models[0]->parts()[part].size());
      for (auto& model : models) {
        if (part == 0)
          model->repeat();
        for (std::size_t i = 0; i < sums[part].size(); ++i)
          sums[part][i] += model->parts()[part][i];
      }
    }
    give(sums);
  }

  void give(const std::vector<std::vector<float>>& sums) {
    for (auto& model : models)
      for (std::size_t part = 0; part < sums.size(); ++part)
        std::ranges::copy(sums[part], model->parts()[part].begin());
  }

  std::vector<std::unique_ptr<rank_model>> models;
};

/// Trains both ranks over links, each on a thread, to the job's end. Returns their final checksums.
std::vector<std::uint64_t> train_over_links(const job_spec& job, const behaviour& how) {
  std::vector<int> listeners;
  std::vector<endpoint> addresses;
  for (std::uint32_t rank = 0; rank < job.workers; ++rank) {
    listeners.push_back(*make_listener({"127.0.0.1", 0}));
    addresses.push_back(*local_endpoint(listeners.back()));
  }
  std::vector<std::uint64_t> ends(job.workers);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < job.workers; ++rank)
    threads.emplace_back([&, rank] {
      const hello self{wire::protocol_version, 1, 7, {role::worker, rank, {rank + 1}}};
      rank_model model(
        job, [&how] { return std::make_unique<layered>(how); }, rank);
      const auto communicator = form_link_communicator(self, addresses, listeners[rank]);
      while (communicator && !model.finished()) {
        if (!compute_and_add(model, **communicator, false) || !finish_sum(model, **communicator))
          return;
        REQUIRE(model.step());
      }
      ends[rank] = model.checksum();
    });
  for (auto& thread : threads)
    thread.join();
  return ends;
}

} // namespace

TEST_CASE("small_tables_share_the_part_of_the_one_before_and_the_first_part_has_the_remarks") {
  const behaviour how;
  const ranks_of ranks{job_of(), how};
  const auto& parts = ranks.models[0]->parts();
  REQUIRE_EQ(parts.size(), 2);
  CHECK_EQ(parts[0].size(), remarks_end + 20'000 + 112); // Sizes are whole cache lines.
  CHECK_EQ(parts[1].size(), 30'000 + 16);
  CHECK_EQ(parts[0].data(), ranks.models[0]->sum().data());
  CHECK_EQ(ranks.models[0]->sum().size(), parts[0].size() + parts[1].size());
}

TEST_CASE("a_part_is_told_of_once_when_all_of_its_tables_are_complete") {
  for (const std::vector<std::size_t>& order :
       {std::vector<std::size_t>{3, 2, 1, 0}, {2, 0, 3, 1}, {2, 1}, {}}) {
    const behaviour how{order};
    ranks_of ranks{job_of(), how};
    auto& model = *ranks.models[0];
    std::vector<std::vector<float>> told;
    REQUIRE(model.compute(false, [&](std::uint32_t part) {
      CHECK_EQ(part, 1); // compute() announces part 0 by returning.
      told.emplace_back(model.parts()[1].begin(), model.parts()[1].end());
    }));
    CHECK_EQ(told.size(), std::ranges::count(order, 2) * std::ranges::count(order, 3));
    ranks_of others{job_of(), how};
    REQUIRE(others.models[0]->compute(false));
    const auto whole = others.models[0]->parts()[1];
    for (const auto& seen : told)
      CHECK(std::ranges::equal(seen, whole));
    CHECK(std::ranges::equal(model.sum(), others.models[0]->sum()));
  }
}

TEST_CASE("a_table_that_clips_by_the_norm_waits_for_the_whole_gradient") {
  const behaviour how;
  ranks_of ranks{job_of(1.0f), how};
  REQUIRE(ranks.models[0]->compute(false, [](std::uint32_t) { CHECK(false); }));
}

TEST_CASE("steps_with_and_without_parts_that_left_early_end_in_the_same_bytes") {
  const behaviour how;
  for (const float clip : {0.0f, 1.0f}) {
    ranks_of early{job_of(clip), how}, late{job_of(clip), how};
    while (!early.models[0]->finished()) {
      for (auto* ranks : {&early, &late}) {
        ranks->add_up(ranks == &early);
        for (auto& model : ranks->models) {
          CHECK_FALSE(model->spoiled());
          REQUIRE(model->step());
        }
      }
      CHECK_EQ(early.models[0]->checksum(), late.models[0]->checksum());
      CHECK_EQ(early.models[0]->checksum(), early.models[1]->checksum());
    }
  }
}

TEST_CASE("a_gradient_that_turns_out_not_to_be_finite_once_parts_left_counts_as_zeros") {
  for (const std::size_t bad_table : {0u, 1u, 2u, 3u}) {
    const behaviour how{.bad_batch = 1, .bad_table = bad_table};
    ranks_of early{job_of(), how}, late{job_of(), how};
    early.add_up(true);
    late.add_up(false);
    for (auto& model : early.models) {
      // Both ranks hear of it, even the rank whose own gradient is finite. In the last layer the
      // fault is seen before any part left.
      CHECK_EQ(model->spoiled(), bad_table < 2);
    }
    CHECK_FALSE(late.models[0]->spoiled());
    if (bad_table < 2)
      early.add_up_again();
    CHECK_FALSE(early.models[1]->spoiled());
    for (auto* ranks : {&early, &late})
      for (auto& model : ranks->models) {
        CHECK_EQ(model->step()->unusable, 1);
        CHECK_EQ(model->refused(), model == ranks->models[1]); // Only rank 1 refused a gradient.
      }
    CHECK_EQ(early.models[0]->checksum(), late.models[0]->checksum());
    CHECK_EQ(early.models[1]->checksum(), late.models[0]->checksum());
    const behaviour good;
    ranks_of untouched{job_of(), good};
    CHECK_NE(early.models[0]->checksum(),
             untouched.models[0]->checksum()); // The other slot counts.
  }
}

TEST_CASE("ranks_over_links_end_in_the_bytes_of_sums_without_overlap") {
  for (const auto& how :
       {behaviour{}, behaviour{.order = {}}, behaviour{.order = {2, 3, 0}},
        behaviour{.bad_batch = 3, .bad_table = 0}, behaviour{.bad_batch = 2, .bad_table = 3}}) {
    ranks_of late{job_of(), how};
    while (!late.models[0]->finished()) {
      late.add_up(false);
      for (auto& model : late.models)
        REQUIRE(model->step());
    }
    const auto expected = late.models[0]->checksum();
    CHECK_EQ(train_over_links(job_of(), how), std::vector<std::uint64_t>(2, expected));
  }
}

} // namespace troupe::rank_parts_test
