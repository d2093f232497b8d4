// The messages of Troupe as plain values. Two belong to the data path (request, reply), two to the
// control path (report, orders); the rest opens a link. serialization/wire.hpp turns them into
// bytes.
#pragma once

#include "base/error.hpp"
#include "serialization/batch_set.hpp"
#include "serialization/histogram.hpp"
#include "serialization/ids.hpp"
#include "serialization/job.hpp"
#include "serialization/push_pull.hpp"
#include "serialization/replication.hpp"

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

// -- control path: members report what they are, the coordinator answers what they should be ---
//
// Both are whole states, not changes: each may be lost, repeated or overtaken by a newer one.

/// Batches given to a worker: first, first + stride, ... (count of them).
struct lease {
  std::uint64_t id = 0;
  batch_id first;
  std::uint32_t count = 0;
  std::uint32_t stride = 1;

  batch_id at(std::uint32_t i) const { return {first.value + std::uint64_t{i} * stride}; }
  bool operator==(const lease&) const = default;
};

struct lease_progress {
  troupe::lease lease;
  std::vector<batch_id> done; ///< Batches of it that every server acknowledged.

  bool operator==(const lease_progress&) const = default;
};

/// Cumulative since the start of this incarnation.
struct worker_counters {
  std::uint64_t pushes_sent = 0;
  std::uint64_t pushes_acknowledged = 0;
  std::uint64_t pushes_refused = 0;
  std::uint64_t samples = 0;          ///< Samples of acknowledged batches.
  std::uint64_t batches_computed = 0; ///< Acknowledged or not ...
  std::uint64_t samples_computed = 0; ///< ... and their samples.
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t wait_us = 0; ///< Without a batch to compute on, for whatever reason, up to now.
  std::uint64_t window_wait_us = 0;      ///< Time that its requests waited for a link's window.
  std::uint64_t wire_bytes_sent = 0;     ///< Frames of its requests as they went over links ...
  std::uint64_t wire_bytes_received = 0; ///< ... and their answers.
  double loss_sum = 0.0;                 ///< Sum of mean losses of the batches computed ...
  std::uint64_t loss_count = 0;          ///< ... and their number.
  /// time_class() of requests that were answered: from the question until all servers' parts of
  /// the push are acknowledged and all of the pull are there.
  histogram request_times;
  std::uint64_t left_out = 0; ///< Rounds that its process's reducer ended without it.
  /// Of that reducer, said by one of its workers: pushes that it added up ...
  std::uint64_t pushes_summed = 0;
  std::uint64_t sums = 0;        ///< ... what they became, ...
  std::uint64_t device_sums = 0; ///< ... and how many of these devices added up.

  bool operator==(const worker_counters&) const = default;
};

struct worker_status {
  generation_id generation;
  std::vector<lease_progress> leases; ///< All that it holds.
  std::uint64_t clock = 0;            ///< Its next step.
  worker_counters counters;
  std::string host;   ///< Of its process; workers of one machine share it.
  std::string failed; ///< Not empty: the worker cannot go on, the job must stop; the reason.

  bool operator==(const worker_status&) const = default;
};

struct server_counters {
  std::uint64_t applied = 0;    ///< Pushes applied (in bsp: slots summed and applied).
  std::uint64_t duplicates = 0; ///< Pushes acknowledged and not applied again.
  std::uint64_t refused = 0;    ///< Pushes refused with non_finite or shape_mismatch.
  std::uint64_t pulls = 0;
  std::uint64_t waiting_pulls = 0; ///< Pulls that were not answered at once.
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  histogram staleness_versions;
  histogram staleness_clocks;

  void add(const server_counters& other) {
    applied += other.applied;
    duplicates += other.duplicates;
    refused += other.refused;
    pulls += other.pulls;
    waiting_pulls += other.waiting_pulls;
    bytes_sent += other.bytes_sent;
    bytes_received += other.bytes_received;
    staleness_versions.merge(other.staleness_versions);
    staleness_clocks.merge(other.staleness_clocks);
  }
  bool operator==(const server_counters&) const = default;
};

/// One worker as a shard knows it.
struct clock_entry {
  worker_id worker;
  incarnation_id incarnation;
  std::uint64_t clock = 0; ///< Its next step: it has pushed all below.
  bool known = false;      ///< False: not heard of since this shard started; ssp pulls wait for it.

  bool operator==(const clock_entry&) const = default;
};

struct file_entry {
  std::string name; ///< Relative to the checkpoint's directory, with '/'.
  std::uint64_t size_bytes = 0;
  std::uint32_t crc32c = 0;

  bool operator==(const file_entry&) const = default;
};

/// A chain's share of a checkpoint, written and verified.
struct checkpoint_part {
  std::uint64_t checkpoint = 0;
  chain_id chain;
  std::vector<file_entry> files;
  std::uint64_t version = 0;

  bool operator==(const checkpoint_part&) const = default;
};

/// One replica of a chain.
struct replica_status {
  chain_id chain;
  chain_status status;
  std::string failed; ///< Not empty: what it was to begin with could not be loaded; the reason.
  std::uint64_t unreadable = 0; ///< With `failed`: the checkpoint that could not be restored.
  bool recovered = false;       ///< It began its generation with all that the chain acknowledged.
  checkpoint_part part;         ///< The newest one written; checkpoint 0: none.
  /// Number of the newest checkpoint that could not be written.
  std::uint64_t checkpoint_failed = 0;
  std::string checkpoint_failure; ///< Why.
  // Of the head:
  batch_set marks; ///< Batches applied on all its partitions and tables.
  std::vector<clock_entry> clocks;
  std::uint64_t version = 0;

  bool operator==(const replica_status&) const = default;
};

struct server_status {
  std::string address;        ///< Where its kv listens, "127.0.0.1:40123"; empty in one process.
  std::uint64_t clock_ns = 0; ///< Its boot clock when it wrote this.
  std::vector<replica_status> chains; ///< Those that it was told of.
  server_counters counters;           ///< Of all chains since its start.

  bool operator==(const server_status&) const = default;
};

/// A process whose end its parent saw.
struct death {
  member_id member;
  bool operator==(const death&) const = default;
};

/// Servers that a job is to have from now on, and those that it is not to have any more.
struct resize {
  std::vector<server_id> add;
  std::vector<server_id> drain;

  bool operator==(const resize&) const = default;
};

/// From a launcher: the one that the user started, or one on another host; or from a command.
struct observer_status {
  std::vector<death> deaths; ///< All so far.
  bool done = false;         ///< It needs the servers no more: the job may end.
  bool stop = false;         ///< The user asked to end now: write a checkpoint, then stop.
  std::string failed;        ///< Not empty: give up, with this reason (a process died too often).
  troupe::resize resize;     ///< The user's wish; the same one may come again.

  bool operator==(const observer_status&) const = default;
};

struct status_message {
  member_id from;
  std::uint64_t job = 0;           ///< fingerprint(job_spec) of the sender.
  std::uint64_t sequence = 0;      ///< Grows with each report of one incarnation.
  std::uint64_t rss_bytes_max = 0; ///< Peak resident memory of the sender's process.
  std::variant<worker_status, server_status, observer_status> body;

  bool operator==(const status_message&) const = default;
};

/// Where a server listens for others.
struct server_address {
  member_id server;
  std::string address;

  bool operator==(const server_address&) const = default;
};

/// Who answers for a chain. The list of all of them and the partition map make a view.
struct chain_entry {
  chain_id chain;
  member_id head;
  std::string address;  ///< Of the head.
  bool serving = false; ///< Its partitions are loaded; requests would be answered.
  /// The members behind the head, in their order: some pulls can be asked of them.
  std::vector<server_address> others = {};

  bool operator==(const chain_entry&) const = default;
};

/// The cluster as clients need it.
struct view {
  config_id config;
  generation_id generation;
  std::vector<chain_entry> chains; ///< Ordered by chain.
  std::vector<chain_id> chain_of;  ///< One for each partition.

  bool operator==(const view&) const = default;
};

struct desired_worker {
  troupe::view view;
  std::vector<lease> leases;     ///< All that it should hold; others are no longer its business.
  std::uint64_t start_clock = 0; ///< Clock of its first step, once admitted.
  bool admitted = false;         ///< All servers know this incarnation; work may begin.

  bool operator==(const desired_worker&) const = default;
};

struct desired_chain {
  chain_id chain;
  chain_metadata record;

  bool operator==(const desired_chain&) const = default;
};

struct desired_server {
  job_spec job;
  generation_id generation;
  std::vector<desired_chain> chains;   ///< All of the job.
  std::vector<chain_id> chain_of;      ///< One for each partition.
  std::vector<server_address> servers; ///< All that are there.
  std::uint64_t heard_ns = 0;          ///< server_status::clock_ns of the newest report heard.
  /// Workers that may push. Those with known == false are being admitted: the shard reports a clock
  /// for them at which it is safe to start, and waits for them from there on.
  std::vector<clock_entry> workers;
  std::uint64_t checkpoint = 0;       ///< Write this checkpoint now; 0: none asked for so far.
  std::uint64_t checkpoint_clock = 0; ///< bsp: cut after this clock has been applied.

  bool operator==(const desired_server&) const = default;
};

/// One process as a person sees it.
enum class member_state : std::uint8_t { absent, joining, restoring, active, finished, evicted };

struct member_status {
  member_id member;
  member_state state = member_state::absent;
  std::uint64_t rss_bytes_max = 0;
  std::uint64_t clock = 0;               ///< worker: its next step. server: its version.
  std::uint64_t updates_rolled_back = 0; ///< server: acknowledged updates that its restore lost.
  worker_counters worker;
  server_counters server;

  bool operator==(const member_status&) const = default;
};

enum class job_phase : std::uint8_t {
  gathering, ///< Waiting for servers and workers.
  training,
  finishing, ///< All batches applied; the last checkpoint is being written.
  finished,  ///< Values may be pulled; waiting for observer_status::done.
  stopped,   ///< Everyone leaves.
};

struct job_status {
  troupe::view view;
  job_phase phase = job_phase::gathering;
  std::uint64_t batches_done = 0;     ///< Applied on every partition.
  std::uint64_t checkpoint = 0;       ///< Newest committed one; 0: none.
  std::vector<member_status> members; ///< The present incarnation of each.
  std::vector<server_id> servers;     ///< Those that are to run.
  std::vector<server_id> draining;    ///< Those that leave.
  std::vector<std::string> events;    ///< The last ones, oldest first, for the log.
  std::uint64_t events_total = 0;     ///< Events so far; the last of `events` has this number.
  job_spec job;                       ///< Empty: not said.
  std::uint32_t coordinator = 0;      ///< Which of them leads.
  std::uint64_t directory_mark = 0;   ///< Of the checkpoint directory; 0: none.

  bool operator==(const job_status&) const = default;
};

struct desired_state {
  member_id to;
  std::uint64_t term = 0;     ///< Grows with each start of the coordinator.
  std::uint64_t sequence = 0; ///< Grows within a term; an older one is dropped.
  bool stop = false;          ///< End this process now, orderly.
  std::string failed;         ///< With stop: not empty where the job failed; the reason.
  std::variant<desired_worker, desired_server, job_status> body;

  bool operator==(const desired_state&) const = default;
};

// -- what opens a link ----------------------------------------------------------------------------

/// First message in each direction. The bytes that tell its version never change (envelope.capnp).
struct hello {
  std::uint32_t version = 0; ///< Protocol version, wire.hpp.
  std::uint64_t job = 0;     ///< fingerprint(job_spec).
  std::uint64_t secret = 0;  ///< Drawn by the launcher, passed to its children; 0 on another host.
  member_id from;
  encoding_set reads = 0; ///< What a peer may send it, and ask it for.
  encoding_set sends = 0; ///< What it may send, or ask for: its peers must read them.

  bool operator==(const hello&) const = default;
};

/// The link is closed after this one.
struct rejection {
  failure why;
  bool operator==(const rejection&) const = default;
};

// -- requests on a link -------------------------------------------------------------------------

/// How a request on a link brings one list of keys (roles/links/key_cache.hpp).
struct key_use {
  enum class how : std::uint8_t {
    brought, ///< Whole, to be used once.
    kept,    ///< Whole; the receiver keeps it in a slot.
    named,   ///< Not at all: it is in that slot.
  };
  how way = how::brought;
  std::uint32_t slot = 0;

  bool operator==(const key_use&) const = default;
};

/// `number` pairs a reply with its request; unique per link and direction.
struct request_message {
  std::uint64_t number = 0;
  request what;
  /// One for each list of rows, those of the push first; empty: all are brought.
  std::vector<key_use> keys = {};
  std::vector<std::uint32_t> forgotten = {}; ///< Slots that are free from now on.
};
struct reply_message {
  std::uint64_t number = 0;
  reply what;
};
struct failure_message {
  std::uint64_t number = 0;
  failure what;
};
using answer_message = std::variant<reply_message, failure_message>;

/// What travels together; a single one is a list too.
template <class Item>
struct item_list {
  item_list() = default;
  template <class One>
  requires std::convertible_to<One, Item> item_list(One&& only) {
    items.emplace_back(std::forward<One>(only));
  }

  std::vector<Item> items;
  std::size_t frame_bytes = 0; ///< Of the frame that brought it; its decoder says so.
};
using request_list = item_list<request_message>;
using answer_list = item_list<answer_message>;

using message = std::variant<hello, rejection, request_list, answer_list, status_message,
                             desired_state, replica_message>;

} // namespace troupe
