// Computes names, sizes and fingerprints of jobs. serialization/job_validate.cpp has the checks.
#include "serialization/job.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <limits>
#include <string_view>

namespace troupe {

namespace {

constexpr std::array<const char*, 8> optimizer_names{"sgd",      "momentum", "adagrad", "adam",
                                                     "nesterov", "adamw",    "ftrl",    "user"};
static_assert(optimizer_names.size() == static_cast<std::size_t>(optimizer_kind_max) + 1);

/// Hashes a sequence of 64-bit fields; each is mixed in with murmur3's finaliser.
class mixer {
public:
  void add(std::uint64_t field) {
    state_ = (state_ ^ field) + 0x9e3779b97f4a7c15;
    state_ = (state_ ^ (state_ >> 33)) * 0xff51afd7ed558ccd;
    state_ = (state_ ^ (state_ >> 33)) * 0xc4ceb9fe1a85ec53;
    state_ ^= state_ >> 33;
  }

  void add(std::string_view text) {
    add(text.size());
    for (auto c : text)
      add(std::uint64_t{static_cast<unsigned char>(c)});
  }

  std::uint64_t state() const { return state_; }

private:
  std::uint64_t state_ = 0;
};

std::uint64_t clocks_per_epoch(const job_spec& job) {
  const auto batches = job.batches_per_epoch();
  return batches / job.workers + (batches % job.workers != 0 ? 1 : 0);
}

} // namespace

const char* to_string(optimizer_kind kind) {
  const auto index = static_cast<std::size_t>(kind);
  return index < optimizer_names.size() ? optimizer_names[index] : "unknown";
}

result<optimizer_kind> parse_optimizer(const std::string& text) {
  const auto found = std::find(optimizer_names.begin(), optimizer_names.end(), text);
  if (found == optimizer_names.end() || text == to_string(optimizer_kind::user))
    return {errc::invalid_argument,
            std::string{"optimizer must be "} + optimizer_choices + ", not '" + text + "'"};
  return static_cast<optimizer_kind>(found - optimizer_names.begin());
}

float optimizer_spec::rate_at(std::uint64_t staleness) const {
  const auto stale = static_cast<float>(staleness);
  const bool lower = full_rate_staleness > 0.0f && stale > full_rate_staleness;
  return lower ? learning_rate / (stale / full_rate_staleness) : learning_rate;
}

float optimizer_spec::clip_scale(float gradient_norm) const {
  return clip_norm > 0.0f && gradient_norm > clip_norm ? clip_norm / gradient_norm : 1.0f;
}

std::string optimizer_spec::name() const {
  return kind == optimizer_kind::user ? function : to_string(kind);
}

const char* to_string(durability_mode mode) {
  return mode == durability_mode::log ? "log" : "memory";
}

result<durability_mode> parse_durability(const std::string& text) {
  for (const auto mode : {durability_mode::memory, durability_mode::log})
    if (text == to_string(mode))
      return mode;
  return {errc::invalid_argument, "durability must be memory or log, not '" + text + "'"};
}

std::uint64_t table_spec::size() const {
  if (is_sparse())
    return 0;
  std::uint64_t elements = 1;
  for (auto extent : shape)
    if (__builtin_mul_overflow(elements, extent, &elements))
      return std::numeric_limits<std::uint64_t>::max();
  return elements;
}

std::uint64_t job_spec::batches_per_epoch() const {
  return samples / batch_samples + (samples % batch_samples != 0 ? 1 : 0);
}

std::uint64_t job_spec::batches() const { return batches_per_epoch() * epochs; }

std::uint64_t fingerprint(const job_spec& job) {
  mixer hash;
  hash.add(std::string_view{job.name});
  hash.add(job.seed);
  hash.add(std::uint64_t{job.partitions});
  hash.add(std::uint64_t{job.batch_samples});
  hash.add(job.samples);
  hash.add(job.tables.size());
  for (const auto& table : job.tables) {
    hash.add(std::string_view{table.name});
    hash.add(table.shape.size());
    for (auto extent : table.shape)
      hash.add(extent);
    if (table.is_sparse())
      hash.add(std::uint64_t{table.width});
    if (table.frozen)
      hash.add(std::string_view{"frozen"});
    if (table.values_checksum != 0)
      hash.add(std::uint64_t{table.values_checksum} << 32); // No width of a row is as large.
    const auto& optimizer = table.optimizer;
    hash.add(static_cast<std::uint64_t>(optimizer.kind));
    if (optimizer.kind != optimizer_kind::user)
      continue;
    hash.add(std::string_view{optimizer.function});
    hash.add(std::uint64_t{optimizer.function_state});
    hash.add(optimizer.parameters.size());
    for (const float x : optimizer.parameters)
      hash.add(std::uint64_t{std::bit_cast<std::uint32_t>(x)});
  }
  hash.add(goes_by_clocks(job) ? std::uint64_t{job.workers} : 0);
  if (job.own_store)
    hash.add(std::string_view{"own store"});
  if (job.files_checksum != 0)
    hash.add(job.files_checksum);
  // 0 means "no job" to the callers.
  return std::max<std::uint64_t>(hash.state(), 1);
}

bool is_of(std::uint64_t written, const job_spec& job) {
  if (written == fingerprint(job) || job.files_checksum == 0)
    return written == fingerprint(job);
  auto earlier = job;
  earlier.files_checksum = 0;
  return written == fingerprint(earlier);
}

bool any_table(const job_spec& job, bool mode_traits::*property) {
  return std::ranges::any_of(
    job.tables, [property](const table_spec& table) { return table.sync.traits().*property; });
}

bool mixes_clocks(const job_spec& job) {
  return goes_by_clocks(job) && !std::ranges::all_of(job.tables, [](const table_spec& table) {
           return table.sync.traits().clock_updates;
         });
}

bool has_waiting_pulls(const job_spec& job) {
  return std::ranges::any_of(
    job.tables, [](const table_spec& table) { return table.sync.traits().pulls_wait(); });
}

std::optional<std::uint32_t> least_lead(const job_spec& job) {
  std::optional<std::uint32_t> least;
  for (const auto& table : job.tables)
    if (const auto& sync = table.sync; sync.traits().bounded_lead)
      least = std::min(least.value_or(sync.staleness_clocks), sync.staleness_clocks);
  return least;
}

bool any_sparse(const job_spec& job) {
  return std::any_of(job.tables.begin(), job.tables.end(),
                     [](const table_spec& table) { return table.is_sparse(); });
}

bool any_frozen(const job_spec& job) {
  return std::ranges::any_of(job.tables, &table_spec::frozen);
}

bool any_from_file(const job_spec& job) {
  return std::ranges::any_of(job.tables,
                             [](const table_spec& table) { return table.values_checksum != 0; });
}

std::uint64_t bsp_clock(const job_spec& job, batch_id batch) {
  const auto per_epoch = job.batches_per_epoch();
  const auto epoch = batch.value / per_epoch;
  return epoch * clocks_per_epoch(job) + batch.value % per_epoch / job.workers;
}

batch_id bsp_first(const job_spec& job, std::uint64_t clock) {
  const auto clocks = clocks_per_epoch(job);
  return {clock / clocks * job.batches_per_epoch() + clock % clocks * job.workers};
}

batch_id bsp_end(const job_spec& job, std::uint64_t clock) {
  const auto end_of_epoch = (clock / clocks_per_epoch(job) + 1) * job.batches_per_epoch();
  return {std::min(bsp_first(job, clock).value + job.workers, end_of_epoch)};
}

std::uint64_t bsp_clock_count(const job_spec& job) {
  return job.batches() == 0 ? 0 : bsp_clock(job, {job.batches() - 1}) + 1;
}

} // namespace troupe
