#include "storage/push_history.hpp"

#include "base/system/file.hpp"
#include "storage/detail/trace_bytes.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

namespace troupe::storage {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t job_bytes_max = std::size_t{16} << 20;

std::pair<std::uint64_t, std::uint16_t> place_of(const trace_entry& x) {
  return {x.version, x.slot};
}

std::string title(const chain_history& of) {
  return "shard " + std::to_string(of.shard.value)
         + (of.generation.value == 1 ? ""
                                     : " (generation " + std::to_string(of.generation.value) + ")");
}

failure in_file(failure why, const std::string& name) { return {why.code, name + ": " + why.text}; }

/// Drops the last clock if some of its slots are missing.
void drop_unfinished(std::vector<trace_entry>& applied) {
  if (!applied.empty() && applied.back().slot + 1 < applied.back().slots)
    std::erase_if(applied,
                  [last = applied.back().version](const auto& x) { return x.version == last; });
}

/// Merges the replicas' records; keeps the earliest of equal steps.
result<void> merge_replicas(chain_history& history) {
  auto& all = history.applied;
  std::ranges::stable_sort(all, [](const auto& x, const auto& y) {
    return std::tuple{place_of(x), x.time_ns} < std::tuple{place_of(y), y.time_ns};
  });
  for (std::size_t i = 1; i < all.size(); ++i)
    if (place_of(all[i - 1]) == place_of(all[i]) && !all[i - 1].same_step(all[i]))
      return {errc::damaged, "servers disagree about step " + std::to_string(all[i].version)
                               + " of " + title(history)};
  const auto doubles = std::ranges::unique(all, {}, place_of);
  all.erase(doubles.begin(), doubles.end());
  drop_unfinished(all);
  return {};
}

result<void> find_gap(const chain_history& history, const job_spec& job) {
  const trace_entry* before = nullptr;
  for (const auto& x : history.applied) {
    const bool within = before != nullptr && before->slot + 1 < before->slots;
    const auto version = before == nullptr ? (begins_job(history, job) ? 1 : x.version)
                                           : before->version + (within ? 0 : 1);
    const auto slot = within ? before->slot + 1 : 0;
    if (x.version != version || x.slot != slot)
      return {errc::damaged, "no server's record has step " + std::to_string(version) + " of "
                               + title(history) + ", but step " + std::to_string(x.version)};
    before = &x;
  }
  return {};
}

} // namespace

bool begins_job(const chain_history& history, const job_spec& job) {
  return history.base_checkpoint == 0
         || (history.base_checkpoint == 1 && any_from_file(job) && history.generation.value == 1);
}

result<trace_file> read_trace_file(const fs::path& path) {
  constexpr std::size_t no_limit = std::size_t{1} << 40;
  const auto content = read_file(path, no_limit);
  if (!content)
    return content.error();
  trace_file file{path.filename(), {}, {}, content->size(), 0};
  std::string_view bytes{*content};
  auto header = detail::take_trace_header(bytes);
  if (!header)
    return in_file(header.error(), file.name);
  file.header = *std::move(header);
  std::optional<std::size_t> first_bad;
  for (std::size_t i = 0; i < bytes.size() / trace_bytes; ++i) {
    const auto record = detail::trace_entry_from(bytes.substr(i * trace_bytes, trace_bytes));
    if (record && first_bad)
      return {errc::damaged, file.name + ": record " + std::to_string(*first_bad) + " is damaged"};
    if (record)
      file.records.push_back(*record);
    else if (!first_bad)
      first_bad = i;
  }
  file.torn_bytes = bytes.size() - file.records.size() * trace_bytes;
  return file;
}

result<push_history> merge_traces(job_spec job, std::vector<trace_file> files) {
  push_history all;
  all.job = std::move(job);
  std::map<std::pair<shard_id, generation_id>, chain_history> chains;
  std::ranges::sort(files, {}, &trace_file::name);
  for (const auto& file : files) {
    const auto& of = file.header;
    ++all.files;
    all.size_bytes += file.size_bytes;
    all.torn_bytes += file.torn_bytes;
    if (of.job != fingerprint(all.job))
      return {errc::wrong_job, file.name + " is of another job"};
    const auto [at, is_new] = chains.try_emplace({of.shard, of.generation});
    auto& history = at->second;
    if (is_new)
      history = {of.shard, of.generation, of.base_checkpoint, of.partitions, {}, {}};
    if (history.base_checkpoint != of.base_checkpoint || history.partitions != of.partitions)
      return {errc::damaged, "servers disagree about the beginning of " + title(history) + ""};
    for (const auto& x : file.records)
      (x.event == push_event::applied ? history.applied : history.read).push_back(x);
  }
  for (auto& [unused, history] : chains) {
    if (auto merged = merge_replicas(history); !merged)
      return merged.error();
    if (auto whole = find_gap(history, all.job); !whole)
      return whole.error();
    all.chains.push_back(std::move(history));
  }
  return all;
}

result<push_history> read_push_history(const fs::path& directory) {
  const auto bytes = read_file(directory / detail::trace_job_name, job_bytes_max);
  if (!bytes)
    return {bytes.error().code, "no record of a run: " + bytes.error().text};
  auto job = detail::job_from(*bytes);
  if (!job)
    return in_file(job.error(), (directory / detail::trace_job_name).string());
  std::vector<trace_file> files;
  std::error_code problem;
  for (fs::directory_iterator at{directory, problem}, end; !problem && at != end;
       at.increment(problem)) {
    if (at->path().extension() != detail::trace_suffix)
      continue;
    if (at->is_regular_file(problem) && at->file_size(problem) == 0 && !problem)
      continue; // Its server ended, or its disk was full, before the first byte.
    auto file = read_trace_file(at->path());
    if (!file)
      return file.error();
    files.push_back(*std::move(file));
  }
  if (problem)
    return io_failure("read", directory, problem);
  if (files.empty())
    return {errc::io_failed, directory.string() + " has no records of pushes"};
  return merge_traces(*std::move(job), std::move(files));
}

void cut_after(push_history& recorded, double seconds) {
  auto begin = std::numeric_limits<std::uint64_t>::max();
  for (const auto& chain : recorded.chains)
    for (const auto& x : chain.applied)
      begin = std::min(begin, x.time_ns);
  const auto end = static_cast<double>(begin) + seconds * 1e9;
  const auto is_later = [&](const trace_entry& x) { return static_cast<double>(x.time_ns) > end; };
  for (auto& chain : recorded.chains) {
    auto first = std::ranges::find_if(chain.applied, is_later);
    if (first != chain.applied.end())
      first -= first->slot;
    chain.read.insert(chain.read.end(), first, chain.applied.end());
    chain.applied.erase(first, chain.applied.end());
  }
}

} // namespace troupe::storage
