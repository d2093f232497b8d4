// Makes a small job with values, and its checkpoints, as servers would.
#pragma once

#include "serialization/layout.hpp"
#include "storage/checkpoint_directory.hpp"
#include "storage/checkpoint_reader.hpp"
#include "storage/checkpoint_writer.hpp"
#include "storage/manifest.hpp"
#include "tests/storage/same_images.hpp"

#include "doctest/doctest.h"

#include <random>
#include <vector>

namespace troupe::storage {

/// Returns a job with 8 partitions, three dense tables and two sparse ones. Table "b" has a single
/// block.
inline job_spec sample_job() {
  job_spec job;
  job.name = "sample";
  job.partitions = 8;
  job.workers = 3;
  job.samples = 1000;
  job.tables.resize(5);
  job.tables[0].name = "w1";
  job.tables[0].shape = {784, 64};
  job.tables[0].optimizer.kind = optimizer_kind::adam;
  job.tables[1].name = "w2";
  job.tables[1].shape = {64, 100};
  job.tables[1].optimizer.kind = optimizer_kind::momentum;
  job.tables[2].name = "b";
  job.tables[2].shape = {10};
  for (std::size_t i = 3; i < 5; ++i) {
    job.tables[i].name = i == 3 ? "rows" : "adam_rows";
    job.tables[i].kind = table_kind::sparse;
    job.tables[i].width = 600; // 16 rows per slab.
  }
  job.tables[4].optimizer.kind = optimizer_kind::adam;
  return job;
}

inline float_ptr random_floats(std::uint64_t count, std::mt19937_64& random) {
  if (count == 0)
    return nullptr;
  const std::shared_ptr<float[]> values{new float[count]};
  for (std::uint64_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(random()) / 1e18f;
  return {values, values.get()};
}

inline std::uint64_t sample_state_per_weight(optimizer_kind kind) {
  return kind == optimizer_kind::sgd ? 0 : kind == optimizer_kind::adam ? 2 : 1;
}

inline slab_image sample_slab(table_id table, std::uint64_t slab, std::uint64_t count,
                              std::uint64_t row_floats, bool has_steps, std::mt19937_64& random) {
  const auto numbers = [&] {
    const auto made = std::make_shared<std::vector<std::uint64_t>>(count);
    for (auto& x : *made)
      x = random();
    return key_ptr{made, made->data()};
  };
  return {.table = table,
          .slab = slab,
          .version = random() % 100,
          .count = count,
          .keys = numbers(),
          .row_floats = row_floats,
          .rows = random_floats(count * row_floats, random),
          .steps = has_steps ? numbers() : nullptr};
}

/// Returns all partitions of a job with random content, ordered by partition, table and block.
inline std::vector<partition_image> sample_partitions(const job_spec& job, std::uint64_t seed) {
  std::mt19937_64 random{seed};
  std::vector<partition_image> images(job.partitions);
  for (std::uint32_t p = 0; p < job.partitions; ++p) {
    images[p].partition = {p};
    images[p].version = seed * 1000 + p;
    for (std::size_t t = 0; t < job.tables.size(); ++t) {
      batch_set applied{batch_id{random() % 200}};
      for (int i = 0; i < 5; ++i)
        applied.insert(batch_id{random() % 500});
      images[p].applied.push_back(applied);
    }
  }
  for (table_id table; table.value < job.tables.size(); ++table.value) {
    const auto& spec = job.tables[table.value];
    if (spec.is_sparse())
      for (auto& image : images)
        for (std::uint64_t slab = 0; slab < image.partition.value % 3; ++slab)
          image.slabs.push_back(
            sample_slab(table, slab, slab == 0 ? slab_rows(spec) : 5,
                        spec.width * (1 + sample_state_per_weight(spec.optimizer.kind)),
                        spec.optimizer.kind == optimizer_kind::adam, random));
    for (std::uint64_t block = 0; block < block_count(spec); ++block) {
      block_image image;
      image.table = table;
      image.block = block;
      image.version = seed;
      image.steps = random() % 1000;
      image.count = block_range(job, table, block).count;
      image.values = random_floats(image.count, random);
      image.state_count = image.count * sample_state_per_weight(spec.optimizer.kind);
      image.state = random_floats(image.state_count, random);
      images[partition_of(job, table, block).value].blocks.push_back(image);
    }
  }
  return images;
}

/// Returns the cut of chain `chain` of `chains`, which owns the partitions p with p % chains ==
/// chain.
inline cut sample_cut(std::uint64_t checkpoint, std::uint32_t chain, std::uint32_t chains,
                      const std::vector<partition_image>& images) {
  cut what{checkpoint, {chain}, {}};
  for (const auto& image : images)
    if (image.partition.value % chains == chain)
      what.partitions.push_back(image);
  return what;
}

inline std::vector<partition_id> partitions_of(std::uint32_t chain, std::uint32_t chains,
                                               const job_spec& job) {
  std::vector<partition_id> partitions;
  for (auto p = chain; p < job.partitions; p += chains)
    partitions.push_back({p});
  return partitions;
}

/// Writes and commits one checkpoint with one server; returns its manifest.
inline manifest commit_sample(const std::filesystem::path& directory, checkpoint_writer& writer,
                              std::uint64_t checkpoint, const job_spec& job,
                              const std::vector<partition_image>& images) {
  auto part = writer.write(sample_cut(checkpoint, 0, 1, images));
  REQUIRE_MESSAGE(part, (part ? "" : part.error().text));
  const manifest whole{checkpoint, job, {3}, 17, {400}, {*part}};
  const auto done = commit(directory, whole);
  REQUIRE_MESSAGE(done, (done ? "" : done.error().text));
  return whole;
}

inline std::uint64_t bytes_of(const manifest& whole) {
  std::uint64_t bytes = 0;
  for (const auto& part : whole.parts)
    for (const auto& file : part.files)
      bytes += file.size_bytes;
  return bytes;
}

inline std::unique_ptr<checkpoint_writer> open_writer(const std::filesystem::path& directory,
                                                      std::uint32_t server, std::uint32_t chain) {
  auto writer = checkpoint_writer::open(directory, {server}, {chain});
  REQUIRE_MESSAGE(writer, (writer ? "" : writer.error().text));
  return *std::move(writer);
}

/// Opens the writer of the server and the chain with number `both`.
inline std::unique_ptr<checkpoint_writer> open_writer(const std::filesystem::path& directory,
                                                      std::uint32_t both = 0) {
  return open_writer(directory, both, both);
}

} // namespace troupe::storage
