// The messages of Troupe as plain values. Requests and answers form the data path, `status_message`
// and `desired_state` the control path. `replica_message` travels between replicas,
// `channel_message` on a lane; `hello` and `rejection` open a link. serialization/wire.hpp turns
// them into bytes.
#pragma once

#include "base/error.hpp"
#include "serialization/batch_set.hpp"
#include "serialization/channel.hpp"
#include "serialization/counters.hpp"
#include "serialization/ids.hpp"
#include "serialization/job.hpp"
#include "serialization/job_event.hpp"
#include "serialization/push_pull.hpp"
#include "serialization/replication.hpp"

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

// -- control path: members report their status, the coordinator answers with a desired state ------
//
// Both are whole states, not changes: each may be lost, repeated or overtaken by a newer one.

/// Batches given to a worker: first, first + stride, ... (`count` of them).
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
  std::vector<batch_id> done; ///< Batches of the lease that every server acknowledged.

  bool operator==(const lease_progress&) const = default;
};

struct worker_status {
  static constexpr role sender = role::worker;

  generation_id generation;
  std::vector<lease_progress> leases; ///< All leases that it holds.
  std::uint64_t clock = 0;            ///< Its next step.
  worker_counters counters;
  std::string host;              ///< Host of its process; workers of one machine share it.
  std::optional<failure> failed; ///< The worker cannot go on, and the job must stop.

  bool operator==(const worker_status&) const = default;
};

/// One worker's state in a shard.
struct clock_entry {
  worker_id worker;
  incarnation_id incarnation;
  std::uint64_t clock = 0; ///< Its next step: all earlier steps are pushed.
  bool known = false;      ///< False: unheard since this shard started; ssp pulls wait for it.

  bool operator==(const clock_entry&) const = default;
};

struct file_entry {
  std::string name; ///< Relative to the checkpoint's directory, with '/'.
  std::uint64_t size_bytes = 0;
  std::uint32_t crc32c = 0;

  bool operator==(const file_entry&) const = default;
};

/// A chain's part of a checkpoint, written and verified.
struct checkpoint_part {
  std::uint64_t checkpoint = 0;
  shard_id shard;
  std::vector<file_entry> files;
  std::uint64_t version = 0;

  bool operator==(const checkpoint_part&) const = default;
};

/// The checksum of a replica's values and their state at one version.
struct value_checksum {
  std::uint64_t version = 0;
  std::uint32_t crc32c = 0;

  bool operator==(const value_checksum&) const = default;
};
constexpr std::size_t checksums_max = 64; ///< Of a replica_status.

/// One replica of a chain.
struct replica_status {
  shard_id shard;
  chain_status status;
  std::optional<failure> failed; ///< Its initial state could not be loaded.
  std::uint64_t unreadable = 0;  ///< With `failed`: the checkpoint that could not be restored.
  bool recovered = false;        ///< It began its generation with all that the chain acknowledged.
  checkpoint_part part;          ///< The newest part written; checkpoint 0: none.
  /// Number of the newest checkpoint that could not be written.
  std::uint64_t checkpoint_failed = 0;
  std::string checkpoint_failure; ///< The reason.
  // The head alone fills the fields below.
  batch_set applied; ///< Batches applied on all its partitions and tables.
  std::vector<clock_entry> clocks;
  std::uint64_t version = 0;
  /// With --verify-replicas, of all replicas: the newest ones of this generation.
  std::vector<value_checksum> checksums = {};

  bool operator==(const replica_status&) const = default;
};

struct server_status {
  static constexpr role sender = role::server;

  std::uint64_t clock_ns = 0;         ///< Its boot clock when it wrote this status.
  std::vector<replica_status> chains; ///< The chains that it was told of.
  server_counters counters;           ///< Sums over all chains since its start.

  bool operator==(const server_status&) const = default;
};

/// A process whose end its parent saw.
struct death {
  member_id member;
  bool operator==(const death&) const = default;
};

/// Servers to add to a job, and servers to drain from it.
struct resize {
  std::vector<server_id> add;
  std::vector<server_id> drain;

  bool operator==(const resize&) const = default;
};

/// The status of a launcher, on the user's or another host, or of a command.
struct observer_status {
  static constexpr role sender = role::observer;

  std::vector<death> deaths;     ///< All deaths so far.
  bool done = false;             ///< It no longer needs the servers: the job may end.
  bool stop = false;             ///< The user asked to end now: write a checkpoint, then stop.
  std::optional<failure> failed; ///< End the job for this reason (a process died too often).
  troupe::resize resize;         ///< The user's request; it may be repeated.

  bool operator==(const observer_status&) const = default;
};

/// The status of an actor of a program.
struct actor_status {
  static constexpr role sender = role::actor;

  actor_counters counters;
  std::string host;              ///< Host of its process.
  std::optional<failure> failed; ///< The actor cannot go on, and the job must stop.
  bool stopped = false;          ///< Its stop() has returned: its end costs the job nothing.

  bool operator==(const actor_status&) const = default;
};

struct status_message {
  member_id from;
  std::uint64_t job = 0;           ///< fingerprint(job_spec) of the sender.
  std::uint64_t sequence = 0;      ///< Grows with each report of one incarnation.
  std::uint64_t rss_bytes_max = 0; ///< Peak resident memory of the sender's process.
  std::variant<worker_status, server_status, observer_status, actor_status> body;
  /// Where the sender listens for others; empty if it does not listen. An incarnation never changes
  /// it.
  std::string address = {};

  bool operator==(const status_message&) const = default;
};

/// A member, and the address at which it listens for others, "127.0.0.1:40123". Its node follows
/// from its role and its index: each role counts its members over the nodes of the graph.
struct member_address {
  member_id member;
  std::string address;

  bool operator==(const member_address&) const = default;
};

/// The address of a member that is reached in its own process alone.
inline constexpr std::string_view own_process_address = "own process";

/// Returns the address of a member; empty if the list lacks it.
inline std::string address_of(const std::vector<member_address>& listed, const member_id& who) {
  const auto found = std::ranges::find(listed, who, &member_address::member);
  return found == listed.end() ? std::string{} : found->address;
}

/// The servers of a chain. All entries and the partition map make a view.
struct chain_entry {
  shard_id shard;
  member_id head;
  bool serving = false; ///< Its partitions are loaded; it answers requests.
  /// The members behind the head, in order; some pulls can go to them.
  std::vector<member_id> others = {};

  bool operator==(const chain_entry&) const = default;
};

/// The cluster's configuration as clients need it. desired_state::listeners has the addresses.
struct view {
  config_id config;
  generation_id generation;
  std::vector<chain_entry> chains; ///< Ordered by chain.
  std::vector<shard_id> shard_of;  ///< One entry for each partition.

  bool operator==(const view&) const = default;
};

struct desired_worker {
  static constexpr role receiver = role::worker;

  troupe::view view;
  std::vector<lease> leases;     ///< All leases that it should hold; it drops others.
  std::uint64_t start_clock = 0; ///< Clock of its first step, once admitted.
  bool admitted = false;         ///< All servers know this incarnation; work may begin.

  bool operator==(const desired_worker&) const = default;
};

struct desired_chain {
  shard_id shard;
  chain_metadata record;

  bool operator==(const desired_chain&) const = default;
};

struct desired_server {
  static constexpr role receiver = role::server;

  job_spec job;
  generation_id generation;
  std::vector<desired_chain> chains; ///< All chains of the job.
  std::vector<shard_id> shard_of;    ///< One entry for each partition.
  std::uint64_t heard_ns = 0;        ///< server_status::clock_ns of the newest status received.
  /// Workers that may push. Entries with known == false are being admitted: the shard reports a
  /// clock at which the worker may safely start, and waits for it from there on.
  std::vector<clock_entry> workers;
  std::uint64_t checkpoint = 0;       ///< The checkpoint to write now; 0: none requested so far.
  std::uint64_t checkpoint_clock = 0; ///< bsp: cut after this clock has been applied.

  bool operator==(const desired_server&) const = default;
};

struct desired_actor {
  static constexpr role receiver = role::actor;

  troupe::view view;      ///< For pulls.
  bool wind_down = false; ///< The job ends, or all its batches are applied: call stop().

  bool operator==(const desired_actor&) const = default;
};

/// The state of one process, for people.
enum class member_state : std::uint8_t { absent, joining, restoring, active, finished, evicted };

struct member_status {
  member_id member;
  member_state state = member_state::absent;
  std::uint64_t rss_bytes_max = 0;
  std::uint64_t clock = 0;               ///< worker: its next step. server: its version.
  std::uint64_t updates_rolled_back = 0; ///< server: acknowledged updates that its restore lost.
  worker_counters worker;
  server_counters server;
  actor_counters actor = {};

  bool operator==(const member_status&) const = default;
};

enum class job_phase : std::uint8_t {
  gathering, ///< Waits for servers and workers.
  training,
  finishing, ///< All batches are applied; the last checkpoint is being written.
  finished,  ///< Values may be pulled; waits for observer_status::done.
  stopped,   ///< All processes leave.
};

struct job_status {
  static constexpr role receiver = role::observer;

  troupe::view view;
  job_phase phase = job_phase::gathering;
  std::uint64_t batches_done = 0;     ///< Batches applied on every partition.
  std::uint64_t checkpoint = 0;       ///< Newest committed checkpoint; 0: none.
  std::vector<member_status> members; ///< The present incarnation of each member.
  std::vector<server_id> servers;     ///< Those that are to run.
  std::vector<server_id> draining;    ///< Those that leave.
  std::vector<job_event> events;      ///< The last ones, oldest first.
  std::uint64_t events_total = 0;     ///< Events so far; the last of `events` has this number.
  job_spec job;                       ///< Empty: not said.
  std::uint32_t coordinator = 0;      ///< Which of them leads.
  std::uint64_t directory_mark = 0;   ///< Of the checkpoint directory; 0: none.

  bool operator==(const job_status&) const = default;
};

struct desired_state {
  member_id to;
  std::uint64_t term = 0;        ///< Grows with each start of the coordinator.
  std::uint64_t sequence = 0;    ///< Grows within a term; receivers drop older ones.
  bool stop = false;             ///< End this process now, in order.
  std::optional<failure> failed; ///< With `stop`: the reason, if the job failed or the process may
                                 ///< not be part of it.
  std::variant<desired_worker, desired_server, job_status, desired_actor> body;
  /// The present members that listen and that the receiver's role may connect to, by role and
  /// index.
  std::vector<member_address> listeners = {};

  bool operator==(const desired_state&) const = default;
};

// -- messages that open a link --------------------------------------------------------------------

/// The results of a server function on fixed numbers, the same on all hosts that are built alike.
struct function_probe {
  std::string function;
  std::uint32_t crc32c = 0;

  bool operator==(const function_probe&) const = default;
};

/// First message in each direction. The bytes of its version never change (envelope.capnp).
struct hello {
  std::uint32_t version = 0; ///< Protocol version, wire.hpp.
  std::uint64_t job = 0;     ///< fingerprint(job_spec).
  std::uint64_t secret = 0;  ///< Drawn by the launcher, passed to its children; 0 on another host.
  member_id from;
  encoding_set reads = 0; ///< Encodings that a peer may send to it or request from it.
  encoding_set sends = 0; ///< Encodings that it may send or request: its peers must read them.
  std::vector<function_probe> probes = {}; ///< One for each server function of the job.

  bool operator==(const hello&) const = default;
};

/// The reason why a link is refused; the link is closed after it.
struct rejection {
  failure why;
  bool operator==(const rejection&) const = default;
};

// -- requests on a link -------------------------------------------------------------------------

/// How a request on a link carries one list of keys (actors/roles/links/key_cache.hpp).
struct key_use {
  enum class how : std::uint8_t {
    brought, ///< Whole, to be used once.
    kept,    ///< Whole; the receiver keeps the list in a slot.
    named,   ///< Omitted: the list is in that slot.
  };
  how way = how::brought;
  std::uint32_t slot = 0;

  bool operator==(const key_use&) const = default;
};

/// A request; `number` pairs it with its reply, unique per link and direction.
struct request_message {
  std::uint64_t number = 0;
  request what;
  /// One for each list of rows, the push's lists first; empty: all are brought.
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

/// Items that travel together in one frame; a single item is a list too.
template <class Item>
struct item_list {
  item_list() = default;
  template <class One>
  requires std::convertible_to<One, Item> item_list(One&& only) {
    items.emplace_back(std::forward<One>(only));
  }

  std::vector<Item> items;
  std::size_t frame_bytes = 0; ///< Bytes of the frame that brought it, set by the decoder.
};
using request_list = item_list<request_message>;
using answer_list = item_list<answer_message>;

using message = std::variant<hello, rejection, request_list, answer_list, status_message,
                             desired_state, replica_message, channel_message>;

} // namespace troupe
