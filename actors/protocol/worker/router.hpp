// Splits requests over the shards that own their blocks and rows, and retries them through
// failovers. A plain state machine: parts go out as effects, replies come in as events. One router
// per client.
#pragma once

#include "actors/protocol/request_token.hpp"
#include "actors/protocol/worker/read_target.hpp"
#include "actors/protocol/worker/row_split.hpp"
#include "base/clock.hpp"
#include "serialization/layout.hpp"
#include "serialization/messages.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace troupe {

/// Names one part of a request; grows in the order in which parts are made.
using part_id = id<struct part_tag, std::uint64_t>;

struct router_options {
  /// Pause before parts are resent to a server that answered not_ready or whose link broke.
  std::chrono::milliseconds retry_pause{20};
  read_target reads = read_target::head;
  /// A pull that never waits goes to another replica if one has not answered for this time. 0:
  /// never, so that values are read once. Shorter: a busy replica costs its answer twice.
  std::chrono::milliseconds read_patience{200};
};

// -- effects --
struct send_part_effect {
  part_id part;
  chain_entry to;            ///< Its `head` is the replica that is asked.
  request what;              ///< Names the shard.
  std::uint64_t attempt = 0; ///< Handed back with the outcome.
};

using router_effect = std::variant<send_part_effect, answered_effect, failed_effect>;
using router_effects = std::vector<router_effect>;

/// A pull that any replica may answer carries the newest version of the shard that this client
/// knows. So no reply is older than one that the client had, or than an acknowledged push of its
/// own. Such a pull goes to another replica if the head fails, and to the head if another replica
/// fails.
///
/// Invariants:
/// (1) each request ends in exactly one answered or failed effect. Held by: assert in answered(),
///     fail_request().
/// (2) open parts for a shard's head are sent in the order in which they were made, also when
///     resent: the shard relies on a push being ahead of the next pull of its worker. If a table is
///     ssp, a pull without a push waits until the earlier pushes of its workers are acknowledged.
///     Held by: assert in add_part(), place(); check_staleness() in cli/sim/job_checks.cpp.
/// (3) a new head hears of each pull that waits at another shard, even if its own shard has
///     answered: otherwise it would let others wait for that worker. Held by: check_end() in
///     cli/sim/job_checks.cpp.
/// (4) an outcome of an earlier attempt is ignored, except a success and a refusal that drops the
///     part. Otherwise a part that is refused again and again, such as that of an evicted worker,
///     would hide the outcomes of other workers' parts. Held by: assert in failed().
class router {
public:
  explicit router(job_spec job, router_options options = {});

  /// Takes a newer view. Shards whose head came back or changed get their open parts again. A view
  /// that does not fit the job is ignored.
  void set_view(const view& now_valid, time_point now, router_effects& effects);
  /// Sends a request: a push to every shard, a pull to those that hold some of its ranges or rows.
  /// Requests of other starts of its worker fail as fenced: the later part of a line outlives the
  /// worker, whose start is unknown to servers that have started since. They would refuse it as
  /// not_ready forever.
  void ask(request_token token, request what, time_point now, router_effects& effects);

  /// Takes a reply; a reply that does not match the request fails it: malformed. After a push reply
  /// whose values are still to be waited for, the part asks for them again, alone.
  void answered(part_id part, reply answer, time_point now, router_effects& effects);
  /// Takes a failure. Errors to retry keep the part; others fail its request.
  void failed(part_id part, std::uint64_t attempt, const failure& why, time_point now,
              router_effects& effects);

  /// Resends parts whose pause has ended; asks another replica after read_patience.
  void tick(time_point now, router_effects& effects);
  std::optional<time_point> next_tick() const;
  /// Returns a line for each open part: what it asks for, and what it waits for.
  std::vector<std::string> waits() const;

private:
  struct open_part {
    request_token owner;
    request what;
    bool waits = false;         ///< Waits for the reply of an earlier push.
    std::size_t at = 0;         ///< Replica asked: 0 the head, else in chain_entry::others.
    std::uint64_t read = 0;     ///< Attempt of the last request to a non-head replica.
    time_point patience_end{0}; ///< Another replica is asked then; 0: never.
  };
  struct open_request {
    std::size_t parts_open = 0;
    std::optional<step_header> pull; ///< The step that pulls, if any.
    std::vector<step_header> others; ///< Other steps that share the pull.
    std::vector<row_keys> rows;      ///< Rows of the pull.
    reply answer;                    ///< With the parts that have arrived.
  };
  struct chain_queue {
    chain_entry entry;
    std::map<part_id, open_part> open;
    std::uint64_t attempt = 0; ///< Grows whenever all open parts have to be resent.
    std::optional<time_point> resend_at;
    std::uint64_t reads = 0; ///< Requests to non-head replicas.
    chain_version seen;      ///< The newest version heard of.
    /// Versions of the last pull_reply read for batches: the bases of their pushes.
    std::deque<std::pair<std::set<batch_id>, std::uint64_t>> versions;
  };

  void split(const push_request& what, std::map<shard_id, request>& parts);
  void split(const pull_request& what, std::map<shard_id, request>& parts) const;
  void add_part(request_token token, shard_id to, request what, time_point now,
                router_effects& effects);
  bool is_anywhere(const chain_queue& of, const request& what) const;
  std::size_t first_reader(const chain_queue& of, const request& what) const;
  std::size_t next_reader(const chain_queue& of, const open_part& part) const;
  void wait_patiently(const chain_queue& of, open_part& part, time_point now) const;
  void place(chain_queue& to, part_id id, std::size_t at, time_point now, router_effects& effects);
  void send(chain_queue& to, part_id id, router_effects& effects);
  void send_in_turn(chain_queue& to, part_id id, router_effects& effects);
  void send_all(chain_queue& to, router_effects& effects);
  bool waits_for_push(const chain_queue& in, part_id id) const;
  void send_waiting(chain_queue& to, part_id behind, router_effects& effects);
  void introduce_waiting(chain_queue& to, time_point now, router_effects& effects);
  bool may_change(const pull_request& pull) const;
  static void remember_version(chain_queue& of, const pull_request& pull, std::uint64_t version);
  static std::uint64_t base_version(const chain_queue& of, const std::vector<step_header>& steps);
  void fence_other_starts(const step_header& by, router_effects& effects);
  void fail_request(request_token token, const failure& why, router_effects& effects);
  /// Returns the queue that holds an open part; nullptr if the part is not open any more.
  chain_queue* holder(part_id id);
  result<void> check(const range& where) const;
  result<void> check(const row_keys& where) const;
  result<void> check(const packed_piece& whole) const;
  /// Checks pieces or ranges; not_ready without a view.
  template <class Whole>
  result<void> check(const std::vector<Whole>& all) const;
  result<void> check(const request& what) const;
  bool fits(const view& what) const;
  bool answers(const pull_reply& answer, const pull_request& asked) const;
  bool answers(const reply& answer, const request& asked) const;
  template <class Each>
  void for_each_block(const range& where, Each each) const;

  job_spec job_;
  std::vector<std::uint64_t> block_elements_; ///< One for each table.
  router_options options_;
  bool only_heads_answer_ = false; ///< Pulls, because they wait for slow workers.
  bool pulls_wait_ = false;        ///< For other workers.
  view view_;
  row_split row_split_; ///< Made from view_.
  std::map<shard_id, chain_queue> chains_;
  std::map<part_id, shard_id> part_shard_;
  std::map<request_token, open_request> requests_;
  std::uint64_t next_part_ = 1;
};

} // namespace troupe
