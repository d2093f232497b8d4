// Defines the counters that members report. Sums and the table of wire_counters.cpp follow one list
// of them. put_sums() of the run's report names each key by itself.
#pragma once

#include "base/notes.hpp"
#include "serialization/histogram.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// Counts of a port, over all its lanes.
struct port_counters {
  std::string port;                  ///< Node and port, "players.seen".
  std::uint64_t parcels = 0;         ///< Sent, or taken.
  std::uint64_t bytes = 0;           ///< Heads and tensors of them.
  std::uint64_t lost = 0;            ///< Sent, or received, and never taken.
  std::uint64_t longest_wait_us = 0; ///< For credit, of a sender; also a wait that has not ended.

  bool operator==(const port_counters&) const = default;
};
constexpr std::size_t ports_max = 64; ///< Of a process.

/// Counts since the start of this incarnation.
struct worker_counters {
  std::uint64_t pushes_sent = 0;
  std::uint64_t pushes_acknowledged = 0;
  std::uint64_t pushes_refused = 0;
  std::uint64_t samples = 0;          ///< Samples of acknowledged batches.
  std::uint64_t batches_computed = 0; ///< Acknowledged or not.
  std::uint64_t samples_computed = 0; ///< Samples of `batches_computed`.
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t wait_us = 0; ///< Time without a batch to compute on, for any reason, up to now.
  std::uint64_t window_wait_us = 0;      ///< Time that its requests waited for a link's window.
  std::uint64_t wire_bytes_sent = 0;     ///< Bytes of its requests' frames on links.
  std::uint64_t wire_bytes_received = 0; ///< Bytes of its replies' frames on links.
  double loss_sum = 0.0;                 ///< Sum of the mean losses of computed batches.
  std::uint64_t loss_count = 0;          ///< Number of losses in `loss_sum`.
  /// time_class() of completed requests: from the request until all servers acknowledged their
  /// parts of the push and sent their parts of the pull.
  histogram request_times;
  std::uint64_t left_out = 0; ///< Rounds that its process's reducer ended without it.
  /// Pushes that its process's reducer added up; one worker of the process reports these.
  std::uint64_t pushes_summed = 0;
  std::uint64_t sums = 0;        ///< Sums that the reducer made of them.
  std::uint64_t device_sums = 0; ///< Sums that devices made.
  /// Time that its trainer waited for parcels within a batch, up to now. No part of `wait_us`.
  std::uint64_t channel_wait_us = 0;
  /// Notes of the process's trainers and stages; one worker of the process reports them.
  std::vector<program_note> notes = {};
  std::vector<port_counters> ports = {}; ///< Of its trainer.

  bool operator==(const worker_counters&) const = default;
};

/// Counts since the start of this incarnation, for all its shards.
struct server_counters {
  std::uint64_t applied = 0;    ///< Pushes applied (in bsp: slots summed and applied).
  std::uint64_t duplicates = 0; ///< Pushes acknowledged and not applied again.
  std::uint64_t refused = 0;    ///< Pushes refused with non_finite or shape_mismatch.
  std::uint64_t pulls = 0;
  std::uint64_t waiting_pulls = 0; ///< Pulls that could not be answered at once.
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  histogram staleness_versions;
  histogram staleness_clocks;
  std::vector<program_note> notes = {}; ///< Notes of the keeper of an own store.

  bool operator==(const server_counters&) const = default;
};

/// Counts since the start of this incarnation of an actor of a program, or of a later part of a
/// line.
struct actor_counters {
  std::vector<port_counters> ports;
  std::vector<program_note> notes = {};
  worker_counters requests = {}; ///< Pushes, bytes and times of a later part; else zeros.

  bool operator==(const actor_counters&) const = default;
};

/// Lists the members of a struct of counters. A new counter needs a line here, a field of
/// control.capnp, and a line of the table in wire_counters.cpp.
template <class Counters>
struct counter_list;

template <>
struct counter_list<worker_counters> {
  static constexpr std::array counts{
    &worker_counters::pushes_sent,      &worker_counters::pushes_acknowledged,
    &worker_counters::pushes_refused,   &worker_counters::samples,
    &worker_counters::batches_computed, &worker_counters::samples_computed,
    &worker_counters::bytes_sent,       &worker_counters::bytes_received,
    &worker_counters::wait_us,          &worker_counters::window_wait_us,
    &worker_counters::wire_bytes_sent,  &worker_counters::wire_bytes_received,
    &worker_counters::loss_count,       &worker_counters::left_out,
    &worker_counters::pushes_summed,    &worker_counters::sums,
    &worker_counters::device_sums,      &worker_counters::channel_wait_us};
  static constexpr std::array histograms{&worker_counters::request_times};
};

template <>
struct counter_list<server_counters> {
  static constexpr std::array counts{&server_counters::applied,       &server_counters::duplicates,
                                     &server_counters::refused,       &server_counters::pulls,
                                     &server_counters::waiting_pulls, &server_counters::bytes_sent,
                                     &server_counters::bytes_received};
  static constexpr std::array histograms{&server_counters::staleness_versions,
                                         &server_counters::staleness_clocks};
};

inline void add(server_counters& sum, const server_counters& what) {
  for (const auto each : counter_list<server_counters>::counts)
    sum.*each += what.*each;
  sum.notes.insert(sum.notes.end(), what.notes.begin(), what.notes.end()); // One shard has notes.
  for (const auto each : counter_list<server_counters>::histograms)
    (sum.*each).merge(what.*each);
}

} // namespace troupe
