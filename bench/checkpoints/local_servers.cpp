#include "bench/checkpoints/local_servers.hpp"

#include "serialization/layout.hpp"
#include "storage/checkpoint_reader.hpp"

#include <algorithm>
#include <random>
#include <iterator>
#include <stdexcept>
#include <utility>
#include <variant>

namespace troupe::bench {

namespace {

/// Rows of each sparse table: most of the 8 partitions have one full slab and a part of another.
constexpr std::uint64_t rows = 200;
/// A slab of 16 rows has 33 KiB.
constexpr std::uint32_t row_width = 520;
// A batch changes only a part, so that the second of two checkpoints has old and new files.
constexpr std::size_t rows_a_batch = 12;
constexpr std::uint64_t one_block_of = 6;

[[noreturn]] void fail(const failure& why) { throw std::runtime_error{why.text}; }

/// Random numbers that cost nothing to begin with.
class number_source {
public:
  using result_type = std::uint64_t;

  number_source(std::uint64_t batch, table_id table, std::uint64_t place)
      : state_(row_hash(row_hash(row_hash(batch + 1) + table.value) + place)) {}

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }
  result_type operator()() { return state_.next(); }

private:
  splitmix64 state_;
};

/// Draws numbers in [-1, 1).
void draw_gradient(number_source source, std::uint64_t count, float* into) {
  for (std::uint64_t i = 0; i < count; ++i)
    into[i] = static_cast<float>(static_cast<std::int64_t>(source())) * 0x1p-63f;
}

template <class Fill>
float_ptr new_gradient(std::uint64_t count, Fill fill) {
  const std::shared_ptr<float[]> made{new float[count]};
  fill(made.get());
  return {made, made.get()};
}

table_spec dense(const char* name, std::vector<std::uint64_t> shape, optimizer_kind optimizer) {
  table_spec table;
  table.name = name;
  table.shape = std::move(shape);
  table.optimizer.kind = optimizer;
  table.init = {initializer_kind::uniform, 0.1f};
  return table;
}

table_spec sparse(const char* name, optimizer_kind optimizer) {
  auto table = dense(name, {}, optimizer);
  table.kind = table_kind::sparse;
  table.width = row_width;
  return table;
}

std::vector<table_id> all_tables(const job_spec& job) {
  std::vector<table_id> tables;
  for (std::uint32_t i = 0; i < job.tables.size(); ++i)
    tables.push_back({i});
  return tables;
}

incarnation_id first_start(worker_id worker) { return {1000 + worker.value}; }

std::vector<clock_entry> all_workers(const job_spec& job) {
  std::vector<clock_entry> workers;
  for (std::uint32_t i = 0; i < job.workers; ++i)
    workers.push_back({{i}, first_start({i}), 0, true});
  return workers;
}

std::vector<shard_partition> fresh(const job_spec& job,
                                   const std::vector<partition_id>& partitions) {
  std::vector<shard_partition> all;
  for (const auto partition : partitions)
    all.push_back({partition, 0, std::vector<batch_set>(job.tables.size())});
  return all;
}

std::shared_ptr<buffer_pool> new_pool() { return std::make_shared<buffer_pool>(0); }

std::shared_ptr<table_store> adopt(const job_spec& job,
                                   const std::vector<partition_image>& images) {
  auto made = table_store::restored(job, images, new_pool());
  if (!made)
    fail(made.error());
  return *std::move(made);
}

std::vector<std::vector<partition_id>> partitions_by_server(const job_spec& job,
                                                            std::uint32_t servers) {
  const auto map = make_partition_map(job, servers, {});
  std::vector<std::vector<partition_id>> owned(servers);
  for (std::uint32_t p = 0; p < job.partitions; ++p)
    owned[map[p].value].push_back({p});
  return owned;
}

row_keys rows_of(const job_spec& job, table_id table, std::vector<std::uint64_t> keys) {
  const auto own = std::make_shared<std::vector<std::uint64_t>>(std::move(keys));
  return {table, job.tables[table.value].width, own->size(), key_ptr{own, own->data()}};
}

} // namespace

job_spec stateful_job(bsp_tables which) {
  job_spec job;
  job.name = "stateful";
  job.partitions = 8;
  job.workers = 3;
  job.samples = 60;
  job.batch_samples = 1;
  job.tables = {dense("adam", {100, 200}, optimizer_kind::adam),
                dense("momentum", {64, 150}, optimizer_kind::momentum),
                dense("adagrad", {9000}, optimizer_kind::adagrad),
                dense("sgd", {10}, optimizer_kind::sgd),
                sparse("rows", optimizer_kind::sgd),
                sparse("adam_rows", optimizer_kind::adam)};
  for (std::size_t i = 0; i < job.tables.size(); ++i)
    if (which == bsp_tables::all || (which == bsp_tables::every_other && i % 2 == 0))
      job.tables[i].sync.mode = consistency_mode::bsp;
  if (const auto valid = validate(job); !valid)
    fail(valid.error());
  return job;
}

std::vector<std::uint64_t> row_keys_of_job() {
  std::vector<std::uint64_t> keys;
  for (std::uint64_t i = 0; i < rows; ++i)
    keys.push_back(row_hash(i + 1000));
  std::ranges::sort(keys);
  return keys;
}

// -- one server --------------------------------------------------------------------------------

local_server::local_server(const job_spec& job, shard_id self,
                           const std::vector<shard_partition>& partitions,
                           std::shared_ptr<table_store> values)
    : job_(job), self_(self), owned_(job.partitions), values_(std::move(values)),
      decider_(job, {1}, partitions) {
  for (const auto& x : partitions)
    owned_[x.partition.value] = true;
  shard_effects effects;
  decider_.set_workers(all_workers(job), effects);
  (void)carry_out(effects);
}

local_server::local_server(const job_spec& job, shard_id self,
                           const std::vector<partition_id>& partitions)
    : local_server(job, self, fresh(job, partitions),
                   std::make_shared<table_store>(job, partitions, new_pool())) {}

local_server::local_server(const job_spec& job, shard_id self,
                           const std::vector<partition_image>& restored)
    : local_server(job, self, applied_of(restored), adopt(job, restored)) {}

push_request local_server::made_of(batch_id batch) const {
  const worker_id worker{static_cast<std::uint32_t>(batch.value % job_.workers)};
  push_request made;
  made.step = {worker, first_start(worker), {1}, batch, batch.value / job_.workers};
  made.tables = all_tables(job_);
  for (const auto table : made.tables) {
    const auto& spec = job_.tables[table.value];
    for (std::uint64_t i = 0; i < block_count(spec); ++i) {
      number_source source{batch.value, table, i};
      if (source() % one_block_of != 0 || !owns(partition_of(job_, table, i)))
        continue;
      const auto where = block_range(job_, table, i);
      made.pieces.push_back({where, new_gradient(where.count, [&](float* into) {
                               draw_gradient(source, where.count, into);
                             })});
    }
    if (spec.is_sparse())
      add_rows(batch, table, made);
  }
  return made;
}

void local_server::add_rows(batch_id batch, table_id table, push_request& to) const {
  const partition_id partition{static_cast<std::uint32_t>(batch.value % job_.partitions)};
  if (!owns(partition))
    return;
  auto keys = row_keys_of_job();
  std::erase_if(keys, [&](std::uint64_t key) { return partition_of(job_, key) != partition; });
  std::vector<std::uint64_t> drawn;
  std::ranges::sample(keys, std::back_inserter(drawn), rows_a_batch,
                      number_source{batch.value, table, rows});
  const auto where = rows_of(job_, table, std::move(drawn));
  const auto fill = [&](float* into) {
    for (std::uint64_t i = 0; i < where.count; ++i)
      draw_gradient({batch.value, table, where.keys.get()[i]}, where.width, into + i * where.width);
  };
  to.rows.push_back({where, new_gradient(where.floats(), fill)});
}

void local_server::push(batch_id batch) {
  const request_token token{++tokens_};
  const auto& what = pushed_.emplace(token.value, made_of(batch)).first->second;
  if (const auto fits = values_->check(what); !fits)
    fail(fits.error());
  shard_effects effects;
  decider_.push(token, {what.step}, what.tables, decider_.version(), effects);
  (void)carry_out(effects);
}

storage::cut local_server::cut(std::uint64_t checkpoint) {
  shard_effects effects;
  decider_.request_cut(checkpoint, decider_.bsp_clocks(), effects);
  return {checkpoint, self_, carry_out(effects)};
}

std::vector<partition_image> local_server::carry_out(shard_effects& effects) {
  std::vector<partition_image> pinned;
  std::vector<const push_request*> updates;          // Pushes of the pending entry.
  for (std::size_t i = 0; i < effects.size(); ++i) { // Each may append more.
    const auto effect = effects[i];
    if (const auto* entry = std::get_if<propose_effect>(&effect)) {
      updates.clear();
      for (const auto token : entry->pushes)
        updates.push_back(&pushed_.at(token.value));
      decider_.commit(effects);
    } else if (const auto* step = std::get_if<apply_effect>(&effect)) {
      if (const auto done = values_->apply(*step, updates); !done)
        fail(done.error());
      decider_.applied(effects);
    } else if (const auto* done = std::get_if<acknowledge_effect>(&effect)) {
      pushed_.erase(done->push.value);
    } else if (const auto* refused = std::get_if<refuse_effect>(&effect)) {
      fail(refused->why);
    } else if (std::holds_alternative<cut_effect>(effect)) {
      pinned = values_->pin(decider_.partitions());
    }
  }
  return pinned;
}

void local_server::export_to(std::vector<std::vector<float>>& parameters) const {
  pull_request all;
  const auto keys = row_keys_of_job();
  auto own_keys = keys;
  std::erase_if(own_keys, [this](std::uint64_t key) { return !owns(partition_of(job_, key)); });
  for (const auto table : all_tables(job_)) {
    const auto& spec = job_.tables[table.value];
    for (std::uint64_t i = 0; i < block_count(spec); ++i)
      if (owns(partition_of(job_, table, i)))
        all.ranges.push_back(block_range(job_, table, i));
    if (spec.is_sparse())
      all.rows.push_back(rows_of(job_, table, own_keys));
  }
  if (const auto fits = values_->check(all); !fits)
    fail(fits.error());
  const auto found = values_->read(all, {});
  for (const auto& part : found.pieces)
    std::copy_n(part.values.get(), part.where.count,
                parameters[part.where.table.value].begin()
                  + static_cast<std::ptrdiff_t>(part.where.first));
  for (std::size_t list = 0; list < all.rows.size(); ++list) {
    const auto& asked = all.rows[list];
    for (std::uint64_t i = 0; i < asked.count; ++i) {
      const auto place = std::ranges::lower_bound(keys, asked.keys.get()[i]) - keys.begin();
      std::copy_n(found.rows[list].values.get() + i * asked.width, asked.width,
                  parameters[asked.table.value].begin() + place * asked.width);
    }
  }
}

// -- all of them -------------------------------------------------------------------------------

local_servers fresh_servers(const job_spec& job, std::uint32_t servers) {
  local_servers made;
  for (const auto& partitions : partitions_by_server(job, servers))
    made.emplace_back(job, shard_id{static_cast<std::uint32_t>(made.size())}, partitions);
  return made;
}

local_servers restored_servers(const job_spec& job, std::uint32_t servers,
                               const std::filesystem::path& directory, std::uint64_t checkpoint) {
  local_servers made;
  for (const auto& partitions : partitions_by_server(job, servers)) {
    const auto images = storage::read(directory, checkpoint, job, partitions);
    if (!images)
      fail(images.error());
    made.emplace_back(job, shard_id{static_cast<std::uint32_t>(made.size())}, *images);
  }
  return made;
}

std::vector<std::vector<float>> parameters_of(const job_spec& job, const local_servers& servers) {
  std::vector<std::vector<float>> parameters;
  for (const auto& table : job.tables)
    parameters.emplace_back(table.is_sparse() ? rows * table.width : table.size());
  for (const auto& server : servers)
    server.export_to(parameters);
  return parameters;
}

std::vector<partition_image> images_of(local_servers& servers) {
  std::vector<partition_image> all;
  for (auto& server : servers)
    std::ranges::move(server.cut(0).partitions, std::back_inserter(all));
  std::ranges::sort(all, {}, &partition_image::partition);
  return all;
}

writer_list open_writers(const std::filesystem::path& directory, std::size_t servers) {
  writer_list writers;
  for (std::uint32_t i = 0; i < servers; ++i) {
    auto opened = storage::checkpoint_writer::open(directory, {i}, {i});
    if (!opened)
      fail(opened.error());
    writers.push_back(*std::move(opened));
  }
  return writers;
}

storage::manifest commit_cut(const std::filesystem::path& directory, const job_spec& job,
                             std::uint64_t checkpoint, local_servers& servers,
                             const writer_list& writers) {
  storage::manifest whole{checkpoint, job, {1}, servers.front().decider().bsp_clocks(), {}, {}};
  for (std::size_t i = 0; i < servers.size(); ++i) {
    auto part = writers[i]->write(servers[i].cut(checkpoint));
    if (!part)
      fail(part.error());
    whole.parts.push_back(*std::move(part));
  }
  if (const auto done = storage::commit(directory, whole); !done)
    fail(done.error());
  return whole;
}

} // namespace troupe::bench
